"""Contexts by slot: what is cached of each, what has to be fed, and the head input behind its last token.

Law: the hidden state of a context is that of a fresh pass over its ids. The longest common prefix with what a slot
holds is kept, the rest is cropped and fed; a new slot starts from a shared prefix, computed once for all.
`PackedContexts` serves all requests of a step with one pass for single tokens and few passes for longer pieces.
Caches that cannot be packed or cropped are served one by one (`toolken.inference.lone`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from toolken.inference.backend import Request
from toolken.inference.kv import KV, Pack, Shape, shape_of
from toolken.inference.lone import LoneContexts
from toolken.model.base import BaseLM

PASS_TOKENS = {"cpu": 40}
"""Tokens that take as long as what a pass costs by itself: reading the weights, launching the layers."""
ELSEWHERE = 1024


class Contexts(Protocol):
    """Where hidden states come from; `fed` counts every token fed, prefixes included."""

    fed: int

    def hidden(self, requests: Sequence[Request]) -> Tensor:
        """Return the head input behind each context (N, d)."""

    def release(self, slot: int) -> int:
        """Forget a slot and return how many tokens were fed for it."""


def open_contexts(base: BaseLM, *, token_budget: int = 4096, prefix_tokens: int = 32768) -> Contexts:
    """Return the contexts that fit the base's cache, which a single token shows."""
    cache = base.new_cache()
    base.hidden(torch.zeros((1, 1), dtype=torch.long), mask=torch.ones((1, 1), dtype=torch.long), cache=cache)
    shape = shape_of(cache)
    if shape is None:
        return LoneContexts(base)
    return PackedContexts(base, shape, token_budget=token_budget, prefix_tokens=prefix_tokens)


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many leading ids are the same."""
    size = min(len(a), len(b))
    if list(a[:size]) == list(b[:size]):
        return size
    return next(i for i in range(size) if a[i] != b[i])


def groups(lengths: Sequence[int], budget: int, *, pass_tokens: int) -> list[slice]:
    """Cut rising lengths into runs, one pass each, that cost least together.

    A pass costs its padded size, rows times longest, and `pass_tokens` for itself; its size stays within the budget,
    unless a single row is longer.
    """
    cost, begins = [0], [0]
    for end in range(1, len(lengths) + 1):
        longest = lengths[end - 1]
        fitting = [at for at in range(end) if (end - at) * longest <= budget] or [end - 1]
        best = min(fitting, key=lambda at: cost[at] + (end - at) * longest)
        cost.append(cost[best] + (end - best) * longest + pass_tokens)
        begins.append(best)
    runs: list[slice] = []
    end = len(lengths)
    while end:
        runs.insert(0, slice(begins[end], end))
        end = begins[end]
    return runs


@dataclass
class _Slot:
    """A context; `kv` is None while it is a row of the decoding pack."""

    ids: list[int] = field(default_factory=list)
    kv: KV | None = None
    last: Tensor | None = None
    fed: int = 0


class PackedContexts:
    """Contexts whose keys and values are held in packs."""

    def __init__(self, base: BaseLM, shape: Shape, *, token_budget: int, prefix_tokens: int) -> None:
        self.fed = 0
        self._base, self._shape = base, shape
        self._token_budget, self._prefix_tokens = token_budget, prefix_tokens
        self._slots: dict[int, _Slot] = {}
        self._prefixes: OrderedDict[tuple[int, ...], KV] = OrderedDict()
        self._pack = Pack(shape)

    def release(self, slot: int) -> int:
        """Forget a slot and return how many tokens were fed for it."""
        if slot in self._pack.names:
            self._pack.remove(slot)
        return self._slots.pop(slot, _Slot()).fed

    def hidden(self, requests: Sequence[Request]) -> Tensor:
        """Return the head input behind each context (N, d)."""
        self._compute_prefixes(requests)
        fresh = {request.slot: ids for request in requests if (ids := self._sync(request))}
        longer = sorted((slot for slot, ids in fresh.items() if len(ids) > 1), key=lambda slot: len(fresh[slot]))
        for rows in self._groups([len(fresh[slot]) for slot in longer]):
            self._prefill(longer[rows], fresh)
        single = [slot for slot, ids in fresh.items() if len(ids) == 1]
        if single:
            self._decode(single, fresh)
        return torch.stack([self._last(request.slot) for request in requests])

    def _groups(self, lengths: Sequence[int]) -> list[slice]:
        tokens = PASS_TOKENS.get(self._shape.device.type, ELSEWHERE)
        return groups(lengths, self._token_budget, pass_tokens=tokens)

    def _last(self, slot: int) -> Tensor:
        last = self._slots[slot].last
        if last is None:
            raise RuntimeError(f"slot {slot} was never fed")
        return last

    def _compute_prefixes(self, requests: Iterable[Request]) -> None:
        """Compute the prefixes that new contexts start from, and drop those that were not used for longest."""
        wanted = [r.prefix for r in requests if len(r.prefix) > self._kept(r)]
        missing = sorted({prefix for prefix in wanted if prefix not in self._prefixes}, key=len)
        for rows in self._groups([len(prefix) for prefix in missing]):
            group = missing[rows]
            pack = Pack(self._shape, rows=len(group), columns=len(group[-1]))
            for name in range(len(group)):
                pack.add(name, self._empty())
            pack.feed(self._base, group)
            self.fed += sum(map(len, group))
            self._prefixes.update({prefix: pack.get(name) for name, prefix in enumerate(group)})
        for prefix in wanted:
            self._prefixes.move_to_end(prefix)
        held = sum(map(len, self._prefixes))
        while held > self._prefix_tokens and len(self._prefixes) > len(set(wanted)):
            held -= len(self._prefixes.popitem(last=False)[0])

    def _kept(self, request: Request) -> int:
        slot = self._slots.get(request.slot)
        return common_prefix(slot.ids, request.ids) if slot else 0

    def _empty(self) -> KV:
        s = self._shape
        keys, values = (
            torch.zeros((s.layers, s.heads, 0, size), dtype=s.dtype, device=s.device)
            for size in (s.key_size, s.value_size)
        )
        return KV(keys, values)

    def _sync(self, request: Request) -> list[int]:
        """Crop the slot to what it shares with the request and return what has to be fed."""
        slot = self._slots.setdefault(request.slot, _Slot(kv=self._empty()))
        kept = common_prefix(slot.ids, request.ids)
        if kept == len(slot.ids) == len(request.ids) and slot.last is not None:
            return []
        limit = len(request.ids) - 1  # the last token is fed in any case: its hidden state is asked for
        if len(request.prefix) > kept:
            self._park(request.slot)
            kept = min(len(request.prefix), limit)
            slot.kv = self._prefixes[request.prefix].first(kept)
        elif min(kept, limit) < len(slot.ids):
            kept = min(kept, limit)
            slot.kv = self._park(request.slot).first(kept)
        slot.ids = list(request.ids)
        slot.fed += len(slot.ids) - kept
        self.fed += len(slot.ids) - kept
        return slot.ids[kept:]

    def _park(self, name: int) -> KV:
        """Take a slot out of the decoding pack, if it is there, and return its keys and values."""
        slot = self._slots[name]
        if slot.kv is None:
            slot.kv = self._pack.get(name)
            self._pack.remove(name)
        return slot.kv

    def _prefill(self, group: Sequence[int], fresh: dict[int, list[int]]) -> None:
        # The longest first, so that rows are not moved for longer ones.
        order = sorted(group, key=lambda name: -self._park(name).length)
        columns = self._park(order[0]).length + max(len(fresh[name]) for name in order)
        pack = Pack(self._shape, rows=len(order), columns=columns)
        for name in order:
            pack.add(name, self._park(name))
        hidden = pack.feed(self._base, [fresh[name] for name in order])
        # A row that has a pack to itself stays there; of others a copy is kept, so that none holds the memory of all.
        kept = pack.view if len(order) == 1 else pack.get
        for row, name in enumerate(order):
            self._slots[name].kv, self._slots[name].last = kept(name), hidden[row]

    def _decode(self, names: Sequence[int], fresh: dict[int, list[int]]) -> None:
        for name in [name for name in self._pack.names if name not in set(names)]:
            self._park(name)
        for name in names:
            kv = self._slots[name].kv
            if kv is not None:
                self._pack.add(name, kv)
                self._slots[name].kv = None
        hidden = self._pack.feed(self._base, [fresh[name] for name in self._pack.names])
        for row, name in enumerate(self._pack.names):
            self._slots[name].last = hidden[row]
