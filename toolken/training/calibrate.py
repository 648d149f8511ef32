"""The shift of the bias, by an exact sweep over validation features.

Decoding picks a toolken where the largest toolken logit exceeds the largest word logit. Both are cached, so the
counts are step functions of the shift, known exactly from the sorted margins. One shift is shared by all tools; a
tool with enough validation calls then gets one of its own, by coordinate sweeps. Only the features that are passed in
are read: validation rows, never test rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from toolken.config import CalibrationSection
from toolken.metrics import Detection
from toolken.training.features import Features
from toolken.training.objective import Transform, toolken_logits

CURVE_POINTS = 400
OPEN_END = 2.0
"""Width given to an interval without an end, in logits: the shift then lies 1 inside it."""
ROUNDS = 10


class Counts(NamedTuple):
    """Step functions of a shift: entry j holds for the j lowest thresholds passed. Each (M + 1,) int64."""

    true_positives: Tensor
    false_positives: Tensor
    false_calls: Tensor


class Interval(NamedTuple):
    """Shifts in (low, high] that give the same, best value; `middle` is the one to take."""

    low: float
    high: float
    middle: float
    score: tuple[float, ...]


@dataclass(frozen=True)
class Calibration:
    """What to add to the bias.

    Attributes:
        shift: Shared by all tools.
        per_tool: (K,) float32 in all, the shared shift included: add this to the bias.
        own: (K,) bool, tools with a shift of their own.
        curve: At most 400 points of the shared sweep: shift, precision, recall, f1, false_calls_per_1000.
    """

    shift: float
    per_tool: Tensor
    own: Tensor
    curve: list[dict[str, float]]


def calibrate(
    features: Features,
    weight: Tensor,
    bias: Tensor,
    *,
    section: CalibrationSection,
    transform: Transform,
    allowed: Tensor | None = None,
) -> Calibration:
    """Choose the shift on validation features.

    Among shifts that are equally good the middle of the widest interval is taken, and among equally wide ones the
    nearest to 0.

    Args:
        features: Validation positions.
        weight: (K, d) rows.
        bias: (K,) as solved.
        section: The target.
        transform: The base's logit transform.
        allowed: (K,) bool, rows that decoding may pick; None: all.
    """
    tools = len(bias)
    logits = toolken_logits(features.hidden, weight, bias, transform=transform).double()  # (N, K)
    if allowed is not None:
        logits = logits.masked_fill(~allowed, -torch.inf)
    own = torch.zeros(tools, dtype=torch.bool)
    gold, base_max = features.toolken, features.base_max.double()
    if not len(features) or not bool((gold >= 0).any()) or not bool(logits.isfinite().any()):
        return Calibration(0.0, torch.zeros(tools), own, [])
    best, row = logits.max(dim=1)
    thresholds, counts = sweep(base_max - best, right=row == gold, word=gold < 0, before=None)
    score = _objective(section, gold)
    shared = choose(thresholds, counts, score)
    shifts = torch.full((tools,), shared.middle, dtype=torch.float64)
    positives = torch.bincount(gold[gold >= 0], minlength=tools)
    own = (positives >= section.per_tool_positives) & (allowed if allowed is not None else True)
    reached = shared.score
    for _ in range(ROUNDS):
        before = reached
        for tool in own.nonzero().squeeze(1).tolist():
            found = _one_tool(logits + shifts, base_max, gold, tool=tool, score=score)
            if found.score > reached:
                shifts[tool] += found.middle
                reached = found.score
        if reached == before:
            break
    return Calibration(shared.middle, shifts.float(), own, _curve(thresholds, counts, gold, shared.middle))


def sweep(
    thresholds: Tensor, *, right: Tensor, word: Tensor, before: tuple[Tensor, Tensor, Tensor] | None
) -> tuple[Tensor, Counts]:
    """Return the distinct thresholds (M,), ascending, and the counts between them.

    Args:
        thresholds: (N,) position t turns into a call of the swept tool where the shift is strictly above it.
        right: (N,) bool, that call is right.
        word: (N,) bool, a word is wanted there.
        before: (N,) bool each: below its threshold the position is a right call, a wrong call, a call at a word;
            None: it is no call.
    """
    none = torch.zeros_like(right)
    old_right, old_wrong, old_word = before or (none, none, none)
    finite = thresholds.isfinite()
    values, place = torch.unique(thresholds[finite], return_inverse=True)

    def steps(new: Tensor, old: Tensor) -> Tensor:
        change = (new.long() - old.long())[finite]
        jumps = torch.zeros(len(values), dtype=torch.int64).index_add(0, place, change)
        return old.sum() + torch.cat([jumps.new_zeros(1), jumps.cumsum(0)])

    return values, Counts(steps(right, old_right), steps(~right, old_wrong), steps(word, old_word))


def choose(thresholds: Tensor, counts: Counts, score: Callable[[Counts], list[Tensor]]) -> Interval:
    """Return the best interval of a sweep: best score, then widest, then nearest to 0. Equal neighbours are one."""
    columns = score(counts)
    best = torch.ones(len(thresholds) + 1, dtype=torch.bool)
    reached = []
    for column in columns:
        top = column[best].max()
        best &= column == top
        reached.append(float(top))
    edges = [-torch.inf, *thresholds.tolist(), torch.inf]
    found: list[Interval] = []
    index = best.nonzero().squeeze(1).tolist()
    first = 0
    for at, j in enumerate(index):
        if at + 1 < len(index) and index[at + 1] == j + 1:
            continue
        found.append(_interval(edges[index[first]], edges[j + 1], tuple(reached)))
        first = at + 1
    return max(found, key=lambda i: (min(i.high - i.low, 1e9), -abs(i.middle)))


def _interval(low: float, high: float, score: tuple[float, ...]) -> Interval:
    """Return the interval with its middle; one without an end takes the value nearest to 0 that lies 1 inside."""
    if low == -torch.inf and high == torch.inf:
        return Interval(low, high, 0.0, score)
    if low == -torch.inf:
        return Interval(high - OPEN_END, high, min(0.0, high - OPEN_END / 2), score)
    if high == torch.inf:
        return Interval(low, low + OPEN_END, max(0.0, low + OPEN_END / 2), score)
    return Interval(low, high, (low + high) / 2, score)


def _objective(section: CalibrationSection, gold: Tensor) -> Callable[[Counts], list[Tensor]]:
    """Return what is maximised, the first entry first."""
    positives, words = int((gold >= 0).sum()), int((gold < 0).sum())

    def f1(counts: Counts) -> Tensor:
        hits = counts.true_positives.double()
        return 2 * hits / (hits + counts.false_positives + positives)

    def recall(counts: Counts) -> list[Tensor]:
        allowed = counts.false_calls * 1000 <= section.false_calls_per_1000 * words
        # Where no shift keeps the limit, the fewest false calls win.
        return [
            allowed.double(),
            torch.where(allowed, 0, -counts.false_calls).double(),
            counts.true_positives.double(),
            f1(counts),
        ]

    return recall if section.target == "recall" else lambda counts: [f1(counts)]


def _one_tool(
    logits: Tensor, base_max: Tensor, gold: Tensor, *, tool: int, score: Callable[[Counts], list[Tensor]]
) -> Interval:
    """Sweep one tool's further shift while all others stay as they are."""
    others = logits.clone()
    others[:, tool] = -torch.inf
    best, row = others.max(dim=1)
    called = best > base_max
    right, word = called & (row == gold), gold < 0
    thresholds = torch.maximum(best, base_max) - logits[:, tool]
    return choose(
        *sweep(thresholds, right=gold == tool, word=word, before=(right, called & ~right, called & word)), score
    )


def _curve(thresholds: Tensor, counts: Counts, gold: Tensor, chosen: float) -> list[dict[str, float]]:
    """Sample the shared sweep from the first call to full recall, the chosen shift among the points."""
    positives, words = int((gold >= 0).sum()), int((gold < 0).sum())
    hits = counts.true_positives
    first, last = float(thresholds[0]) - 1, float(thresholds[max(int(hits.argmax()) - 1, 0)]) + 1
    shifts = torch.linspace(min(first, chosen), max(last, chosen), CURVE_POINTS - 1, dtype=torch.float64)
    shifts = torch.cat([shifts, torch.tensor([chosen], dtype=torch.float64)]).sort().values
    points = []
    for shift, j in zip(shifts.tolist(), torch.searchsorted(thresholds, shifts).tolist(), strict=True):
        found = Detection(int(hits[j]), int(counts.false_positives[j]), positives - int(hits[j]))
        points.append(
            {
                "shift": shift,
                "precision": found.precision.value if found.precision.n else 1.0,
                "recall": found.recall.value,
                "f1": found.f1,
                "false_calls_per_1000": 1000 * int(counts.false_calls[j]) / words if words else 0.0,
            }
        )
    return points
