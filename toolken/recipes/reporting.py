"""What leaves a training run beside its artefact: tracked metrics, the result on stdout, the lines on screen."""

from __future__ import annotations

from pathlib import Path

from toolken.evaluation.run_report import RunReport, ToolMetrics
from toolken.inference.engine import Answer
from toolken.model.head import ToolkenHead
from toolken.recipes.preparation import Splits
from toolken.run_directory import RunDirectory
from toolken.tracking import Tracker
from toolken.training.solver import Solution


def log_curve(tracker: Tracker, solution: Solution) -> None:
    """Log the loss at its evaluations, or the record of every epoch."""
    if solution.log:
        for record in solution.log:
            tracker.log({name: value for name, value in record.items() if name != "epoch"}, step=int(record["epoch"]))
        return
    for at, loss in solution.curve:
        tracker.log({"train/loss": loss}, step=at)


def result_record(run: RunDirectory, report: RunReport, *, seconds: float) -> dict[str, object]:
    """Return the JSON object that the command line prints last."""
    return {
        "run_dir": str(run.path),
        "toolkens": str(run.toolkens),
        "val": validation_record(report),
        "seconds": round(seconds, 1),
    }


def validation_record(report: RunReport) -> dict[str, object]:
    """Return what the result of a run says about its validation rows."""
    validation = report.splits["validation"]
    return {
        "loss": validation.loss,
        **validation.detection.as_dict(),
        "false_calls": validation.false_calls.as_dict(),
        "examples": validation.examples,
    }


def track(
    tracker: Tracker,
    report: RunReport,
    answers: list[Answer],
    *,
    run: RunDirectory,
    splits: Splits,
    head: ToolkenHead,
) -> None:
    """Record final values, the table of tools, the sample answers and the artefact."""
    for name, split in report.splits.items():
        detection = split.detection
        tracker.summary(
            {
                f"{name}/loss": split.loss,
                f"{name}/f1": detection.f1,
                f"{name}/precision": detection.precision.value,
                f"{name}/recall": detection.recall.value,
                f"{name}/false_calls_per_1000": 1000 * split.false_calls.value,
            }
        )
    rates = [f"{split} {rate}" for split in ("train", "validation") for rate in ("precision", "recall", "f1")]
    columns = ["tool", "examples", "row norm", "bias", *rates]
    rows = [[tool.tool, tool.examples, tool.row_norm, tool.bias, *_rates(tool)] for tool in report.per_tool]
    tracker.table("per_tool", columns, rows)
    if answers:
        tracker.predictions([answer.as_dict(number) for number, answer in enumerate(answers)])
    metadata = {"validation_f1": report.splits["validation"].detection.f1, "tools": len(head.names)}
    data = {"hash": splits.hash, "licence": str(head.info.data.get("licence", "unknown"))}
    tracker.artifact(run.toolkens, metadata=metadata, data=data)


def _rates(tool: ToolMetrics) -> list[float | None]:
    found: list[float | None] = []
    for counts in (tool.train, tool.validation):
        found += [None] * 3 if counts is None else [counts.precision.value, counts.recall.value, counts.f1]
    return found


def headline(report: RunReport, *, directory: Path) -> str:
    """Return the rates of a run, one split a line, with n and intervals, and what to do next."""
    lines = []
    for name, split in report.splits.items():
        low, high = split.detection.f1_interval
        lines.append(
            f"{name}: F1 {split.detection.f1:.3f} [{low:.3f}, {high:.3f}], precision {split.detection.precision}, "
            f"recall {split.detection.recall}, false calls {1000 * split.false_calls.value:.2f} per 1,000 words"
        )
    if report.plain_text is not None and report.plain_text.n:
        plain = report.plain_text
        lines.append(f"unseen plain text: {1000 * plain.value:.2f} false calls per 1,000 tokens (n={plain.n})")
    if report.context_shift is not None:
        lines.append(f"context shift: {report.context_shift.value:.3f} standard deviations")
    lines.append(f"report: {directory / 'report.html'}")
    lines.append(f'next: python infer.py --toolkens {directory / "toolkens"} --question "..."')
    return "\n".join(lines)
