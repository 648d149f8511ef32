"""One minimisation of the loss over cached features, for one prior strength.

L-BFGS in preconditioned variables; the preconditioner is renewed as the search moves. It stops on the gradient in the
original rows and biases, never on the preconditioned one. For an affine transform the loss is convex, so where it
ends does not depend on where it starts; otherwise it ends at a stationary point near its start.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from toolken.training import preconditioner
from toolken.training.lbfgs import Point, minimise
from toolken.training.objective import Gradient, Prior, Terms, Transform, loss_and_gradient, toolken_logits
from toolken.training.preconditioner import Preconditioner

FIRST, STAGE = 10, 25
"""Iterations under a guessed preconditioner, and under every later one."""
NEWTON_STEPS = 30
PRIOR_SHARE = 0.3
"""The tolerance is at most so many times the prior strength."""


class Settings(NamedTuple):
    """How to search: the section's tolerance, iterations and block, and whether the bias is searched at all."""

    transform: Transform
    tolerance: float
    max_iterations: int
    block: int
    bias_free: bool
    affine: bool = True


class Optimum(NamedTuple):
    """Where a search ended; `curve` is (evaluation, loss) after every iteration."""

    weight: Tensor
    bias: Tensor
    gradient: Gradient
    evaluations: int
    iterations: int
    converged: bool
    curve: list[tuple[int, float]]
    scale: Preconditioner


def optimise(
    terms: Terms,
    weight: Tensor,
    bias: Tensor,
    *,
    prior: Prior,
    settings: Settings,
    scale: Preconditioner | None = None,
) -> Optimum:
    """Minimise from (weight (K, d), bias (K,)), in their dtype.

    `scale` is a preconditioner to begin with, of a problem much like this one. A stage that ends for lack of a lower
    loss is tried once more under a fresh preconditioner; then it is the end of the arithmetic.
    """
    anchor = torch.cat([weight, bias[:, None]], dim=1)  # (K, d + 1)
    guessed = scale is None and bool((weight == prior.mean).all()) and not bool(bias.any())
    if guessed:
        scale = preconditioner.guess(terms, len(weight), prior.l2, bias_free=settings.bias_free)
    # A weak prior pulls with little force; the search must not stop before it is felt.
    tolerance = min(settings.tolerance, PRIOR_SHARE * prior.l2) if prior.l2 else settings.tolerance
    evaluations, iterations, stuck = 0, 0, False
    curve: list[tuple[int, float]] = []
    while True:
        if scale is None:
            scale = preconditioner.at(
                terms,
                anchor,
                transform=settings.transform,
                l2=prior.l2,
                bias_free=settings.bias_free,
                block=settings.block,
            )
        scale = Preconditioner(scale.scale.to(weight.dtype))
        search = _Stage(terms, anchor, scale, prior, settings)
        stage = min(FIRST if guessed and not iterations else STAGE, settings.max_iterations - iterations)
        found = minimise(search, torch.zeros_like(anchor), tolerance=tolerance, max_iterations=stage)
        anchor = search.rows(found.point.x)
        curve += [(evaluations + at, loss) for at, loss in found.curve[1 if curve else 0 :]]
        evaluations += found.evaluations
        iterations += len(found.curve) - 1
        if found.converged or iterations >= settings.max_iterations or (stuck and found.stalled):
            break
        stuck, scale = found.stalled, None
    weight, bias = anchor[:, :-1].contiguous(), anchor[:, -1].contiguous()
    if settings.bias_free and settings.affine:
        bias = settle_bias(terms, weight, bias, transform=settings.transform, block=settings.block)
    gradient = loss_and_gradient(terms, weight, bias, transform=settings.transform, prior=prior, block=settings.block)
    return Optimum(weight, bias, gradient, evaluations + 1, iterations, found.converged, curve, scale)


def settle_bias(terms: Terms, weight: Tensor, bias: Tensor, *, transform: Transform, block: int) -> Tensor:
    """Return the bias (K,) that is optimal for these rows: Newton steps, which cost K numbers a position.

    With no gradient left in the bias, strong convexity in the rows alone bounds how far they are from the optimum.
    """
    raw = toolken_logits(terms.hidden, weight, torch.zeros_like(bias), transform=transform, block=block).double()
    gold = torch.nn.functional.one_hot(terms.toolken + 1, len(bias) + 1)[:, 1:].double()
    weights = torch.ones(len(raw), dtype=torch.float64) if terms.weights is None else terms.weights.double()
    weights = weights[:, None] / terms.total
    settled = bias.double()
    for _ in range(NEWTON_STEPS):
        logits = raw + settled
        total = torch.logaddexp(terms.base_lse.double(), torch.logsumexp(logits, dim=1))
        probability = torch.exp(logits - total[:, None])
        gradient = (weights * (probability - gold)).sum(dim=0)
        if float(gradient.abs().max()) < 1e-12:
            break
        hessian = torch.diag((weights * probability).sum(dim=0)) - (weights * probability).T @ probability
        step = torch.linalg.lstsq(hessian, gradient).solution
        settled = settled - step.clamp(-1, 1)
    return settled.to(bias.dtype)


class _Stage:
    """The loss as a function of the variables searched under one preconditioner."""

    def __init__(self, terms: Terms, anchor: Tensor, scale: Preconditioner, prior: Prior, settings: Settings) -> None:
        self.terms, self.anchor, self.scale, self.prior, self.settings = terms, anchor, scale, prior, settings

    def rows(self, searched: Tensor) -> Tensor:
        """Return rows and biases (K, d + 1)."""
        move = self.scale.outward(searched)
        if not self.settings.bias_free:
            move[:, -1] = 0
        return self.anchor + move

    def __call__(self, searched: Tensor) -> Point:
        rows = self.rows(searched)
        gradient = loss_and_gradient(
            self.terms,
            rows[:, :-1],
            rows[:, -1],
            transform=self.settings.transform,
            prior=self.prior,
            block=self.settings.block,
        )
        bias = gradient.bias if self.settings.bias_free else torch.zeros_like(gradient.bias)
        full = torch.cat([gradient.weight, bias[:, None]], dim=1)
        return Point(searched, gradient.loss, self.scale.gradient(full), float(full.abs().max()))
