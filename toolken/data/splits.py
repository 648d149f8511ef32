"""Keeping held-out questions out of training.

Invariant: whether a row is held out depends on its question alone, white space aside, so one question never stands on
both sides. A text without a question counts by its own words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from toolken.data.example import Example


class Overlap(NamedTuple):
    """Examples whose questions are not held out, and those that were dropped because theirs are."""

    kept: list[Example]
    dropped: list[Example]


class Split(NamedTuple):
    """Two parts of a set of examples."""

    train: list[Example]
    held_out: list[Example]


def question_key(text: str) -> str:
    """Return a question without any white space: what two questions are compared by."""
    return "".join(text.split())


def _key(example: Example) -> str:
    return question_key(example.question) or question_key(example.answer)


def drop_overlap(examples: Iterable[Example], held_out: Iterable[str]) -> Overlap:
    """Drop the examples whose question (or text, without one) is among the held-out ones, white space aside."""
    keys = {question_key(question) for question in held_out}
    overlap = Overlap([], [])
    for example in examples:
        (overlap.dropped if _key(example) in keys else overlap.kept).append(example)
    return overlap


def split_by_hash(examples: Sequence[Example], share: float) -> Split:
    """Hold out the examples whose question hashes below `share`; at least one question, and never all, of several."""
    ranks = {key: int(hashlib.sha256(key.encode()).hexdigest()[:15], 16) / 16**15 for key in map(_key, examples)}
    held = {key for key, rank in ranks.items() if rank < share}
    order = sorted(ranks, key=lambda key: ranks[key])
    held = (held | set(order[:1])) - set(order[-1:])
    split = Split([], [])
    for example in examples:
        (split.held_out if _key(example) in held else split.train).append(example)
    return split
