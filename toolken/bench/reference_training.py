"""The published training algorithm (Hao et al. 2023, arXiv 2305.11554), written plainly: what ours is measured against.

One sequence a step. The frozen base reads the whole context, few-shot examples included, in every epoch; nothing is
kept from one step to the next. The loss is the dense cross-entropy over words and toolkens together at the supervised
positions, its gradient goes to the rows alone, and Adam takes the step. It knows nothing of features, caches or the
closed form of the loss, so it checks them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from toolken.bench.measure import scaled, spread_sample, timed
from toolken.config import SolverSection
from toolken.data.align import Encoded
from toolken.model.base import BaseLM

WARM_UP_ROWS = 2


class ReferenceTime(NamedTuple):
    """Seconds of training all epochs over all rows, and the sample that they were scaled from."""

    seconds: float
    rows_timed: int
    seconds_timed: float


class ReferenceTraining:
    """Rows in training, without biases.

    Attributes:
        rows: (K, d) float32.
    """

    def __init__(self, base: BaseLM, start: Tensor, section: SolverSection) -> None:
        self.rows = torch.nn.Parameter(start.clone().to(base.device))
        self._base = base
        self._section = section
        self._optimiser = torch.optim.Adam([self.rows], lr=section.lr)

    def step(self, example: Encoded) -> float:
        """Take one step on one example and return its loss before the step."""
        positions = zip(*supervised(example, self._section), strict=True)
        at, word, row = (torch.tensor(column, device=self._base.device) for column in positions)
        with torch.no_grad():
            context = torch.tensor([[*example.prefix, *example.ids]])
            hidden = self._base.hidden(context)[0, len(example.prefix) + at]  # (n, d)
            words = self._base.word_logits(hidden)  # (n, V)
        toolkens = self._base.transform(hidden.float() @ self.rows.T)  # (n, K)
        logits = torch.cat([words.to(toolkens.device), toolkens], dim=1)  # (n, V + K)
        gold = torch.where(row >= 0, words.shape[1] + row, word)
        loss = torch.nn.functional.cross_entropy(logits, gold)
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        return float(loss.detach())

    def train(self, examples: Sequence[Encoded], *, epochs: int, order: Callable[[int], Sequence[int]]) -> list[float]:
        """Train epoch by epoch, in the order given for so many examples; return the mean loss of every epoch."""
        losses = []
        for _ in range(epochs):
            taken = [self.step(examples[place]) for place in order(len(examples))]
            losses.append(sum(taken) / len(taken))
        return losses


def supervised(example: Encoded, section: SolverSection) -> list[tuple[int, int, int]]:
    """Return (place in `ids`, word that follows, row or -1) of the positions that `solver.positions` asks for."""
    positions = zip(example.index, example.target, example.toolken, strict=True)
    return [position for position in positions if position[2] >= 0 or section.positions == "all"]


def time_reference(
    base: BaseLM, examples: Sequence[Encoded], start: Tensor, *, section: SolverSection, rows: int
) -> ReferenceTime:
    """Return how long all epochs take, from one epoch over a sample that is spread over the lengths of all rows.

    Args:
        base: The frozen base.
        examples: Training rows; those without a supervised position cost nothing.
        start: (K, d) rows to start from.
        section: Learning rate, epochs and the seed of the sample.
        rows: Rows that are timed, at most.
    """
    used = [example for example in examples if supervised(example, section)]
    sample = spread_sample([len(e.prefix) + len(e.ids) for e in used], rows, seed=section.seed)
    training = ReferenceTraining(base, start, section)
    for place in sample[:WARM_UP_ROWS]:
        training.step(used[place])
    epoch = timed(lambda: [training.step(used[place]) for place in sample])
    seconds = section.epochs * scaled(epoch.seconds, measured=len(sample), of=len(used))
    return ReferenceTime(seconds, len(sample), epoch.seconds)
