"""The published recipe, over cached features: Adam, one sequence a step, random rows, no bias, a constant rate.

The frozen base is not run again, because nothing that it computes depends on the rows; the losses are those of the
dense computation. Every epoch is evaluated on validation rows and the one with the best F1 (then the lower loss) is
kept.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import torch
from torch import Tensor
from tqdm import trange

from toolken.config import SolverSection
from toolken.errors import UserError
from toolken.training.decisions import decide, detections, total
from toolken.training.features import Features
from toolken.training.objective import Gradient, Terms, Transform, loss_and_gradient
from toolken.training.solver import Solution, supervised


def initial_rows(tools: int, width: int, seed: int) -> Tensor:
    """Return (K, d) rows drawn as `torch.nn.Linear` draws them (Kaiming uniform): uniform within 1 / sqrt(d)."""
    bound = 1 / math.sqrt(width)
    generator = torch.Generator().manual_seed(seed)
    return torch.empty(tools, width).uniform_(-bound, bound, generator=generator)


def train_adam(
    features: Features,
    validation: Features,
    tools: int,
    *,
    section: SolverSection,
    transform: Transform,
    progress: bool = False,
) -> Solution:
    """Train all rows with Adam (Hao et al. 2023, arXiv 2305.11554, section 3.2) and keep the best epoch.

    Args:
        features: Training positions.
        validation: Positions on which epochs are compared; without any, the last epoch is kept.
        tools: Rows, K.
        section: `lr`, `epochs`, `seed` and `positions`.
        transform: The base's logit transform.
        progress: Show a progress bar on stderr.

    Raises:
        UserError: No tool has an example.
    """
    features = supervised(features, section)
    trained = torch.bincount(features.toolken[features.toolken >= 0], minlength=tools) > 0
    if not bool(trained.any()):
        raise UserError("training data", "no tool has an example", "add examples with calls")
    steps = _sequences(features)
    rows = torch.nn.Parameter(initial_rows(tools, features.hidden.shape[1], section.seed))
    optimiser = torch.optim.Adam([rows], lr=section.lr)
    order = torch.Generator().manual_seed(section.seed)
    log: list[dict[str, float]] = []
    best, kept = (-1.0, -math.inf), rows.detach().clone()
    for epoch in trange(section.epochs, desc="adam", unit="epoch", disable=None if progress else True, file=sys.stderr):
        shuffled = torch.randperm(len(steps), generator=order).tolist()
        loss = _epoch(optimiser, rows, [steps[number] for number in shuffled], transform)
        record = {"epoch": epoch + 1, "train/loss": loss}
        record |= _evaluate(validation, rows.detach(), trained, section=section, transform=transform)
        log.append(record)
        reached = (record.get("validation/f1", 0.0), -record.get("validation/loss", 0.0))
        if reached > best or not len(validation):
            best, kept = reached, rows.detach().clone()
    end = _loss(features, kept, section=section, transform=transform)
    return _solution(kept, trained, log, end=end, steps=len(steps))


def _epoch(optimiser: torch.optim.Adam, rows: torch.nn.Parameter, steps: list[Terms], transform: Transform) -> float:
    """Take one step for every sequence; return the mean of their losses, each before its step."""
    none = torch.zeros(len(rows))
    losses = 0.0
    for step in steps:
        found = loss_and_gradient(step, rows.detach(), none, transform=transform)
        rows.grad = found.weight
        optimiser.step()
        losses += found.loss
    return losses / len(steps)


def _solution(rows: Tensor, trained: Tensor, log: list[dict[str, float]], *, end: Gradient, steps: int) -> Solution:
    return Solution(
        weight=rows,
        bias=torch.zeros(len(rows)),
        trained=trained,
        loss=end.loss,
        gradient_norm=float(end.weight.double().norm()),
        distance_bound=None,
        evaluations=steps * len(log),
        l2=None,
        convex=False,
        converged=False,
        curve=[(steps * (i + 1), record["train/loss"]) for i, record in enumerate(log)],
        log=log,
    )


def _sequences(features: Features) -> list[Terms]:
    """Return the positions of every example; the loss of a step is their mean."""
    by_example = features.example.argsort(stable=True)
    counts = torch.unique(features.example, return_counts=True)[1].tolist()
    parts = (features.select(rows) for rows in torch.split(by_example, counts))
    return [replace(part, hidden=part.hidden.float()).terms() for part in parts]


def _loss(features: Features, rows: Tensor, *, section: SolverSection, transform: Transform) -> Gradient:
    """Return mean loss and gradient over all positions."""
    return loss_and_gradient(features.terms(), rows, torch.zeros(len(rows)), transform=transform, block=section.block)


def _evaluate(
    validation: Features, rows: Tensor, trained: Tensor, *, section: SolverSection, transform: Transform
) -> dict[str, float]:
    """Return validation loss (of the supervised positions) and F1 (over all positions); nothing without rows."""
    if not len(validation):
        return {}
    scored = supervised(validation, section)
    decisions = decide(validation, rows, torch.zeros(len(rows)), transform, allowed=trained)
    found = total(detections(decisions, len(rows)))
    loss = _loss(scored, rows, section=section, transform=transform).loss if len(scored) else math.nan
    return {"validation/loss": loss, "validation/f1": found.f1, "validation/recall": found.recall.value}
