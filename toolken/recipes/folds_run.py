"""`eval --folds`: how well toolkens are picked, by K-fold cross-validation over training rows, for several solvers.

Every fold is solved without its rows and decided on them, so that each training row is scored once by rows that have
not seen it. Validation rows are scored by rows solved on all training rows. Biases are as solved: nothing is shifted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from toolken.config import Config, SolverSection
from toolken.errors import UserError
from toolken.metrics import Detection, Rate
from toolken.model.base import BaseLM
from toolken.recipes.alignment import refuse_alignment
from toolken.recipes.preparation import align_splits, load_base, load_context, load_splits, load_tool_set
from toolken.recipes.solving import SplitFeatures, extract_all, fit
from toolken.tools.toolset import ToolSet
from toolken.training.decisions import Decisions, decide, detections, false_calls, total
from toolken.training.features import Features
from toolken.training.selection import assign_folds
from toolken.training.solver import Solution


def parse_method(method: str, section: SolverSection) -> SolverSection:
    """Return the solver that `convex`, `convex:1e-4` (an l2) or `adam:1e-3` (a learning rate) names.

    Raises:
        UserError: No such solver, or no such number.
    """
    kind, _, value = method.partition(":")
    try:
        number = float(value) if value else None
    except ValueError:
        raise UserError("--methods", f"`{method}` has no number after the colon", "write `adam:1e-3`") from None
    if kind == "convex":
        return section.model_copy(update={"kind": "convex", "l2": section.l2 if number is None else number})
    if kind == "adam":
        return section.model_copy(update={"kind": "adam", "lr": section.lr if number is None else number})
    raise UserError("--methods", f"no solver `{kind}`", "use `convex`, `convex:1e-4` or `adam:1e-3`")


def cross_validate(config: Config, methods: Sequence[str], folds: int) -> list[dict[str, object]]:
    """Return one record for each method: F1 with interval and false calls, over folds and on validation rows.

    Raises:
        UserError: Settings or data are at fault, or the settings align rows.
    """
    refuse_alignment(config, "cross-validation")
    sections = [parse_method(method, config.solver) for method in methods]
    tools = load_tool_set(config.tools, config.data.root)
    splits = load_splits(config.data, tools.names)
    base = load_base(config.base)
    context = load_context(config, base=base, tools=tools, examples=splits.train)
    rows = align_splits(splits, context.prompt, base=base, tools=tools.names, section=config.data)
    features = extract_all(base, rows._replace(unseen=[]), section=config.features)
    records: list[dict[str, object]] = []
    for method, section in zip(methods, sections, strict=True):
        print(f"{method}: {folds} folds", file=sys.stderr)
        held_out, words = _over_folds(features, section, folds=folds, base=base, tools=tools)
        solution = fit(features, base=base, tools=tools, section=section)
        decisions = _decide(features.validation, solution, base)
        records.append(
            {
                "method": method,
                "l2": solution.l2,
                "folds": _record(held_out, words),
                "validation": _record(total(detections(decisions, len(tools))), false_calls(decisions)),
            }
        )
    return records


def _over_folds(
    features: SplitFeatures, section: SolverSection, *, folds: int, base: BaseLM, tools: ToolSet
) -> tuple[Detection, Rate]:
    fold = assign_folds(features.train, folds)
    found, words = Detection(0, 0, 0), Rate(0, 0)
    for number in range(folds):
        part = SplitFeatures(features.train.select(fold != number), features.validation, features.unseen)
        solution = fit(part, base=base, tools=tools, section=section)
        decisions = _decide(features.train.select(fold == number), solution, base)
        found += total(detections(decisions, len(tools)))
        calls = false_calls(decisions)
        words = Rate(words.hits + calls.hits, words.n + calls.n)
    return found, words


def _decide(features: Features, solution: Solution, base: BaseLM) -> Decisions:
    return decide(features, solution.weight, solution.bias, base.transform, allowed=solution.trained)


def _record(found: Detection, words: Rate) -> dict[str, object]:
    return {**found.as_dict(), "false_calls": words.as_dict()}
