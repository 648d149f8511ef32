"""Which tokens an engine cannot avoid feeding: the nodes of the trie of all contexts that it ranks.

A context is a path of tokens from the root; contexts that begin alike share their nodes. Whatever feeds each node once
and keeps it feeds as many tokens as there are nodes, and nothing that is exact feeds fewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolken.inference.backend import Backend, Candidate, Request


def trie_nodes(contexts: Sequence[Sequence[int]]) -> int:
    """Return the number of distinct non-empty prefixes of all contexts."""
    nodes, before = 0, tuple[int, ...]()
    # In order, a context shares with all contexts before it what it shares with the last of them.
    for context in sorted(map(tuple, contexts)):
        shared = 0
        for one, other in zip(before, context, strict=False):
            if one != other:
                break
            shared += 1
        nodes += len(context) - shared
        before = context
    return nodes


class Recorder:
    """A backend that notes every context it is asked to rank, and leaves the ranking to another.

    Attributes:
        contexts: The ids of all of them.
    """

    def __init__(self, backend: Backend) -> None:
        self.contexts: list[tuple[int, ...]] = []
        self._backend = backend

    @property
    def eos_ids(self) -> frozenset[int]:
        """Every id that ends a text."""
        return self._backend.eos_ids

    @property
    def max_length(self) -> int | None:
        """The longest context in tokens."""
        return self._backend.max_length

    def rank(self, requests: Sequence[Request]) -> list[Iterator[Candidate]]:
        """Note the contexts and return for each its candidates, best first."""
        self.contexts += [tuple(request.ids) for request in requests]
        return self._backend.rank(requests)

    def release(self, slot: int) -> int:
        """Forget a context and return how many tokens were fed for it."""
        return self._backend.release(slot)

    def token_text(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""
        return self._backend.token_text(ids)
