"""What the mode machine asks of a base model, as a protocol without torch.

A caller names a context by a slot and always gives its whole ids; what is cached, cropped and fed is the backend's
own affair. Law: the candidates of a context are those of a fresh pass over its ids, whatever the slot held before and
whoever shares the batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol


class Request(NamedTuple):
    """Rank what may come next after a context.

    Attributes:
        slot: The caller's name of this context.
        ids: The whole context.
        prefix: Leading ids that many contexts share; cached once for all of them.
        toolkens: Rows that may be picked; empty in argument mode.
        noise: None for greedy; else the seed of this one decision, so that a question draws the same in any batch.
    """

    slot: int
    ids: Sequence[int]
    prefix: tuple[int, ...]
    toolkens: frozenset[int]
    noise: int | None


class Candidate(NamedTuple):
    """A word (`toolken` -1) or a toolken (`token` -1)."""

    token: int
    toolken: int
    score: float


class Backend(Protocol):
    """A base model with toolkens beside its words."""

    @property
    def eos_ids(self) -> frozenset[int]:
        """Every id that ends a text."""

    @property
    def max_length(self) -> int | None:
        """The longest context in tokens, None if there is no limit."""

    def rank(self, requests: Sequence[Request]) -> list[Iterator[Candidate]]:
        """Return for each request its candidates, best first: every word and every allowed toolken, lazily.

        With noise the order is a sample without replacement, so the first candidate that a rule lets through is an
        exact sample from the distribution that the rule leaves over.
        """

    def release(self, slot: int) -> int:
        """Forget a context and return how many tokens were fed for it."""

    def token_text(self, ids: Sequence[int]) -> str:
        """Return the text of ids, special tokens included and no white space cleaned up."""


def noise_seed(*place: object) -> int:
    """Return the seed of the decision at a place, so that company in the batch changes nothing."""
    return int.from_bytes(hashlib.blake2b(repr(place).encode(), digest_size=7).digest(), "big")
