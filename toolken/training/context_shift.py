"""How far the context of training lies from the context of use, in one number.

A linear row that is trained in one context is read in another: where the hidden states of use have moved away from
those of training, the margins move with them. This measures the move; it changes nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from toolken.errors import UserError

WARN_ABOVE = 0.5
"""Standard deviations (root mean square over dimensions) above which a run warns."""


def context_shift(training: Tensor, use: Tensor) -> float:
    """Return sqrt(mean over dimensions of ((mean_training - mean_use) / std_training)^2).

    Args:
        training: Hidden states (N, d) of training positions.
        use: Hidden states (M, d) at positions of the base's own answers.

    Dimensions that do not vary in training are left out. The means of M positions differ by chance alone: about 1 /
    sqrt(M).

    Raises:
        UserError: Fewer than two training positions, or none of use.
    """
    if len(training) < 2 or not len(use):
        raise UserError(
            "context shift", f"{len(training)} training and {len(use)} use positions", "it needs at least 2 and 1"
        )
    mean = _mean(training)
    squares = sum((part.double() - mean).square().sum(dim=0) for part in torch.split(training, 16384))
    deviation = torch.as_tensor(squares / (len(training) - 1)).sqrt()
    varies = deviation > 1e-6 * deviation.max()
    move = (mean - _mean(use))[varies] / deviation[varies]
    return float(move.square().mean().sqrt()) if len(move) else 0.0


def _mean(hidden: Tensor) -> Tensor:
    """Return the float64 mean (d,) of hidden states (N, d), in blocks."""
    return torch.as_tensor(sum(part.double().sum(dim=0) for part in torch.split(hidden, 16384)) / len(hidden))
