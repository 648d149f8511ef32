"""Candidates in order, from rows of logits: greedy, or perturbed so that the order is an exact sample.

With Gumbel noise `g` the order of `logits / temperature + g` is that of drawing from the softmax again and again
without putting back (Gumbel-max trick), so the first candidate that a rule lets through is a draw from the
distribution renormalised over what the rule allows. What lies outside the nucleus comes after everything inside it.
Equal scores rank by index.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from toolken.inference.backend import Candidate

FIRST = 64
BEHIND = 1e9


def perturb(logits: Tensor, *, seed: int, temperature: float, top_p: float) -> Tensor:
    """Return float64 scores (n,) whose order is a sample.

    Args:
        logits: (n,) float32; masked entries are minus infinity.
        seed: Of this one decision.
        temperature: Above 0.
        top_p: Nucleus: the fewest best entries whose probabilities reach it.
    """
    generator = torch.Generator().manual_seed(seed)
    draws = torch.empty(len(logits), dtype=torch.float64).exponential_(generator=generator)
    gumbel = -draws.clamp(min=torch.finfo(torch.float64).tiny).log()
    scaled = logits.double() / temperature
    scores = scaled + gumbel.to(logits.device)
    if top_p >= 1:
        return scores
    ordered, index = torch.sort(scaled, descending=True, stable=True)
    probabilities = ordered.softmax(-1)
    outside = probabilities.cumsum(-1) - probabilities >= top_p
    return scores.index_add(0, index, outside.to(scores) * -BEHIND)


def candidates(scores: Tensor, *, words: int) -> Iterator[Candidate]:
    """Yield the entries of scores (words + toolkens,), best first; those at minus infinity are left out.

    The best few are looked at first; the whole row is sorted only when a rule refuses all of them.
    """
    best = int(scores.argmax())  # the first of equal ones
    yield _candidate(best, float(scores[best]), words)
    top, index = (tensor.tolist() for tensor in scores.topk(min(FIRST, len(scores))))
    # Ties with the last of them may lie outside: those are left to the full sort.
    few = sorted((-value, at) for value, at in zip(top, index, strict=True) if value > top[-1])
    for value, at in few[1:]:
        yield _candidate(at, -value, words)
    order, places = torch.sort(scores, descending=True, stable=True)
    done = max(len(few), 1)
    for value, at in zip(order[done:].tolist(), places[done:].tolist(), strict=True):
        if value == -torch.inf:
            return
        yield _candidate(at, value, words)


def _candidate(at: int, score: float, words: int) -> Candidate:
    return Candidate(at, -1, score) if at < words else Candidate(-1, at - words, score)
