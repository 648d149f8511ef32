"""The rows as the solution of a convex problem: no seed, no learning rate, no hand-picked epoch.

A tool without examples is left out: its row stays at the prior and is marked untrained. Rows that are held fixed act
in the softmax and keep their bytes. Without word positions the bias has no optimum, so it is fixed at 0 and left to
calibration. With a soft cap the loss is not convex: the result is the stationary point reached from the prior, and
says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from toolken.config import SolverSection
from toolken.errors import UserError
from toolken.training.convex import Optimum, Settings, optimise
from toolken.training.features import Features
from toolken.training.objective import Prior, Transform, toolken_logits
from toolken.training.selection import choose_l2

COPY_LIMIT = 2**32
"""Bytes of hidden states that are cast once; above it they are cast block by block at every evaluation."""


class Frozen(NamedTuple):
    """Rows that exist and stay: `weight` (K0, d), `bias` (K0,), and which `rows` of the head they are, int64 (K0,)."""

    weight: Tensor
    bias: Tensor
    rows: Tensor


@dataclass(frozen=True)
class Solution:
    """Rows of the whole head, and how they were found.

    Attributes:
        weight: (K, d) float32.
        bias: (K,) float32, before calibration.
        trained: (K,) bool; a row that is not trained must be masked in decoding.
        loss: Mean loss over training positions plus the prior, at the end.
        gradient_norm: Euclidean norm of the gradient in the rows at the end.
        distance_bound: Largest possible distance of the rows from the optimum under the prior, `gradient_norm / (2
            l2)` (the loss is `2 l2`-strongly convex in them); None where that does not hold.
        evaluations: Of loss and gradient, in the final solve.
        l2: Prior strength; None for `adam`.
        convex: Whether the optimum is unique.
        converged: Whether the tolerance was reached.
        curve: (evaluation, loss) after every iteration of the final solve.
        cross_validation: One record for every strength tried.
        log: One record for every epoch (`adam`): `epoch`, and numbers by the names that tracking gives them.
        alignment: How rows were aligned with the context of use, None if they were not; loss, gradient and bound are
            those of the solve, before rows were folded back.
    """

    weight: Tensor
    bias: Tensor
    trained: Tensor
    loss: float
    gradient_norm: float
    distance_bound: float | None
    evaluations: int
    l2: float | None
    convex: bool
    converged: bool
    curve: list[tuple[int, float]]
    cross_validation: list[dict[str, float]] = field(default_factory=list)
    log: list[dict[str, float]] = field(default_factory=list)
    alignment: dict[str, str | int | float] | None = None


def supervised(features: Features, section: SolverSection) -> Features:
    """Return the positions that `solver.positions` asks for, without the words where `solver.softmax` leaves them out.

    Raises:
        UserError: A softmax over toolkens alone is asked for at positions of words.
    """
    if section.positions == "all":
        if section.softmax == "toolkens":
            problem = "`toolkens` has no loss at the positions of words"
            raise UserError("solver.softmax", problem, "set solver.positions to toolken, or solver.softmax to all")
        return features
    kept = features.select(features.toolken >= 0)
    if section.softmax == "all":
        return kept
    return replace(kept, base_lse=torch.full_like(kept.base_lse, -torch.inf))


def solve(
    features: Features,
    tools: int,
    *,
    section: SolverSection,
    transform: Transform,
    affine: bool,
    prior: Tensor,
    frozen: Frozen | None = None,
    start: Tensor | None = None,
    progress: bool = False,
) -> Solution:
    """Solve for the rows of all tools that have examples and are not frozen.

    Args:
        features: Training positions; `toolken` counts rows of the whole head.
        tools: Rows of the whole head, K.
        section: Settings; `l2: auto` runs the cross-validation first.
        transform: The base's logit transform.
        affine: Whether it is affine.
        prior: (K, d) what the rows are pulled to; not read for frozen rows.
        frozen: Rows that keep their values.
        start: (K, d) rows to start from; None: the prior.
        progress: Show a progress bar of the cross-validation on stderr.

    Raises:
        UserError: No tool has an example, or `auto` has too few examples.
    """
    features = supervised(features, section)
    dtype = torch.float32 if section.precision == "float32" else torch.float64
    counts = torch.bincount(features.toolken[features.toolken >= 0], minlength=tools)
    free = counts > 0
    if frozen is not None:
        free[frozen.rows] = False
        features = fold(features, frozen, transform)
    if not bool(free.any()):
        raise UserError("training data", "no tool that is to be trained has an example", "add examples with calls")
    rows = free.nonzero().squeeze(1)
    features = _renumber(_cast_once(features, dtype), rows, tools)
    words = bool((features.toolken < 0).any())
    settings = Settings(transform, section.tolerance, section.max_iterations, section.block, words, affine)
    mean = prior[rows].to(dtype)
    if section.l2 == "auto":
        l2, records = choose_l2(features, mean, section=section, settings=settings, progress=progress)
    else:
        l2, records = section.l2, []
    weight = mean if start is None else start[rows].to(dtype)
    found = optimise(features.terms(), weight, mean.new_zeros(len(rows)), prior=Prior(l2, mean), settings=settings)
    return _solution(found, rows, prior, frozen, l2=l2, convex=affine, records=records)


def fold(features: Features, frozen: Frozen, transform: Transform) -> Features:
    """Fold fixed rows into the base: `base_lse` takes them in; where one is gold, the position becomes a word."""
    if not len(frozen.rows):
        return features
    logits = toolken_logits(features.hidden, frozen.weight, frozen.bias, transform=transform)  # (N, K0)
    lse = torch.logaddexp(features.base_lse, torch.logsumexp(logits, dim=1))
    place = torch.full((max(int(features.toolken.max()), int(frozen.rows.max())) + 2,), -1, dtype=torch.int64)
    place[frozen.rows] = torch.arange(len(frozen.rows))
    column = place[features.toolken]  # -1 reads the last entry, which is -1
    at = (column >= 0).nonzero().squeeze(1)
    target = features.base_target.index_copy(0, at, logits[at, column[at]].to(features.base_target.dtype))
    return replace(features, base_lse=lse, base_target=target, toolken=features.toolken.index_fill(0, at, -1))


def _cast_once(features: Features, dtype: torch.dtype) -> Features:
    """Return features whose hidden states are in the arithmetic of the solve, where that copy is affordable."""
    if features.hidden.numel() * dtype.itemsize > COPY_LIMIT:
        return features
    return replace(features, hidden=features.hidden.to(dtype))


def _renumber(features: Features, rows: Tensor, tools: int) -> Features:
    """Return features whose `toolken` counts only the given rows of the head."""
    new = torch.full((tools + 1,), -1, dtype=torch.int64)
    new[rows] = torch.arange(len(rows))
    return replace(features, toolken=new[features.toolken])  # -1 reads the last entry, which is -1


def _solution(
    found: Optimum,
    rows: Tensor,
    prior: Tensor,
    frozen: Frozen | None,
    *,
    l2: float,
    convex: bool,
    records: list[dict[str, float]],
) -> Solution:
    """Put solved, frozen and untrained rows into one head."""
    weight, bias = prior.to(torch.float32).clone(), torch.zeros(len(prior))
    trained = torch.zeros(len(prior), dtype=torch.bool)
    weight[rows], bias[rows] = found.weight.float(), found.bias.float()
    trained[rows] = True
    if frozen is not None:
        weight[frozen.rows], bias[frozen.rows] = frozen.weight, frozen.bias
        trained[frozen.rows] = True
    norm = float(found.gradient.weight.double().norm())
    return Solution(
        weight=weight,
        bias=bias,
        trained=trained,
        loss=found.gradient.loss,
        gradient_norm=norm,
        distance_bound=norm / (2 * l2) if convex and l2 > 0 else None,
        evaluations=found.evaluations,
        l2=l2,
        convex=convex,
        converged=found.converged,
        curve=found.curve,
        cross_validation=records,
    )
