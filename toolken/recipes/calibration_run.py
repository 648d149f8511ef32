"""`calibrate`: the solved bias of an artefact, shifted by the validation rows of its run.

A run that is calibrated in place is held meanwhile, and its report, its result and its metrics tell the new rates. The
artefact changes first: a calibration that is killed is done again, with the same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from toolken.config import CalibrationSection, Config, TrackingSection
from toolken.errors import UserError
from toolken.evaluation.report import write_report
from toolken.evaluation.run_report import FILE_NAME, SplitMetrics, load_run_report
from toolken.files import write_json
from toolken.model.artefact import read_info
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.recipes.measurement import measure_split, recalibrated
from toolken.recipes.preparation import Aligned, align_splits, load_base, load_splits
from toolken.recipes.reporting import validation_record
from toolken.recipes.solving import calibrate_head, extract_all
from toolken.run_directory import RESULT, TOOLKENS, lock_run, stored_result
from toolken.tracking import Tracker
from toolken.training.calibrate import Calibration
from toolken.training.features import extract


def recalibrate(config: Config, *, run: Path, output: Path | None, section: CalibrationSection) -> dict[str, object]:
    """Calibrate and save; the rows keep their bytes, the bias before and after is returned with its rates.

    Args:
        config: Settings of the run.
        run: Its directory.
        output: Artefact directory that is written; None changes the run itself.
        section: What is calibrated to.

    Raises:
        UserError: The artefact or the data cannot be read, no validation row has a call, or the run is still going.
    """
    if output is not None:
        return _recalibrate(config, run=run, output=output, section=section)
    with lock_run(run, fix="write elsewhere with `--output`"):
        return _recalibrate(config, run=run, output=None, section=section)


def _recalibrate(config: Config, *, run: Path, output: Path | None, section: CalibrationSection) -> dict[str, object]:
    source = run / TOOLKENS
    info = read_info(source)
    base = load_base(config.base)
    head = ToolkenHead.load(source, base=base)
    splits = load_splits(config.data, head.names)
    if not any(row.calls for row in splits.validation):
        raise UserError("data.validation", "no validation row has a call", "add some to calibrate on")
    prompt = info.prompt.prompt()
    rows = align_splits(splits, prompt, base=base, tools=head.names, section=config.data)
    features = extract(base, rows.validation, section=config.features, label="validation")
    shifted, found = calibrate_head(head, features, base=base, section=section)
    before, after = (measure_split(features, one, base=base) for one in (head, shifted))
    shifted.save(output or source)
    if output is None:
        _tell(config, run, shifted, found, base=base, rows=rows)
    changed = "unchanged" if shifted.bias.equal(head.bias) else "changed"
    rates = f"F1 {before.detection.f1:.3f} -> {after.detection.f1:.3f}"
    print(f"bias {changed}: {rates}, in {output or source}", file=sys.stderr)
    return _record(shifted, found, before, after, place=output or source)


def _record(
    head: ToolkenHead, found: Calibration, before: SplitMetrics, after: SplitMetrics, *, place: Path
) -> dict[str, object]:
    return {
        "toolkens": str(place),
        "shift": found.shift,
        "own_shift": [name for name, own in zip(head.names, found.own.tolist(), strict=True) if own],
        "f1_before": before.detection.f1,
        "f1_after": after.detection.f1,
        "validation": after.detection.as_dict(),
        "false_calls": after.false_calls.as_dict(),
    }


def _tell(config: Config, run: Path, head: ToolkenHead, found: Calibration, *, base: BaseLM, rows: Aligned) -> None:
    """Bring report, result and metrics of a finished run up to the new bias; an unfinished one will write its own."""
    result = stored_result(run)
    if result is None or not (run / FILE_NAME).is_file():
        return
    features = extract_all(base, rows, section=config.features)
    report = recalibrated(load_run_report(run), head, found, base=base, features=features)
    write_report(run, report)
    write_json(run / RESULT, {**result, "val": validation_record(report)})
    quiet = config.model_copy(update={"tracking": TrackingSection(mode="disabled")})
    with Tracker(run, quiet) as tracker:
        validation = report.splits["validation"].detection.f1
        tracker.summary({"calibration/shift": found.shift, "validation/f1": validation})
