"""Two methods on the same questions: is the difference more than chance?

Two tests. McNemar's exact test (McNemar 1947): under no difference, the questions that one method alone answers right
fall to either side like a fair coin. The bootstrap over questions (Efron and Tibshirani 1993, chapter 13): questions
are drawn again with replacement, within each benchmark, and the interval of the difference holds 95 % of the draws. A
method that was run with several seeds counts with its mean over them, question by question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

DRAWS = 10_000
SEED = 0
_DRAWS_AT_ONCE = 500


@dataclass(frozen=True)
class Comparison:
    """One method against another.

    Attributes:
        n: Questions that both answered.
        difference: Share of right answers of the first less that of the second.
        low: Lower end of the 95 % interval.
        high: Upper end.
        first_only: Questions that only the first answered right.
        second_only: Questions that only the second answered right.
        p: Two-sided p value of McNemar's exact test; None where a score is a mean over seeds.
    """

    n: int
    difference: float
    low: float
    high: float
    first_only: int | None
    second_only: int | None
    p: float | None

    @property
    def verdict(self) -> str:
        """`above`, `below`, or `not told apart`, by the interval."""
        if self.low > 0:
            return "above"
        return "below" if self.high < 0 else "not told apart"

    def as_dict(self) -> dict[str, float | int | str | None]:
        """Return the comparison as JSON values."""
        return {
            "n": self.n,
            "difference": self.difference,
            "low": self.low,
            "high": self.high,
            "first_only": self.first_only,
            "second_only": self.second_only,
            "p": self.p,
            "verdict": self.verdict,
        }


def mcnemar(first_only: int, second_only: int) -> float:
    """Return the two-sided p value of the exact test, 1 where the methods never differ.

    Args:
        first_only: Questions that only the first method answered right.
        second_only: Questions that only the second method answered right.
    """
    n, k = first_only + second_only, min(first_only, second_only)
    if not n:
        return 1.0
    tail = sum(math.comb(n, i) for i in range(k + 1))
    return min(1.0, float(2 * tail / 2**n))


def compare(strata: Sequence[tuple[Sequence[float], Sequence[float]]], *, draws: int = DRAWS) -> Comparison:
    """Compare two methods over one benchmark, or over several together.

    Args:
        strata: For each benchmark the scores (n,) of both methods on the same questions in the same order, from 0
            (wrong) to 1 (right).
        draws: Bootstrap draws.

    Raises:
        ValueError: There is no question, or the scores of a benchmark differ in length.
    """
    differences = [_differences(first, second) for first, second in strata]
    n = sum(map(len, differences))
    if not n:
        raise ValueError("no question was answered by both methods")
    generator = torch.Generator().manual_seed(SEED)
    sums = torch.zeros(draws, dtype=torch.float64)
    for part in differences:
        for start in range(0, draws, _DRAWS_AT_ONCE):
            count = min(_DRAWS_AT_ONCE, draws - start)
            drawn = torch.randint(len(part), (count, len(part)), generator=generator)
            sums[start : start + count] += part[drawn].sum(dim=1)
    low, high = torch.quantile(sums / n, torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    every = torch.cat(differences)
    first_only, second_only = int((every == 1).sum()), int((every == -1).sum())
    if first_only + second_only + int((every == 0).sum()) < n:
        return Comparison(n, float(every.mean()), low, high, None, None, None)
    return Comparison(n, float(every.mean()), low, high, first_only, second_only, mcnemar(first_only, second_only))


def _differences(first: Sequence[float], second: Sequence[float]) -> Tensor:
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} scores do not belong to the same questions")
    return torch.tensor(first, dtype=torch.float64) - torch.tensor(second, dtype=torch.float64)
