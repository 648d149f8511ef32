"""Contexts one by one, for caches that cannot be packed: recurrent states, layers that differ or forget positions.

Law: as of `toolken.inference.contexts`, the hidden state of a context is that of a fresh pass over its ids.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers import Cache

from toolken.inference.backend import Request
from toolken.model.base import BaseLM


class LoneContexts:
    """Contexts with a cache each; a cache that would have to be cropped is built anew."""

    def __init__(self, base: BaseLM, *, prefixes: int = 16) -> None:
        self.fed = 0
        self._base, self._limit = base, prefixes
        self._slots: dict[int, _LoneSlot] = {}
        self._prefixes: OrderedDict[tuple[int, ...], Cache] = OrderedDict()

    def release(self, slot: int) -> int:
        """Forget a slot and return how many tokens were fed for it."""
        return self._slots.pop(slot).fed if slot in self._slots else 0

    def hidden(self, requests: Sequence[Request]) -> Tensor:
        """Return the head input behind each context (N, d)."""
        return torch.stack([self._one(request) for request in requests])

    def _one(self, request: Request) -> Tensor:
        slot = self._slots.get(request.slot)
        ids = list(request.ids)
        if slot is not None and slot.ids == ids:
            return slot.last
        if slot is None or ids[: len(slot.ids)] != slot.ids:
            start = request.prefix if 0 < len(request.prefix) < len(ids) else ()
            cache = self._prefix(start) if start else self._base.new_cache()
            slot = _LoneSlot(list(start), cache, fed=slot.fed if slot else 0)
            self._slots[request.slot] = slot
        fresh = ids[len(slot.ids) :]
        slot.last = self._feed(slot.cache, past=len(slot.ids), fresh=fresh)
        slot.ids, slot.fed = ids, slot.fed + len(fresh)
        return slot.last

    def _prefix(self, ids: tuple[int, ...]) -> Cache:
        if ids not in self._prefixes:
            cache = self._base.new_cache()
            self._feed(cache, past=0, fresh=ids)
            self._prefixes[ids] = cache
            if len(self._prefixes) > self._limit:
                self._prefixes.popitem(last=False)
        self._prefixes.move_to_end(ids)
        return copy.deepcopy(self._prefixes[ids])

    def _feed(self, cache: Cache, *, past: int, fresh: Sequence[int]) -> Tensor:
        self.fed += len(fresh)
        hidden = self._base.hidden(
            torch.tensor([list(fresh)]),
            mask=torch.ones((1, past + len(fresh)), dtype=torch.long),
            positions=torch.arange(past, past + len(fresh))[None],
            cache=cache,
        )
        return hidden[0, -1]


@dataclass
class _LoneSlot:
    ids: list[int]
    cache: Cache
    last: Tensor = field(default_factory=lambda: torch.empty(0))
    fed: int = 0
