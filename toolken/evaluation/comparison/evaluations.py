"""What an evaluation left in its folder, read back: its facts, and the answers of every method.

Everything that a report says is computed from the records; the facts only say what the records cannot: how many
questions there were, how long it took, which base it was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, JsonValue, ValidationError

from toolken.errors import UserError
from toolken.evaluation.benchmarks.benchmark import Benchmark, Cause
from toolken.evaluation.benchmarks.catalogue import load_benchmark
from toolken.evaluation.records import RECORDS, Record, by_method, read_records
from toolken.evaluation.scoring import Verdict
from toolken.files import read_text
from toolken.metrics import Rate

FACTS = "evaluation.json"
_FIX = "name the folder that `toolken eval --methods ... --out` wrote"


class MethodFacts(BaseModel):
    """How a method was run."""

    command: str = ""
    seconds: float = 0.0
    notes: list[str] = []
    head: dict[str, JsonValue] | None = None


class Facts(BaseModel):
    """What the records do not say; see `toolken.recipes.benchmark_run`."""

    name: str
    benchmark: str
    base: str
    base_fingerprint: str
    split: str
    items: int
    of: int
    tools: int
    per_tool: int | None
    measures: list[str]
    methods: dict[str, MethodFacts] = {}


@dataclass(frozen=True)
class Cell:
    """The answers of one method to one benchmark's questions."""

    method: str
    records: Sequence[Record]

    @property
    def accuracy(self) -> Rate:
        """Right answers; what could not be scored counts as not right."""
        return Rate(sum(one.verdict is Verdict.RIGHT for one in self.records), len(self.records))

    @property
    def published(self) -> Rate | None:
        """Right answers by the published scorer; None where there is none."""
        verdicts = [one.published for one in self.records if one.published is not None]
        return Rate(sum(verdicts), len(verdicts)) if verdicts else None

    @property
    def disputed(self) -> int:
        """Answers on which the published scorer and ours differ."""
        return sum(one.published not in (None, one.verdict is Verdict.RIGHT) for one in self.records)

    def measure(self, name: str) -> tuple[float, int] | None:
        """Return mean and n of a further measure; None where no answer has it."""
        values = [one.measures[name] for one in self.records if name in one.measures]
        return (sum(values) / len(values), len(values)) if values else None

    def cost(self, name: str) -> float:
        """Return the mean of a number of the usage: `new_tokens`, `fed_tokens`, `calls`, `seconds`."""
        return sum(one.usage.get(name, 0.0) for one in self.records) / max(1, len(self.records))

    def causes(self) -> dict[Cause, int]:
        """Return how many answers have each cause, in the order of the causes."""
        return {cause: sum(one.cause is cause for one in self.records) for cause in Cause}

    def scores(self) -> dict[str | int, float]:
        """Return 1 for every right answer and 0 for every other one, by question."""
        return {one.id: float(one.verdict is Verdict.RIGHT) for one in self.records}


@dataclass(frozen=True)
class Evaluation:
    """One folder."""

    folder: Path
    facts: Facts
    records: Sequence[Record]

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """The methods that have answered anything, in the order in which they began."""
        return {method: Cell(method, found) for method, found in by_method(self.records)}

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark, for its title and the published numbers."""
        return load_benchmark(self.facts.benchmark)

    @property
    def title(self) -> str:
        """Benchmark and base, for headings."""
        base = Path(self.facts.base).name if "/" in self.facts.base else self.facts.base
        return f"{self.benchmark.title} ({self.facts.name}, {base})"

    def incomplete(self) -> dict[str, int]:
        """Return the answers that are there of every method that has not answered all questions."""
        return {
            method: len(cell.records) for method, cell in self.cells.items() if len(cell.records) < self.facts.items
        }


def load_evaluation(folder: Path) -> Evaluation:
    """Read a folder.

    Raises:
        UserError: It is no folder of an evaluation, or what it holds is damaged.
    """
    if not (folder / FACTS).is_file():
        raise UserError(str(folder / FACTS), "no such file", _FIX)
    text = read_text(folder / FACTS, _FIX)
    try:
        facts = Facts.model_validate(json.loads(text))
    except (ValueError, ValidationError) as error:
        problem = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise UserError(
            str(folder / FACTS), f"it is damaged ({problem})", "give the command of the run again"
        ) from error
    return Evaluation(folder, facts, read_records(folder / RECORDS))
