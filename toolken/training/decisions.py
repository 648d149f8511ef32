"""What decoding would pick at every cached position: the one code path behind selection, calibration and reports.

A toolken is picked where the largest toolken logit is strictly greater than the largest word logit; otherwise a word
is. Which word does not matter here: a word where a word is wanted counts as right. Rows that are not allowed
(untrained ones) are never picked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from toolken.metrics import Detection, Rate
from toolken.training.features import Features
from toolken.training.objective import Transform, toolken_logits


class Decisions(NamedTuple):
    """Rows of the same N positions: `predicted` and `gold` (-1 for a word), both int64."""

    predicted: Tensor
    gold: Tensor


def pick(logits: Tensor, base_max: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Return the picked row (N,), -1 for a word, from toolken logits (N, K) and the largest word logit (N,)."""
    if allowed is not None:
        logits = logits.masked_fill(~allowed, -torch.inf)
    if not logits.shape[1]:
        return torch.full_like(base_max, -1, dtype=torch.int64)
    best, row = logits.max(dim=1)
    return torch.where(best > base_max, row, -1)


def decide(
    features: Features,
    weight: Tensor,
    bias: Tensor,
    transform: Transform,
    *,
    allowed: Tensor | None = None,
    block: int = 16384,
) -> Decisions:
    """Return what would be picked at every position.

    Args:
        features: N positions.
        weight: Rows (K, d).
        bias: (K,), calibration included.
        transform: The base's logit transform.
        allowed: (K,) bool, rows that may be picked; None: all.
        block: Positions in one block.
    """
    logits = toolken_logits(features.hidden, weight, bias, transform=transform, block=block)
    return Decisions(pick(logits, features.base_max, allowed), features.toolken)


def detections(decisions: Decisions, tools: int) -> list[Detection]:
    """Return the counts of every tool; a wrong tool is a false positive of it and a false negative of the gold one."""
    predicted, gold = decisions
    right = predicted[predicted == gold]
    counts = [
        torch.bincount(rows[rows >= 0], minlength=tools).tolist()
        for rows in (right, predicted[predicted != gold], gold[predicted != gold])
    ]
    return [Detection(*triple) for triple in zip(*counts, strict=True)]


def total(counts: Iterable[Detection]) -> Detection:
    """Return the sum over tools (micro average)."""
    return sum(counts, start=Detection(0, 0, 0))


def false_calls(decisions: Decisions) -> Rate:
    """Return toolkens picked at word positions, out of all word positions (times 1,000: false calls per 1,000)."""
    words = decisions.gold < 0
    return Rate(int((decisions.predicted[words] >= 0).sum()), int(words.sum()))


def confusion(decisions: Decisions, tools: int) -> Tensor:
    """Return counts (K + 1, K + 1) of gold (rows) against predicted (columns); the last of each is "a word"."""
    gold, predicted = (torch.where(rows < 0, tools, rows) for rows in (decisions.gold, decisions.predicted))
    flat = torch.bincount(gold * (tools + 1) + predicted, minlength=(tools + 1) ** 2)
    return flat.reshape(tools + 1, tools + 1)
