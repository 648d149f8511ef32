"""The loss over cached features and its gradient in closed form, in blocks of positions.

    loss = sum_t w_t [logaddexp(base_lse_t, logsumexp(z_t)) - target_t] / total + l2 * sum_k ||w_k - w0_k||^2
    z_t = f(W h_t) + b

`target_t` is `z_t[gold]` at a toolken position and the cached logit of the gold word elsewhere. This is the
cross-entropy over the word and toolken logits together, with no vocabulary in sight. The bias is free of the prior.
Sums are taken in float64 whatever the arithmetic is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

Transform = Callable[[Tensor], Tensor]


class Terms(NamedTuple):
    """What the loss is taken over: rows of the same N positions.

    Attributes:
        hidden: (N, d), any float dtype; cast block by block to the arithmetic of the rows.
        base_lse: (N,) logsumexp of the word logits (and of rows that are held fixed).
        base_target: (N,) logit of the gold word; not read at toolken positions.
        toolken: (N,) gold row, -1 for a word.
        weights: (N,) weight of every position, or None for 1.
        total: What the weighted sum is divided by.
    """

    hidden: Tensor
    base_lse: Tensor
    base_target: Tensor
    toolken: Tensor
    weights: Tensor | None
    total: float


class Prior(NamedTuple):
    """`l2 * sum ||w_k - mean_k||^2`; `mean` is (K, d)."""

    l2: float
    mean: Tensor


class Gradient(NamedTuple):
    """Loss (a float64 number), and its gradient in the rows (K, d) and biases (K,), in their dtype."""

    loss: float
    weight: Tensor
    bias: Tensor


def loss_and_gradient(
    terms: Terms, weight: Tensor, bias: Tensor, *, transform: Transform, prior: Prior | None = None, block: int = 16384
) -> Gradient:
    """Return loss and gradient at (weight (K, d), bias (K,)), in the dtype of `weight`.

    The gradient in z is `p_k - [k is gold]`, with `p_k` the probability of row k beside all words; only the K columns
    of the raw logits pass through autograd, for the slope of `transform`.
    """
    loss = torch.zeros((), dtype=torch.float64)
    weight_gradient, bias_gradient = torch.zeros_like(weight), torch.zeros_like(bias)
    for start in range(0, terms.hidden.shape[0], block):
        part = slice(start, start + block)
        hidden = terms.hidden[part].to(weight.dtype)  # (n, d)
        raw = (hidden @ weight.T).requires_grad_()  # (n, K)
        with torch.enable_grad():
            curved = transform(raw)
        losses, slope = _position_losses(terms, part, curved.detach() + bias)
        if terms.weights is not None:
            weights = terms.weights[part].to(weight.dtype)
            losses, slope = losses * weights, slope * weights[:, None]
        slope = slope / terms.total
        (raw_slope,) = torch.autograd.grad(curved, raw, slope)
        loss += losses.sum(dtype=torch.float64) / terms.total
        weight_gradient += raw_slope.T @ hidden
        bias_gradient += slope.sum(dim=0)
    if prior is not None:
        away = weight - prior.mean.to(weight.dtype)
        loss += prior.l2 * away.square().sum(dtype=torch.float64)
        weight_gradient += 2 * prior.l2 * away
    return Gradient(float(loss), weight_gradient, bias_gradient)


def _position_losses(terms: Terms, part: slice, logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss (n,) of every position and its gradient (n, K) in the toolken logits (n, K)."""
    toolken = terms.toolken[part]
    base_lse, target = terms.base_lse[part].to(logits.dtype), terms.base_target[part].to(logits.dtype)
    total = torch.logaddexp(base_lse, torch.logsumexp(logits, dim=1)) if logits.shape[1] else base_lse
    slope = torch.exp(logits - total[:, None])  # p_k
    at = (toolken >= 0).nonzero().squeeze(1)
    gold = toolken[at]
    target = target.index_copy(0, at, logits[at, gold])
    slope[at, gold] -= 1
    return total - target, slope


def position_losses(terms: Terms, weight: Tensor, bias: Tensor, *, transform: Transform, block: int = 16384) -> Tensor:
    """Return the loss (N,) of every position, unweighted, in the dtype of `weight`."""
    out = []
    for start in range(0, terms.hidden.shape[0], block):
        part = slice(start, start + block)
        logits = transform(terms.hidden[part].to(weight.dtype) @ weight.T) + bias
        out.append(_position_losses(terms, part, logits)[0])
    return torch.cat(out) if out else weight.new_zeros(0)


def toolken_logits(hidden: Tensor, weight: Tensor, bias: Tensor, *, transform: Transform, block: int = 16384) -> Tensor:
    """Return `f(W h) + b` (N, K) in the dtype of `weight`, block by block; hidden is (N, d) in any float dtype."""
    blocks = (
        [transform(part.to(weight.dtype) @ weight.T) + bias for part in torch.split(hidden, block)]
        if len(hidden)
        else []
    )
    return torch.cat(blocks) if blocks else weight.new_zeros(0, weight.shape[0])
