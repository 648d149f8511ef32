"""What Weights & Biases learns of an evaluation: one run for each cell, that is one method on one benchmark.

Runs are grouped by benchmark. The table of predictions holds every answer with the trace of its calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from toolken.config import Config
from toolken.evaluation.records import Record
from toolken.evaluation.scoring import Verdict
from toolken.metrics import Rate
from toolken.tracking import Tracker

CELLS = "cells"
_COLUMNS = ("id", "question", "gold", "answer", "verdict", "cause", "text", "calls", "finish_reason", "new_tokens")


def accuracy(records: Sequence[Record], method: str) -> Rate:
    """Return the share of right answers of a method."""
    verdicts = [record.verdict for record in records if record.method == method]
    return Rate(verdicts.count(Verdict.RIGHT), len(verdicts))


def track_cell(config: Config, method: str, records: Sequence[Record], *, folder: Path) -> None:
    """Record the answers of a method that answered all of its questions, once, in a folder of their own in `folder`."""
    folder = folder / CELLS / method.replace(":", "-")
    if folder.exists():
        return
    folder.mkdir(parents=True)
    benchmark = config.evaluation.benchmark
    tracking = config.tracking.model_copy(update={"group": config.tracking.group or benchmark})
    cell = config.model_copy(update={"name": f"{config.name}-{method}", "tracking": tracking})
    with Tracker(folder, cell, job="eval") as tracker:
        rate = accuracy(records, method)
        low, high = rate.interval
        tracker.summary(
            {
                "method": method,
                "benchmark": benchmark,
                "eval/accuracy": rate.value,
                "eval/low": low,
                "eval/high": high,
                "eval/n": rate.n,
                **{f"eval/{name}": value for name, value in _means(records).items()},
            }
        )
        tracker.table("predictions", _COLUMNS, [_row(record) for record in records])


def _means(records: Sequence[Record]) -> dict[str, float]:
    names = sorted({name for record in records for name in record.measures})
    found = {name: [record.measures[name] for record in records if name in record.measures] for name in names}
    return {name: sum(values) / len(values) for name, values in found.items()}


def _row(record: Record) -> list[object]:
    return [
        record.id,
        record.question,
        record.gold,
        record.answer,
        record.verdict.value,
        record.cause.value,
        record.text,
        list(record.calls),
        record.finish_reason,
        record.usage["new_tokens"],
    ]
