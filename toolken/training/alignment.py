"""Context alignment: rows that are learnt in one context and read in another, by the moments of both.

A linear row reads hidden states. Where training text and use differ (prose against questions), the hidden states of
use have another mean and another spread, and margins move with them. From unlabelled hidden states of use alone,
most of that is undone: rows are solved on standardised states and folded back into plain rows,

    u = A_train (h - m_train),   z = W_u u + b_u   in training,
    z = W h + b,   W = W_u A_use,   b = b_u - W m_use   in use,

with `A = S^(-1/2)`, `S` the covariance of the context: its diagonal (`moments`), or all of it, shrunk towards the
diagonal (`covariance`). `mean` moves by the means alone, `A_use = A_train`. The moment matching is that of CORAL (Sun
and Saenko 2016, arXiv 1607.01719). The objective stays convex; the prior acts on `W_u`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor

from toolken.config import AlignSection
from toolken.errors import UserError
from toolken.training.objective import Transform

BLOCK = 16384
FLOOR = 1e-6
"""Smallest variance, as a share of the largest, that is divided by."""


@dataclass(frozen=True)
class Moments:
    """Mean (d,) and inverse square root (d, d) of the covariance of hidden states, float64."""

    mean: Tensor
    whitening: Tensor

    @classmethod
    def of(cls, hidden: Tensor, *, section: AlignSection) -> Moments:
        """Measure hidden states (N, d); see `AlignSection` for the kinds."""
        count, width = hidden.shape
        mean = (
            sum((part.double().sum(dim=0) for part in torch.split(hidden, BLOCK)), torch.zeros(width).double()) / count
        )
        scatter = torch.zeros(width, width, dtype=torch.float64)
        for part in torch.split(hidden, BLOCK):
            centred = part.double() - mean
            scatter += centred.T @ centred
        covariance = scatter / (count - 1)
        variance = covariance.diagonal().clone()
        if section.method == "covariance":
            shrunk = (1 - section.shrinkage) * covariance + section.shrinkage * variance.diag()
            values, vectors = torch.linalg.eigh(shrunk)
            scale = values.clamp(min=FLOOR * float(values.max())).rsqrt()
            return cls(mean, (vectors * scale) @ vectors.T)
        return cls(mean, variance.clamp(min=FLOOR * float(variance.max())).rsqrt().diag())


@dataclass(frozen=True)
class Alignment:
    """The way from training to use.

    Attributes:
        training: Moments of training positions.
        use: Moments of positions of use.
        record: What an artefact says about it.
    """

    training: Moments
    use: Moments
    record: dict[str, str | int | float]

    @classmethod
    def between(cls, training: Tensor, use: Tensor, *, section: AlignSection) -> Alignment:
        """Measure both contexts.

        Args:
            training: Hidden states (N, d) that rows are learnt from.
            use: Hidden states (M, d) at positions of use.
            section: Kind and shrinkage.

        Raises:
            UserError: Fewer than two positions on one side, or hidden states that are not finite.
        """
        if min(len(training), len(use)) < 2:
            problem = f"{len(training)} training and {len(use)} use positions have no moments"
            raise UserError("align", problem, "name more questions in align.questions, or set align.method to none")
        if not all(bool(part.isfinite().all()) for side in (training, use) for part in torch.split(side, BLOCK)):
            raise UserError("align", "hidden states are not finite", "check the base, or set base.dtype float32")
        before, after = Moments.of(training, section=section), Moments.of(use, section=section)
        if section.method == "mean":
            after = Moments(after.mean, before.whitening)
        digest = hashlib.sha256(use.float().contiguous().numpy().tobytes()).hexdigest()
        record = {
            "method": section.method,
            "positions": section.positions,
            "shrinkage": section.shrinkage,
            "training": len(training),
            "use": len(use),
            "sha256": digest,
        }
        return cls(before, after, record)

    def standardise(self, hidden: Tensor) -> Tensor:
        """Return u (N, d), float32, of hidden states (N, d) of training."""
        out = torch.empty(hidden.shape, dtype=torch.float32)
        for start in range(0, len(hidden), BLOCK):
            part = hidden[start : start + BLOCK].double() - self.training.mean
            out[start : start + BLOCK] = part @ self.training.whitening
        return out

    def unfold(self, weight: Tensor) -> Tensor:
        """Return rows over u whose folded rows are `weight` (K, d): what a prior over plain rows means there."""
        over: Tensor = torch.linalg.solve(self.use.whitening, weight.double().T).T
        return over.to(weight.dtype)

    def fold(self, weight: Tensor, bias: Tensor, *, transform: Transform) -> tuple[Tensor, Tensor]:
        """Return plain rows (K, d) and biases (K,) from those over u; `transform` must be affine."""
        plain = weight.double() @ self.use.whitening
        moved = transform((plain @ self.use.mean).float()) - transform(torch.zeros(len(plain)))
        return plain.to(weight.dtype), bias - moved.to(bias.dtype)
