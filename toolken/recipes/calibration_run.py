"""`calibrate`: the solved bias of an artefact, shifted by the validation rows of its run."""

from __future__ import annotations

import sys
from pathlib import Path

from toolken.config import CalibrationSection, Config
from toolken.errors import UserError
from toolken.model.artefact import read_info
from toolken.model.head import ToolkenHead
from toolken.recipes.measurement import measure_split
from toolken.recipes.preparation import align_splits, load_base, load_splits
from toolken.recipes.solving import calibrate_head
from toolken.training.features import extract


def recalibrate(config: Config, *, source: Path, output: Path, section: CalibrationSection) -> dict[str, object]:
    """Calibrate and save; the rows keep their bytes, the bias before and after is returned with its rates.

    Raises:
        UserError: The artefact or the data cannot be read, or no validation row has a call.
    """
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
    shifted.save(output)
    changed = "unchanged" if shifted.bias.equal(head.bias) else "changed"
    print(f"bias {changed}: F1 {before.detection.f1:.3f} -> {after.detection.f1:.3f}, in {output}", file=sys.stderr)
    return {
        "toolkens": str(output),
        "shift": found.shift,
        "own_shift": [name for name, own in zip(head.names, found.own.tolist(), strict=True) if own],
        "f1_before": before.detection.f1,
        "f1_after": after.detection.f1,
        "validation": after.detection.as_dict(),
        "false_calls": after.false_calls.as_dict(),
    }
