"""`toolken calibrate`, `toolken report`, and `toolken tools list | remove | merge`: what is done to a finished run."""

from __future__ import annotations

import sys
from pathlib import Path

from toolken.commands.command import Command
from toolken.config import CalibrationSection, Section
from toolken.errors import UserError
from toolken.evaluation.comparison.evaluations import FACTS, load_evaluation
from toolken.evaluation.comparison.report import write_comparison
from toolken.evaluation.report import regenerate
from toolken.model.artefact import read_info
from toolken.model.head import ToolkenHead
from toolken.recipes.calibration_run import recalibrate
from toolken.settings.loading import load_config


class CalibrateArguments(Section):
    """Which run is calibrated, and to what."""

    run: Path
    """Run directory; its validation rows are used."""
    output: Path | None = None
    """Artefact directory that is written; unset: the run's own."""
    calibration: CalibrationSection = CalibrationSection()


class ReportArguments(Section):
    """Which report is written again, or which evaluations are put side by side."""

    run: Path
    """Directory of a training run, or of an evaluation."""
    beside: list[Path] = []
    """Further directories of evaluations, for one report on all of them."""
    output: Path | None = None
    """Folder of the report on several evaluations; that of an evaluation by itself if unset."""


class ListArguments(Section):
    """Which artefact is listed."""

    toolkens: Path
    """Artefact directory."""


class RemoveArguments(ListArguments):
    """Which rows are dropped."""

    names: list[str]
    """Tools to drop."""
    output: Path
    """Artefact directory that is written."""


class MergeArguments(ListArguments):
    """Which artefacts are put together."""

    other: Path
    """Artefact directory whose rows are appended."""
    output: Path
    """Artefact directory that is written."""


def calibrate(arguments: CalibrateArguments) -> dict[str, object]:
    """Shift the solved bias by validation rows, and say what changed."""
    config = load_config(arguments.run / "config.yaml")
    return recalibrate(config, run=arguments.run, output=arguments.output, section=arguments.calibration)


def report(arguments: ReportArguments) -> dict[str, object]:
    """Write pages and plots again from what a training run stored, or from the records of evaluations."""
    if not (arguments.run / FACTS).is_file() and not arguments.beside:
        return {"report": str(regenerate(arguments.run))}
    if arguments.beside and arguments.output is None:
        raise UserError("--output", "is missing", "name the folder of the report on several evaluations")
    evaluations = [load_evaluation(folder) for folder in dict.fromkeys([arguments.run, *arguments.beside])]
    return {"report": str(write_comparison(evaluations, arguments.output or arguments.run))}


def list_tools(arguments: ListArguments) -> dict[str, object]:
    """Print the rows of an artefact."""
    info = read_info(arguments.toolkens)
    for row, tool in enumerate(info.tools):
        state = f"{tool.examples} examples" if tool.trained else "untrained, masked"
        print(f"{row:>4}  <{tool.name}>  {state}  {tool.reference or 'your own'}", file=sys.stderr)
    return {"base": info.base_name, "tools": [tool.name for tool in info.tools]}


def remove(arguments: RemoveArguments) -> dict[str, object]:
    """Drop rows; the others keep their bytes."""
    head = ToolkenHead.load(arguments.toolkens).remove(arguments.names)
    return _save(head, arguments.output)


def merge(arguments: MergeArguments) -> dict[str, object]:
    """Append the rows of another artefact of the same base."""
    head = ToolkenHead.load(arguments.toolkens).merge(ToolkenHead.load(arguments.other))
    return _save(head, arguments.output)


def _save(head: ToolkenHead, output: Path) -> dict[str, object]:
    if output.exists():
        raise UserError(str(output), "exists already", "name a new directory with `--output`")
    head.save(output)
    print("the bias is as it was; `toolken calibrate` would fit it to the new set of tools", file=sys.stderr)
    return {"toolkens": str(output), "tools": list(head.names)}


CALIBRATE = Command(CalibrateArguments, calibrate, "shift the bias of a run by its validation rows", ("run",))
REPORT = Command(ReportArguments, report, "write a run's report again, or one on several evaluations", ("run",))
LIST = Command(ListArguments, list_tools, "list the rows of an artefact", ("toolkens",))
REMOVE = Command(RemoveArguments, remove, "drop rows of an artefact", ("toolkens",))
MERGE = Command(MergeArguments, merge, "append the rows of another artefact", ("toolkens", "other"))
