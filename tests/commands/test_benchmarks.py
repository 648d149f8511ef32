"""A small slice of every benchmark on the embedded base, by the commands that users give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolken.cli import main
from toolken.evaluation.records import RECORDS, read_records

ROOT = Path(__file__).parents[2]
FEW = ["--data.per_tool", "1", "--solver.l2", "1e-3", "--tracking.mode", "disabled", "--evaluation.limit", "2"]
SHORT = ["--inference.max_new_tokens", "24", "--inference.retries", "0", "--inference.max_calls", "2"]
SLICES = {
    "funcqa": ("base,react,toolken", [*SHORT, "--data.negatives", "[]"]),
    # Rows of so few examples seldom call by themselves.
    "gsm8k_xl": (
        "base,react,toolken",
        [*SHORT, "--data.negatives", "[]", "--data.limit", "12", "--inference.bias", "6"],
    ),
    "kamel": (
        "base,toolken",
        ["--evaluation.benchmark", "kamel_30", "--tools", "benchmark:kamel_30", "--data.on_bad_row", "skip"],
    ),
    "virtualhome": ("base,toolken", ["--data.limit", "3", "--inference.max_new_tokens", "60"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SLICES)
def test_a_slice_of_every_benchmark_is_answered_by_command(
    name: str, data_root: Path, user_cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    methods, changes = SLICES[name]
    out = tmp_path / "out"
    command = ["eval", "--config", str(ROOT / f"configs/{name}.yaml"), "--methods", methods, "--out", str(out)]
    assert main([*command, "--data.root", str(data_root), *FEW, *changes]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(result["methods"]) == methods.split(",")
    assert all(rate["n"] == 2 for rate in result["methods"].values())
    records = read_records(out / RECORDS)
    assert {(one.method, one.id) for one in records} == {
        (method, one.id) for method in methods.split(",") for one in records
    }
    assert len(records) == 2 * len(methods.split(","))
    assert any(one.calls for one in records if one.method == "toolken")
