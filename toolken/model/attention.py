"""Attention for contexts that begin alike: what they share is read once for all of them, not once for each.

`attend` is what transformers calls `sdpa`, and hands over to it, unless the keys say that more of them lie elsewhere
(`mark`). Then every query also attends to the shared keys of its row, and the two results are put together by their
logsumexp, `o = o1 + sigmoid(l2 - l1) (o2 - o1)`, which is the softmax over all keys. It is registered with
transformers under `SHARED_PREFIX` and chosen when a model is loaded; a model that a user hands over stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

SHARED_PREFIX = "toolken_shared_prefix"
_MARK = "toolken_parts"


class Part(NamedTuple):
    """Keys (1, heads, P, d_k) and values (1, heads, P, d_v) of a layer that so many rows start with; None: nothing."""

    rows: int
    keys: Tensor | None
    values: Tensor | None


class Shared(NamedTuple):
    """What the rows of a batch have in front of a layer's keys.

    Attributes:
        parts: Every row is in one of them.
        order: Rows in the order of the parts; None where that is their own order.
        place: Where each row stands in `order`.
        masks: The mask that is added, kept from layer to layer of one pass.
    """

    parts: Sequence[Part]
    order: Tensor | None
    place: Tensor | None
    masks: dict[int, Tensor]


def mark(keys: Tensor, shared: Shared) -> Tensor:
    """Say of the keys of a layer that rows have more of them in front."""
    setattr(keys, _MARK, shared)
    return keys


def attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Return the attention output (B, T, heads, d_v) of queries (B, heads, T, d_k); the mask is that of `key` alone."""
    shared: Shared | None = getattr(key, _MARK, None)
    if shared is None:
        plain: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **others
        )
        return plain
    batch, heads, length, size = query.shape
    groups = heads // key.shape[1]
    # The queries of the heads that share keys stand below each other: (B, key heads, groups * T, d).
    grouped = query.reshape(batch, key.shape[1], groups * length, size)
    if groups * length not in shared.masks:
        shared.masks[groups * length] = _additive(attention_mask, length, query).repeat(1, 1, groups, 1)
    out, lse = _flash(grouped, key, value, shared.masks[groups * length], scaling)
    front, front_lse = _attend_to_parts(grouped, shared, scaling)
    whole = torch.lerp(out.float(), front.float(), torch.sigmoid(front_lse - lse)[..., None])
    return whole.to(query.dtype).reshape(batch, heads, length, -1).transpose(1, 2).contiguous(), None


def _attend_to_parts(query: Tensor, shared: Shared, scaling: float | None) -> tuple[Tensor, Tensor]:
    """Return output (B, heads, T, d) and logsumexp (B, heads, T) of queries over the part of their row."""
    ordered = query if shared.order is None else query[shared.order]
    outs, lses = [], []
    sizes = [part.rows for part in shared.parts]
    for part, rows in zip(shared.parts, torch.split(ordered, sizes), strict=True):
        heads, length = rows.shape[1:3]
        if part.keys is None or part.values is None:
            outs.append(torch.zeros_like(rows))
            lses.append(torch.full(rows.shape[:3], -torch.inf))
            continue
        # One context for all rows of a part: their queries stand below each other, and keys are read once.
        below = rows.transpose(0, 1).reshape(1, heads, -1, rows.shape[3])
        out, lse = _flash(below, part.keys, part.values, None, scaling)
        outs.append(out.reshape(heads, part.rows, length, -1).transpose(0, 1))
        lses.append(lse.reshape(heads, part.rows, length).transpose(0, 1))
    if shared.place is None:
        return torch.cat(outs), torch.cat(lses)
    return torch.cat(outs)[shared.place], torch.cat(lses)[shared.place]


def choose_shared_prefix(model: PreTrainedModel) -> None:
    """Have a model that was loaded for the CPU attend through `attend`, where it would use `sdpa`."""
    if model.config._attn_implementation == "sdpa" and model.device.type == "cpu":
        model.set_attn_implementation(SHARED_PREFIX)


def may_share(model: PreTrainedModel) -> bool:
    """Return whether rows of a batch may have keys in common: every layer sees every position, through `attend`."""
    config: Any = model.config.get_text_config(decoder=True)
    full = set(getattr(config, "layer_types", None) or ()) <= {"full_attention"}
    return full and config._attn_implementation == SHARED_PREFIX and not getattr(config, "sliding_window", None)


def _additive(mask: Tensor | None, length: int, query: Tensor) -> Tensor:
    """Return a mask (B or 1, 1, T, keys) that is added; without one a first pass is causal, a single query sees all."""
    if mask is None:
        mask = query.new_ones((1, 1, length, length), dtype=torch.bool).tril()
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=query.dtype).masked_fill_(~mask, -torch.inf)


def _flash(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float | None
) -> tuple[Tensor, Tensor]:
    """Return output (B, heads, T, d) and float32 logsumexp (B, heads, T)."""
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, 0.0, False, attn_mask=mask, scale=scaling
    )
    return out, lse


AttentionInterface.register(SHARED_PREFIX, attend)
AttentionMaskInterface.register(SHARED_PREFIX, sdpa_mask)
