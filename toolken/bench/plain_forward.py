"""One plain batched pass over the rows, with word logits at the supervised positions: the least that training costs.

Rows of one prompt share its keys and values, are sorted by length and padded to the token budget; the logits are
computed in blocks and dropped. Nothing is reduced, kept, written or solved.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import groupby

import torch
from transformers import Cache

from toolken.data.align import Encoded
from toolken.model.base import BaseLM


def plain_forward(base: BaseLM, examples: Sequence[Encoded], *, token_budget: int, block: int) -> int:
    """Return how many positions had their word logits computed.

    Args:
        base: The frozen base.
        examples: Rows; those without a supervised position are passed over.
        token_budget: Padded tokens of one pass, those of the prompt counted in every row.
        block: Positions whose logits are held at once.
    """
    done = 0
    used = sorted((e for e in examples if e.index), key=lambda e: (e.prefix, -len(e.ids)))
    for prefix, rows in groupby(used, key=lambda e: e.prefix):
        cache = None
        if prefix:
            cache = base.new_cache()
            base.hidden(torch.tensor([prefix]), cache=cache)
        for batch in _batches(list(rows), token_budget):
            done += _one_pass(base, batch, cache, block=block)
    return done


def _batches(rows: list[Encoded], budget: int) -> Iterator[list[Encoded]]:
    """Cut rows of one prompt, longest first, into batches of at most `budget` padded tokens."""
    start = 0
    while start < len(rows):
        count = max(1, budget // (len(rows[start].prefix) + len(rows[start].ids)))
        yield rows[start : start + count]
        start += count


def _one_pass(base: BaseLM, batch: Sequence[Encoded], shared: Cache | None, *, block: int) -> int:
    longest, past = max(len(e.ids) for e in batch), len(batch[0].prefix)
    ids = torch.zeros(len(batch), longest, dtype=torch.int64)
    for place, example in enumerate(batch):
        ids[place, : len(example.ids)] = torch.tensor(example.ids)
    cache = copy.deepcopy(shared)
    if cache is not None:
        cache.batch_repeat_interleave(len(batch))
    hidden = base.hidden(
        ids,
        mask=torch.ones(len(batch), past + longest, dtype=torch.int64),
        positions=torch.arange(past, past + longest).expand(len(batch), -1),
        cache=cache,
    )
    row = [place for place, example in enumerate(batch) for _ in example.index]
    column = [at for example in batch for at in example.index]
    kept = hidden[row, column]  # (n, d)
    for start in range(0, len(kept), block):
        base.word_logits(kept[start : start + block])
    return len(kept)
