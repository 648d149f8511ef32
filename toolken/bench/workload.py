"""Rows to train on, aligned in one context, and our own way from there to a saved head, timed stage by stage.

Reading and aligning rows stands outside every timing: whatever is compared starts from the same token ids. A quick
run keeps an evenly spread part of the rows; what it says holds for that part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from toolken.bench.measure import timed
from toolken.config import Config, FeaturesSection, SolverSection
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.recipes.alignment import refuse_alignment
from toolken.recipes.preparation import Aligned, Context, Splits, align_splits, load_context, load_splits
from toolken.recipes.solving import SplitFeatures, calibrate_head, extract_all, fit, make_head
from toolken.tools.toolset import ToolSet
from toolken.training.solver import Solution

T = TypeVar("T")

FIXED_L2 = 1e-3
"""Prior strength of a run with a fixed one, where the settings say `auto`."""
QUICK_ROWS = 39
QUICK_VALIDATION = 13
QUICK_NEGATIVES = 10


@dataclass(frozen=True)
class Workload:
    """A base, tools, and rows in the context of one prompt; `rows.unseen` is left empty."""

    config: Config
    base: BaseLM
    tools: ToolSet
    splits: Splits
    context: Context
    rows: Aligned


class Trained(NamedTuple):
    """What our way leaves: `seconds` by stage, in order."""

    features: SplitFeatures
    solution: Solution
    head: ToolkenHead
    seconds: dict[str, float]

    @property
    def total(self) -> float:
        """Seconds of all stages together."""
        return sum(self.seconds.values())


def evenly(rows: Sequence[T], count: int) -> list[T]:
    """Return `count` rows, evenly spread over all of them; all, if there are no more."""
    if count >= len(rows):
        return list(rows)
    return [rows[place * len(rows) // count] for place in range(count)]


def read_splits(config: Config, tools: ToolSet, *, quick: bool) -> Splits:
    """Read the rows that settings name; unseen texts, which only a report needs, are left out."""
    splits = replace(load_splits(config.data, tools.names), unseen=[])
    if not quick:
        return splits
    return replace(
        splits,
        train=evenly(splits.train, QUICK_ROWS),
        validation=evenly(splits.validation, QUICK_VALIDATION),
        negatives=evenly(splits.negatives, QUICK_NEGATIVES),
    )


def align_workload(config: Config, splits: Splits, *, base: BaseLM, tools: ToolSet) -> Workload:
    """Put rows into the context of the settings' prompt; settings that align rows are refused."""
    refuse_alignment(config, "the benchmark")
    context = load_context(config, base=base, tools=tools, examples=splits.train)
    rows = align_splits(splits, context.prompt, base=base, tools=tools.names, section=config.data)
    return Workload(config, base, tools, splits, context, rows)


def fixed_solver(section: SolverSection) -> SolverSection:
    """Return the convex solver with a fixed prior strength: that of the settings, where they give a number."""
    return section.model_copy(update={"kind": "convex", "l2": FIXED_L2 if section.l2 == "auto" else section.l2})


def train_cold(work: Workload, section: SolverSection, folder: Path) -> Trained:
    """Extract into an empty cache in `folder`, solve, calibrate and save there."""
    features = timed(lambda: extract_all(work.base, work.rows, section=cache_in(work.config, folder)))
    rest = train_from(work, features.value, section, folder)
    return rest._replace(seconds={"extraction": features.seconds, **rest.seconds})


def train_from(work: Workload, features: SplitFeatures, section: SolverSection, folder: Path) -> Trained:
    """Solve, calibrate and save, from features that are there."""
    solution = timed(lambda: fit(features, base=work.base, tools=work.tools, section=section))
    solved = make_head(
        solution.value,
        base=work.base,
        tools=work.tools,
        context=work.context,
        config=work.config,
        splits=work.splits,
    )
    seconds = {"solve": solution.seconds}
    head = solved
    if work.config.calibration.enabled:
        shifted = timed(
            lambda: calibrate_head(solved, features.validation, base=work.base, section=work.config.calibration)
        )
        head, seconds["calibration"] = shifted.value[0], shifted.seconds
    seconds["saving"] = timed(lambda: head.save(folder / "toolkens")).seconds
    return Trained(features, solution.value, head, seconds)


def cache_in(config: Config, folder: Path) -> FeaturesSection:
    """Return how features are extracted, with a cache in a folder of the benchmark's own."""
    return config.features.model_copy(update={"cache": folder / "cache"})
