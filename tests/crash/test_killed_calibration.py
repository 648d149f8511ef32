"""`calibrate` changes a run in place; killed before a step on its files, it ends with what a calm one leaves."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

from tests.crash.conftest import small_config
from tests.crash.processes import Starter
from tests.crash.test_killed_training import files
from toolken.evaluation.run_report import load_run_report
from toolken.model.head import ToolkenHead
from toolken.recipes.measurement import RECALIBRATED
from toolken.recipes.training_run import train

TARGET = ["--calibration.target", "recall", "--calibration.false-calls-per-1000", "300"]


def validation_f1(run: Path) -> tuple[float, float]:
    """Return what the result and the report say."""
    result = json.loads((run / "result.json").read_bytes())
    return result["val"]["f1"], load_run_report(run).splits["validation"].detection.f1


@pytest.fixture
def runs(base: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Return two copies of a finished run: one for an undisturbed calibration, one to be killed."""
    run = train(small_config(base, tmp_path)).directory
    return Path(shutil.copytree(run, tmp_path / "calm")), run


def test_law_10_a_calibration_killed_before_any_step_leaves_the_old_artefact_or_the_new_one(
    forked: Starter, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    calm, run = runs
    before = ToolkenHead.load(run / "toolkens")
    job = forked(["calibrate", str(calm), *TARGET], tmp_path / "log")
    assert job.end() == 0, job.said
    after = ToolkenHead.load(calm / "toolkens")
    assert not before.bias.equal(after.bias) and before.weight.equal(after.weight)
    seen = set()
    # Every step of the save, then some of report, plots and result, then none.
    steps = [(run / "toolkens", last) for last in range(1, 7)] + [(run, last) for last in (8, 9, 15, 20, 22)]
    for folder, last in [*steps, (run, 0)]:
        status = forked(["calibrate", str(run), *TARGET], tmp_path / "log", folder=str(folder), last=last).end()
        bias = ToolkenHead.load(run / "toolkens").bias
        assert bias.equal(before.bias) or bias.equal(after.bias)
        seen.add(bool(bias.equal(after.bias)))
        assert status == (-signal.SIGKILL if last else 0)
    assert seen == {True, False}
    assert files(run / "toolkens", "*") == files(calm / "toolkens", "*")
    assert validation_f1(run) == validation_f1(calm)


def test_a_calibrated_run_reports_its_new_bias_and_remarks_on_what_is_older(
    forked: Starter, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    old, run = runs
    for _ in range(2):
        job = forked(["calibrate", str(run), *TARGET], tmp_path / "log")
        assert job.end() == 0, job.said
    report, head = load_run_report(run), ToolkenHead.load(run / "toolkens")
    assert [tool.bias for tool in report.per_tool] == head.bias.tolist()
    assert (
        report.warnings.count(RECALIBRATED) == 1
        and "calibrated again after the run" in (run / "report.html").read_text()
    )
    assert validation_f1(run) == (json.loads(job.result)["f1_after"],) * 2 != validation_f1(old)
    assert report.samples == load_run_report(old).samples and report.loss_curve == load_run_report(old).loss_curve
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["summary"]["validation/f1"] == validation_f1(run)[0]


def test_a_calibration_that_writes_elsewhere_leaves_the_run_as_it_is(
    forked: Starter, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    old, run = runs
    job = forked(["calibrate", str(run), *TARGET, "--output", str(tmp_path / "new")], tmp_path / "log")
    assert job.end() == 0, job.said
    assert files(run, "*") == files(old, "*")
    assert not ToolkenHead.load(tmp_path / "new").bias.equal(ToolkenHead.load(run / "toolkens").bias)
