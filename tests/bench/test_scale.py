"""`bench scale` on a tiny base: the record is whole, and adding a tool is the real thing."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.recipes.saved import save_tiny_base, tiny_config
from toolken.bench import scale
from toolken.bench.decode_steps import random_head, step_seconds
from toolken.bench.percent import percent, percent_examples
from toolken.config import PromptSection
from toolken.data.prompts import load_prompt
from toolken.model.base import BaseLM

KEYS = ("step_ratio_10000", "step_ratio_47000", "add_ratio")
RATES = ("val_f1_13_before", "val_f1_13_after", "val_f1_14_added", "val_f1_14_joint")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_base(tmp_path_factory.mktemp("base"))


def test_a_quick_record_is_whole_and_the_old_rows_keep_their_bytes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scale, "VERY_MANY", 12_000)
    record = scale.bench_scale(tiny_config(folder, tmp_path / "run"), quick=True)
    assert record["quick"] is True and record["rows_bit_equal"] is True
    for key in KEYS:
        value = record[key]
        assert isinstance(value, float) and math.isfinite(value) and value > 0, key
    for key in RATES:
        value = record[key]
        assert isinstance(value, float) and 0 <= value <= 1, key
    seconds = record["seconds"]
    assert isinstance(seconds, dict) and record["add_ratio"] == pytest.approx(seconds["add"] / seconds["joint"])
    said = capsys.readouterr().err
    assert said.count("negatives: ") == 2, "both rounds find the old rows in the cache"
    assert not (tmp_path / "run").exists()


def test_steps_are_measured_for_every_number_of_toolkens(folder: Path) -> None:
    base = BaseLM.load(str(folder), dtype="float32")
    prompt = load_prompt(PromptSection(template="builtin:plain"), tokenizer=base.tokenizer)
    seconds = step_seconds(base, prompt, ["3 + 4?", "7 * 5?"], sizes=(2, 30), steps=3)
    assert seconds.keys() == {2, 30} and all(value > 0 for value in seconds.values())
    assert random_head(base, 30).names[-1] == "tool_29"


def test_percent_examples_cover_what_the_tool_returns() -> None:
    rows = percent_examples(50, seed=0)
    assert len({row.question for row in rows}) == 50
    for row in rows:
        (call,) = row.calls
        result = percent(*(float(part) for part in call.arguments.split(", ")))
        assert float(row.result(call)) == pytest.approx(result, rel=1e-5)
    assert not {row.question for row in rows} & {row.question for row in percent_examples(10, seed=1)}
