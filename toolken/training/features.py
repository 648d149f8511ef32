"""Everything that training ever needs from the frozen base, extracted once.

The base is frozen and toolkens are never inputs, so the hidden state, the logsumexp and maximum of the word logits
and the logit of the gold word do not depend on the rows: with them cached, the loss is exact. Hidden states are taken
in the context of use: after the same few-shot prefix. A run that is killed resumes at the shard it was killed in and
ends with the same bytes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor
from tqdm import tqdm

from toolken.config import FeaturesSection
from toolken.data.align import Encoded
from toolken.errors import UserError
from toolken.model.base import BaseLM
from toolken.training.cache import ShardCache, cache_key
from toolken.training.forward import Forward, check, plan_shards
from toolken.training.objective import Terms


@dataclass(frozen=True)
class Features:
    """Rows of the same N positions, on the CPU.

    Attributes:
        hidden: (N, d) the head's input, in the base's dtype.
        base_lse: (N,) float32 logsumexp of the word logits.
        base_max: (N,) float32 largest word logit.
        base_target: (N,) float32 logit of the gold word (of a result's first token at a toolken position).
        toolken: (N,) int64 gold row, -1 for a word.
        example: (N,) int64 which example the position belongs to.
    """

    hidden: Tensor
    base_lse: Tensor
    base_max: Tensor
    base_target: Tensor
    toolken: Tensor
    example: Tensor

    def __len__(self) -> int:
        return len(self.toolken)

    @classmethod
    def empty(cls, width: int, dtype: torch.dtype) -> Features:
        """Return no positions of hidden states that are `width` wide."""
        hidden, number, count = torch.empty(0, width, dtype=dtype), torch.empty(0), torch.empty(0, dtype=torch.int64)
        return cls(hidden, number, number, number, count, count)

    def select(self, mask: Tensor) -> Features:
        """Return the positions of a boolean mask (N,), or of int64 indices."""
        return Features(*(getattr(self, column.name)[mask] for column in fields(self)))

    def terms(self) -> Terms:
        """Return what the mean loss over these positions is taken over."""
        return Terms(self.hidden, self.base_lse, self.base_target, self.toolken, None, len(self))


def extract(
    base: BaseLM,
    encoded: Sequence[Encoded],
    *,
    section: FeaturesSection,
    progress: bool = True,
    label: str = "train",
) -> Features:
    """Return the features of all supervised positions, example by example, from the cache where it has them.

    Args:
        base: The frozen base.
        encoded: Token ids and positions; `Features.example` counts them.
        section: Cache folder, token budget and block sizes.
        progress: Announce size and time and show a progress bar, on stderr.
        label: What these examples are called in messages.

    Raises:
        UserError: A text that is longer than the base's context, memory or disk that does not suffice, hidden states
            that are not finite.
    """
    cache, shards, missing, size = plan(base, encoded, section)
    if progress:
        _announce(encoded, size=size, label=label, place=f"{cache.directory}", missing=len(missing), of=len(shards))
    if missing:
        cache.reserve(size * len(missing) // len(shards))
    tokens = sum(len(encoded[i].ids) for number in missing for i in shards[number])
    with cache.kept(len(shards), label), meter(label, tokens, shown=progress and bool(missing)) as read:
        forward = Forward(base, section)
        for number in missing:
            cache.write(number, compute(base, forward, encoded, shard=shards[number], read=read))
    cache.finish(len(shards), label)
    return _assemble(base, encoded, cache, shards)


class Plan(NamedTuple):
    """Where features lie, and which of them are to be computed.

    Attributes:
        cache: The shards that are there, and room for the others.
        shards: The examples of every shard.
        missing: Numbers of the shards that are not there.
        size: Bytes of all shards.
    """

    cache: ShardCache
    shards: list[list[int]]
    missing: list[int]
    size: int


def plan(base: BaseLM, encoded: Sequence[Encoded], section: FeaturesSection) -> Plan:
    """Return how examples are cut into shards, and which are missing.

    Raises:
        UserError: A text that is longer than the base's context, or a cache that cannot be written.
    """
    check(base, encoded)
    shards = plan_shards(encoded, section)
    cache = ShardCache(section.cache, cache_key(base.fingerprint, str(base.device.type), encoded, section))
    missing = [number for number in range(len(shards)) if not cache.has(number, rows_of(encoded, shards[number]))]
    size = sum(len(e.index) for e in encoded) * (base.hidden_size * base.dtype.itemsize + 28)
    return Plan(cache, shards, missing, size)


@contextmanager
def meter(label: str, tokens: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Hand out a function that is told of tokens read; it moves a bar and tells once how long all of them take."""
    started, announced, done = time.monotonic(), not shown, 0
    with tqdm(total=tokens, desc=f"features {label}", unit="tok", disable=None if shown else True) as bar:

        def read(count: int) -> None:
            nonlocal announced, done
            bar.update(count)
            done += count  # a bar that is not shown does not count
            if not announced:
                expected = (time.monotonic() - started) * tokens / done
                tqdm.write(f"features {label}: about {expected:.0f} s for {tokens:,} tokens", file=sys.stderr)
                announced = True

        yield read


def compute(
    base: BaseLM,
    forward: Forward,
    encoded: Sequence[Encoded],
    *,
    shard: list[int],
    read: Callable[[int], None],
) -> dict[str, Tensor]:
    """Return the columns of a shard; `read` is told of the tokens of every batch.

    Raises:
        UserError: Memory does not suffice, or hidden states are not finite.
    """
    rows, done = rows_of(encoded, shard), 0
    # Made before the passes: what stays between their large, short-lived tensors would keep their memory from reuse.
    columns = {"hidden": torch.empty(rows, base.hidden_size, dtype=base.dtype)}
    columns |= {name: torch.empty(rows) for name in ("base_lse", "base_max", "base_target")}
    for batch in forward.batches(encoded, shard):
        part = slice(done, done + rows_of(encoded, batch))
        for name, values in forward.run(encoded, batch).items():
            columns[name][part] = values
        done = part.stop
        read(sum(len(encoded[i].ids) for i in batch))
    if not bool(torch.isfinite(columns["base_lse"]).all()):
        raise UserError(base.name, "hidden states that are not finite", "set base.dtype to float32 or bfloat16")
    return columns


def rows_of(encoded: Sequence[Encoded], shard: list[int]) -> int:
    """Return how many positions a shard holds."""
    return sum(len(encoded[i].index) for i in shard)


def _assemble(base: BaseLM, encoded: Sequence[Encoded], cache: ShardCache, shards: list[list[int]]) -> Features:
    """Put the shards, which are sorted by length, back into the order of the examples."""
    counts = torch.tensor([len(e.index) for e in encoded], dtype=torch.int64)
    starts = counts.cumsum(0) - counts
    rows = int(counts.sum())
    hidden = torch.empty(rows, base.hidden_size, dtype=base.dtype)
    numbers = {name: torch.empty(rows) for name in ("base_lse", "base_max", "base_target")}
    for number, shard in enumerate(shards):
        stored = cache.read(number)
        places = [torch.arange(int(starts[i]), int(starts[i] + counts[i])) for i in shard]
        place = torch.cat(places)
        hidden[place] = stored["hidden"]
        for name, column in numbers.items():
            column[place] = stored[name]
    toolken = torch.tensor([row for e in encoded for row in e.toolken], dtype=torch.int64)
    example = torch.repeat_interleave(torch.arange(len(encoded)), counts)
    return Features(hidden, numbers["base_lse"], numbers["base_max"], numbers["base_target"], toolken, example)


def _announce(encoded: Sequence[Encoded], *, size: int, label: str, place: str, missing: int, of: int) -> None:
    """Say what is about to be computed, and where it goes."""
    tokens = sum(len(e.ids) for e in encoded)
    positions = sum(len(e.index) for e in encoded)
    found = "all cached" if not missing else f"{of - missing} of {of} shards cached"
    print(
        f"features {label}: {len(encoded):,} examples, {tokens:,} tokens, {positions:,} positions, "
        f"{size / 1e6:,.1f} MB in {place} ({found})",
        file=sys.stderr,
    )
