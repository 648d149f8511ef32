"""What a method is: how a question is put to the base, and who runs the calls.

Invariant: all methods go through one engine: the same decoding loop, limits, executor and prompts file. A method only
says which prompt is shown, which rows stand beside the words, and which tools may be called by writing their name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from toolken.config import Config
from toolken.data.example import Example
from toolken.evaluation.benchmarks.benchmark import Benchmark, Item
from toolken.inference.engine import Engine
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.tools.toolset import ToolSet

HeadKind = Literal["none", "trained", "published"]
"""No toolkens; those of the settings' own training; those of the published recipe."""


@dataclass(frozen=True)
class Setting:
    """What a method is opened with.

    Attributes:
        config: Settings of the run.
        base: The frozen base.
        benchmark: Where the questions come from.
        tools: The benchmark's tools.
        root: Folder of the data sets.
        examples: Training rows, from which demonstrations may be taken.
        head: The rows that the method asks for; None where it asks for none.
    """

    config: Config
    base: BaseLM
    benchmark: Benchmark
    tools: ToolSet
    root: Path
    examples: Sequence[Example]
    head: ToolkenHead | None


class Method(Protocol):
    """A way to answer questions."""

    @property
    def name(self) -> str:
        """Its name in settings: `react`."""

    @property
    def head(self) -> HeadKind:
        """Which rows it needs."""

    def open(self, setting: Setting, items: Sequence[Item]) -> Engine:
        """Return the engine that answers `items`, which whoever calls this closes.

        Raises:
            UserError: The settings lack what the method needs.
        """
