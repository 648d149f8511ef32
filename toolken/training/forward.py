"""Batched passes through the frozen base that give what single, unpadded passes give.

A few-shot prefix that many examples share is computed once and expanded over each batch. Padding is on the right:
under causal attention it changes nothing before it, leaves no holes between real tokens (which sliding windows would
count), and keeps positions contiguous. The plan of shards and batches depends on the inputs alone, never on what a
resumed run already has.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer

from toolken.config import FeaturesSection
from toolken.data.align import Encoded
from toolken.errors import UserError
from toolken.model.base import BaseLM
from toolken.model.memory import out_of_memory


def _width(encoded: Encoded) -> int:
    """Return the tokens of a row, those of its prefix included."""
    return len(encoded.prefix) + len(encoded.ids)


def check(base: BaseLM, encoded: Sequence[Encoded]) -> None:
    """Refuse what cannot be extracted: no position at all, a text beyond the context, a position outside its text."""
    if not any(e.index for e in encoded):
        raise UserError("features", "the examples have no supervised position", "check data.train and the prompt")
    for number, e in enumerate(encoded):
        length = _width(e)
        if base.max_length is not None and length > base.max_length:
            raise UserError(
                f"example {number}",
                f"{length} tokens with its prompt, but {base.name} takes {base.max_length}",
                "shorten or leave out the example, or use a shorter prompt",
            )
        if e.index and not 0 <= min(e.index) <= max(e.index) < len(e.ids):
            raise UserError(f"example {number}", "a supervised position lies outside its token ids")


def plan_shards(encoded: Sequence[Encoded], section: FeaturesSection) -> list[list[int]]:
    """Return the examples of every shard: by prefix, longest first, so that memory runs out at once or never."""
    prefixes = {e.prefix: None for e in encoded}
    rank = {prefix: number for number, prefix in enumerate(prefixes)}
    order = sorted(
        (i for i, e in enumerate(encoded) if e.index),
        key=lambda i: (rank[encoded[i].prefix], -len(encoded[i].ids), i),
    )
    return [order[at : at + section.shard_examples] for at in range(0, len(order), section.shard_examples)]


class Forward:
    """Runs batches; holds the keys and values of the last prefix."""

    def __init__(self, base: BaseLM, section: FeaturesSection) -> None:
        self._base = base
        self._section = section
        self._prefix: tuple[int, ...] = ()
        self._cache: Cache | None = None

    def batches(self, encoded: Sequence[Encoded], shard: list[int]) -> Iterator[list[int]]:
        """Cut a shard into batches of one prefix and at most `token_budget` padded tokens (at least one example).

        The prefix counts in every row: its keys and values are read, and in some caches held, once a row.
        """
        batch: list[int] = []
        for i in shard:
            same = batch and encoded[batch[0]].prefix == encoded[i].prefix
            if batch and not (same and _width(encoded[batch[0]]) * (len(batch) + 1) <= self._section.token_budget):
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch

    def run(self, encoded: Sequence[Encoded], batch: list[int]) -> dict[str, Tensor]:
        """Return the columns of a batch's supervised positions, example by example, on the CPU.

        Raises:
            UserError: Memory does not suffice.
        """
        length = len(encoded[batch[0]].ids)
        try:
            return self._run(encoded, batch)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            lower = f"lower it (now {self._section.token_budget})"
            fix = lower if len(batch) > 1 else "shorten the rows or the prompt, or use a smaller base or base.dtype"
            problem = f"out of memory in a pass over {len(batch)} x {length} tokens"
            raise UserError("features.token_budget", problem, fix) from error

    def _run(self, encoded: Sequence[Encoded], batch: list[int]) -> dict[str, Tensor]:
        prefix = encoded[batch[0]].prefix
        length = max(len(encoded[i].ids) for i in batch)
        ids = torch.zeros(len(batch), length, dtype=torch.int64)
        for place, i in enumerate(batch):
            ids[place, : len(encoded[i].ids)] = torch.tensor(encoded[i].ids)
        positions = torch.arange(len(prefix), len(prefix) + length).expand(len(batch), -1)
        mask = torch.ones(len(batch), len(prefix) + length, dtype=torch.int64)  # causality hides what is on the right
        hidden = self._base.hidden(ids, mask=mask, positions=positions, cache=self._after(prefix, len(batch)))
        row = torch.cat([torch.full((len(encoded[i].index),), r) for r, i in enumerate(batch)]).to(hidden.device)
        column = torch.tensor([at for i in batch for at in encoded[i].index], device=hidden.device)
        target = torch.tensor([word for i in batch for word in encoded[i].target])
        kept = hidden[row, column]  # (n, d)
        words = self._base.word_statistics(kept, target, block=self._section.vocabulary_block)
        return {
            "hidden": kept.cpu().contiguous(),
            "base_lse": words.lse,
            "base_max": words.max,
            "base_target": words.target,
        }

    def _after(self, prefix: tuple[int, ...], size: int) -> Cache | None:
        """Return keys and values of the prefix for `size` rows; the stored ones are never written to."""
        if not prefix:
            return None
        if self._cache is None or self._prefix != prefix:
            self._cache, self._prefix = self._base.new_cache(), prefix
            self._base.hidden(torch.tensor([prefix]), cache=self._cache)
        front = _in_front(self._cache, size)
        if front is not None:
            return front
        cache = copy.deepcopy(self._cache)
        cache.batch_repeat_interleave(size)
        return cache


class _Front(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values in front of a pass, the same for every row: shown to the pass, and not kept with what it adds."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.dtype, self.device = keys.dtype, keys.device
        self.keys, self.values = keys, values
        self.is_initialized = True
        self._front = (keys, values)

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Return the keys and values of all columns."""
        keys, values = self._front
        return torch.cat([keys, key_states], dim=-2), torch.cat([values, value_states], dim=-2)


def _in_front(prefix: Cache, size: int) -> Cache | None:
    """Return a cache that shows a prefix to `size` rows, one layer copied at a time; None for layers of other kinds."""
    cache = DynamicCache()
    for layer in prefix.layers:
        if type(layer) is not DynamicLayer or layer.keys is None or layer.values is None:
            return None
        cache.layers.append(_Front(layer.keys.expand(size, -1, -1, -1), layer.values.expand(size, -1, -1, -1)))
    return cache
