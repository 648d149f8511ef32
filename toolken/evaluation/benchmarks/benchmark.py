"""What a benchmark is: its tools, its questions, and what an answer to one of them is worth.

Invariant: a benchmark knows nothing of methods, models or prompts; every method answers the same questions and is
marked by the same code. A mark says one cause for every answer, and "could not be scored" is counted apart from
"wrong". Test questions are for reporting alone.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from pydantic import JsonValue

from toolken.evaluation.scoring import Verdict
from toolken.inference.engine import Answer
from toolken.tools.toolset import ToolSet

Split = Literal["test", "validation"]


class Cause(enum.Enum):
    """What made an answer right or wrong."""

    RIGHT = "right"
    NO_CALL = "no call made"
    WRONG_TOOL = "wrong tool"
    WRONG_ARGUMENTS = "wrong arguments"
    TOOL_FAILED = "tool failed"
    WRONG_FINAL = "right result, wrong final answer"
    UNSCORABLE = "could not be scored"
    WRONG = "wrong"
    """Where nothing finer can be told."""


@dataclass(frozen=True)
class Item:
    """One question.

    Attributes:
        id: Unique in its split.
        question: What `[QUESTION]` of the prompt is filled with.
        gold: The right answer as the benchmark has it.
        metadata: Whatever marking needs beside it.
    """

    id: str | int
    question: str
    gold: JsonValue
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True)
class Mark:
    """What one answer is worth.

    Attributes:
        verdict: Right, wrong, or not to be scored.
        cause: Why.
        published: The verdict of the published scorer, None where the benchmark has none.
        measures: Further numbers of this question, by the benchmark's own names.
        tools: Tools of the gold calculation, where it is known.
    """

    verdict: Verdict
    cause: Cause
    published: bool | None = None
    measures: Mapping[str, float] = field(default_factory=dict)
    tools: tuple[str, ...] = ()


class Benchmark(Protocol):
    """A set of questions with tools and a scorer."""

    @property
    def name(self) -> str:
        """Its name in settings: `funcqa_oh`."""

    @property
    def title(self) -> str:
        """Its name in reports."""

    @property
    def published(self) -> Mapping[str, float]:
        """Numbers of the paper's methods, under the names that it prints."""

    @property
    def published_base(self) -> str:
        """The model that the paper's numbers were taken with."""

    @property
    def published_measure(self) -> str:
        """What the paper's numbers are shares of: `accuracy`, or one of `measures`."""

    @property
    def measures(self) -> tuple[str, ...]:
        """Names in `Mark.measures`; accuracy, the share of right verdicts, comes before them by itself."""

    def tools(self, root: Path) -> ToolSet:
        """Return the tools that its questions are answered with."""

    def items(self, root: Path, split: Split) -> list[Item]:
        """Return its questions; `root` is the folder of the data sets.

        Raises:
            UserError: A file is missing or malformed.
        """

    def mark(self, item: Item, answer: Answer) -> Mark:
        """Say what an answer is worth."""
