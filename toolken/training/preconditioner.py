"""A change of variables under which the loss is nearly round, so that few evaluations find its minimum.

Hidden states have norms of 30 to 150, a large common mean and a few huge dimensions; the plain problem is so
ill-conditioned that a float32 solve stops early. Row k (with its bias) is searched as `(w_k, b_k) = anchor_k + u_k
A_k`, where `A_k^T A_k` is the inverse of row k's own block of the (Gauss-Newton) Hessian at the anchor. A change of
variables moves no optimum: the prior stays on `w`. Where K blocks are too large to hold, all rows share the mean one.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from toolken.training.objective import Terms, Transform

MOST_ENTRIES = 2**28
"""Entries of all blocks together, above which one block is shared."""
NEGLIGIBLE = 1e-3
"""Positions below this share of a block's largest weight are left out of it."""


class Preconditioner(NamedTuple):
    """`scale` is (K, d + 1, d + 1) or, shared, (1, d + 1, d + 1); the last column is the bias."""

    scale: Tensor

    def outward(self, searched: Tensor) -> Tensor:
        """Return the move of rows and biases (K, d + 1) for searched variables u (K, d + 1)."""
        return torch.einsum("ki,kij->kj", searched, self.scale.expand(len(searched), -1, -1))

    def gradient(self, gradient: Tensor) -> Tensor:
        """Return the gradient in u for the gradient in rows and biases, both (K, d + 1)."""
        return torch.einsum("kj,kij->ki", gradient, self.scale.expand(len(gradient), -1, -1))


def guess(terms: Terms, tools: int, l2: float, *, bias_free: bool) -> Preconditioner:
    """Return the block of a start without knowledge: half of a row's weight on toolken positions, half on all."""
    toolken = terms.toolken >= 0
    share = toolken.double().mean() / max(tools, 1)
    weights = (0.5 * share).expand(len(toolken)) + toolken * (0.5 / max(tools, 1))
    return Preconditioner(_factor(terms, weights.to(torch.float32), l2, bias_free=bias_free)[None])


def at(
    terms: Terms, rows: Tensor, *, transform: Transform, l2: float, bias_free: bool, block: int = 16384
) -> Preconditioner:
    """Return the blocks of the Hessian at rows and biases (K, d + 1): weights p(1 - p) f'^2 of every position."""
    weight, bias = rows[:, :-1], rows[:, -1]
    curvature = torch.cat(
        [_curvature(terms, slice(s, s + block), weight, bias, transform) for s in range(0, len(terms.hidden), block)]
    )  # (N, K)
    tools, width = weight.shape
    if tools * (width + 1) ** 2 > MOST_ENTRIES:
        return Preconditioner(_factor(terms, curvature.mean(dim=1), l2, bias_free=bias_free)[None])
    return Preconditioner(torch.stack([_factor(terms, column, l2, bias_free=bias_free) for column in curvature.T]))


def _curvature(terms: Terms, part: slice, weight: Tensor, bias: Tensor, transform: Transform) -> Tensor:
    """Return p(1 - p) f'^2 (n, K) of some positions."""
    raw = (terms.hidden[part].to(weight.dtype) @ weight.T).requires_grad_()
    with torch.enable_grad():
        curved = transform(raw)
        (slope,) = torch.autograd.grad(curved.sum(), raw)
    logits = curved.detach() + bias
    total = torch.logaddexp(terms.base_lse[part].to(logits.dtype), torch.logsumexp(logits, dim=1))
    probability = torch.exp(logits - total[:, None])
    curvature = probability * (1 - probability) * slope.square()
    return curvature if terms.weights is None else curvature * terms.weights[part, None].to(logits.dtype)


def _factor(terms: Terms, weights: Tensor, l2: float, *, bias_free: bool) -> Tensor:
    """Return A (d + 1, d + 1), A^T A the inverse of `sum_t weights_t x_t x_t^T / total + 2 l2 I`.

    `x` is (h, 1), or (h, 0) where the bias is fixed.
    """
    width = terms.hidden.shape[1]
    kept = (weights > NEGLIGIBLE * weights.max()).nonzero().squeeze(1)
    most = max(8192, 4 * width)
    stride = -(-len(kept) // most) if len(kept) else 1
    kept = kept[::stride]  # evenly spaced: enough for a preconditioner, and flat in N
    root = (weights[kept] * stride).sqrt().to(torch.float32)
    rows = torch.empty(len(kept), width + 1)  # filled in place: it is the largest tensor of a solve but the data
    hidden = rows[:, :width]
    hidden.copy_(terms.hidden[kept])
    # Centred, because float32 products drown in the common mean; the last line of the factor undoes it exactly.
    mean = root.square() @ hidden / root.square().sum() if bias_free else hidden.new_zeros(width)
    hidden.sub_(mean).mul_(root[:, None])
    rows[:, width] = root * bias_free
    hessian = (rows.T @ rows).double() / terms.total
    diagonal = hessian.diagonal()
    floor = 1e-9 * float(diagonal.mean()) + 1e-12
    diagonal[:-1] += 2 * l2  # the bias is free of the prior
    diagonal += floor
    factor, failed = torch.linalg.cholesky_ex(hessian)
    while int(failed):
        floor *= 10
        diagonal += floor
        factor, failed = torch.linalg.cholesky_ex(hessian)
    identity = torch.eye(width + 1, dtype=hessian.dtype)
    scale: Tensor = torch.linalg.solve_triangular(factor, identity, upper=False)
    scale[:, -1] -= scale[:, :-1] @ mean.double()
    return scale
