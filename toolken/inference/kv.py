"""Keys and values: of one context by itself, or of many in one padded buffer that a forward pass extends in place.

Invariant of a pack: row `r` stands right-aligned in the columns `[columns - length_r, columns)`. So positions are
evenly spaced columns without holes, and a windowed layer that measures distance in columns sees exactly what it would
see of the context alone. A pass sees the columns from the start of the longest row on; what stood before them is left
where it is. Only caches whose layers are alike and keep every position can be packed; `shape_of` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer

from toolken.model.base import BaseLM

COLUMN_BLOCK = 64


class KV(NamedTuple):
    """Keys (layers, heads, T, d_k) and values (layers, heads, T, d_v) of one context."""

    keys: Tensor
    values: Tensor

    @property
    def length(self) -> int:
        """Tokens held."""
        return self.keys.shape[2]

    def first(self, length: int) -> KV:
        """Return a view of the first tokens."""
        return KV(self.keys[:, :, :length], self.values[:, :, :length])


class Shape(NamedTuple):
    """What the layers of a cache have in common."""

    layers: int
    heads: int
    key_size: int
    value_size: int
    dtype: torch.dtype
    device: torch.device


def shape_of(cache: Cache) -> Shape | None:
    """Return the common shape of a filled cache's layers; None where they differ or do not keep every position."""
    shapes = set()
    for layer in cache.layers:
        if type(layer) is not DynamicLayer or layer.keys is None or layer.values is None:
            return None
        keys, values = layer.keys, layer.values
        shapes.add((keys.shape[1], keys.shape[3], values.shape[3], keys.dtype, keys.device, keys.dim()))
    if len(shapes) != 1:
        return None
    heads, key_size, value_size, dtype, device, _ = shapes.pop()
    return Shape(len(cache.layers), heads, key_size, value_size, dtype, device)


class _Window(DynamicLayer):  # type: ignore[no-untyped-call]
    """A layer of a pack: writes new columns into the pack's buffer and shows the columns up to them."""

    def __init__(self, keys: Tensor, values: Tensor, filled: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._buffer = (keys, values)
        self.dtype, self.device = keys.dtype, keys.device
        self.keys, self.values = keys[:, :, :filled], values[:, :, :filled]
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        keys, values = self._buffer
        start = self.keys.shape[2]  # type: ignore[union-attr]
        end = start + key_states.shape[2]
        keys[:, :, start:end] = key_states
        values[:, :, start:end] = value_states
        self.keys, self.values = keys[:, :, :end], values[:, :, :end]
        return self.keys, self.values


class Pack:
    """Contexts side by side.

    Attributes:
        names: The slot of every row.
        lengths: Tokens of every row.
        slack: Padded columns behind every row; 0 but after an uneven feed.
        columns: Columns in use.
    """

    def __init__(self, shape: Shape, *, rows: int = 0, columns: int = 0) -> None:
        self.names: list[int] = []
        self.lengths: list[int] = []
        self.slack: list[int] = []
        self.columns = 0
        self._shape = shape
        self._keys, self._values = self._buffers(rows, columns)

    def _buffers(self, rows: int, columns: int) -> tuple[Tensor, Tensor]:
        # Zeros: masked columns are multiplied by zero weights, which must not meet a NaN.
        s = self._shape
        sizes = [(s.layers, rows, s.heads, columns, size) for size in (s.key_size, s.value_size)]
        return tuple(torch.zeros(size, dtype=s.dtype, device=s.device) for size in sizes)  # type: ignore[return-value]

    def _reserve(self, rows: int, columns: int, *, align: int) -> None:
        """Have room for so many rows and columns, the used columns moved so that they end at `align`."""
        old = (self._keys, self._values)
        has_rows, has_columns = self._keys.shape[1], self._keys.shape[3]
        grown = has_rows < rows or has_columns < columns
        if grown:
            self._keys, self._values = self._buffers(
                has_rows if has_rows >= rows else max(rows, 2 * has_rows),
                has_columns if has_columns >= columns else columns + columns // 4 + COLUMN_BLOCK,
            )
        kept, width = len(self.names), max(self.lengths, default=0)
        if width and (grown or align != self.columns):
            for new, buffer in zip((self._keys, self._values), old, strict=True):
                used = buffer[:, :kept, :, self.columns - width : self.columns]
                new[:, :kept, :, align - width : align] = used if grown else used.clone()
        self.columns = align

    def add(self, name: int, kv: KV) -> None:
        """Add a context as the last row."""
        row, align = len(self.names), max(self.columns, kv.length)
        self._reserve(row + 1, align, align=align)
        place = slice(self.columns - kv.length, self.columns)
        self._keys[:, row, :, place] = kv.keys
        self._values[:, row, :, place] = kv.values
        self.names.append(name)
        self.lengths.append(kv.length)
        self.slack.append(0)

    def get(self, name: int) -> KV:
        """Return a copy of a row's context."""
        kv = self.view(name)
        return KV(kv.keys.clone(), kv.values.clone())

    def view(self, name: int) -> KV:
        """Return a row's context where it lies: it holds the pack's memory, and changes with the pack."""
        row = self.names.index(name)
        end = self.columns - self.slack[row]
        place = slice(end - self.lengths[row], end)
        return KV(self._keys[:, row, :, place], self._values[:, row, :, place])

    def remove(self, name: int) -> None:
        """Remove a row; the last row takes its place, and columns that nobody needs go once they are many."""
        row, last = self.names.index(name), len(self.names) - 1
        if row != last:
            for buffer in (self._keys, self._values):
                buffer[:, row, :, : self.columns] = buffer[:, last, :, : self.columns]
            self.names[row], self.lengths[row] = self.names[last], self.lengths[last]
        self.names.pop()
        self.lengths.pop()
        self.slack.pop()
        longest = max(self.lengths, default=0)
        if not longest:
            self.columns = 0
        elif self.columns > longest + longest // 4 + COLUMN_BLOCK:
            self._reserve(len(self.names), longest, align=longest)

    def feed(self, base: BaseLM, fresh: Sequence[Sequence[int]]) -> Tensor:
        """Feed every row its new ids, padded on the right, and return each row's last hidden state (rows, d).

        After an uneven feed the invariant is broken and the pack can only be read (`get`).
        """
        counts = torch.tensor([len(ids) for ids in fresh])
        width, rows = int(counts.max()), len(fresh)
        self._reserve(rows, self.columns + width, align=self.columns)
        lengths = torch.tensor(self.lengths)
        steps = torch.arange(width)
        ids = torch.tensor([[*row, *([0] * (width - len(row)))] for row in fresh])  # (rows, width)
        positions = lengths[:, None] + torch.minimum(steps, counts[:, None] - 1)
        start = self.columns - max(self.lengths)
        column = torch.arange(start, self.columns + width)
        mask = (column >= self.columns - lengths[:, None]) & (column < self.columns + counts[:, None])
        cache = DynamicCache()
        cache.layers = [
            _Window(keys[:rows, :, start:], values[:rows, :, start:], self.columns - start)
            for keys, values in zip(self._keys, self._values, strict=True)
        ]
        hidden = base.hidden(ids, mask=mask.long(), positions=positions, cache=cache)
        self.columns += width
        self.lengths = (lengths + counts).tolist()
        self.slack = (width - counts).tolist()
        return hidden[torch.arange(rows, device=hidden.device), (counts - 1).to(hidden.device)]
