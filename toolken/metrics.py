"""Rates with their sample size and interval: no rate is printed without both.

It refuses to divide by nothing: a rate over zero cases has no value (`nan`) and the interval [0, 1].
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Rate(NamedTuple):
    """`hits` out of `n`, with the 95 % Wilson score interval."""

    hits: int
    n: int

    @property
    def value(self) -> float:
        """Share of hits, `nan` over nothing."""
        return self.hits / self.n if self.n else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson score interval (Wilson 1927), `(0, 1)` over nothing."""
        if not self.n:
            return 0.0, 1.0
        z = 1.959963984540054
        p = self.hits / self.n
        centre = p + z * z / (2 * self.n)
        half = z * math.sqrt(p * (1 - p) / self.n + z * z / (4 * self.n * self.n))
        scale = 1 + z * z / self.n
        low, high = (centre - half) / scale, (centre + half) / scale
        # At the ends the formula gives exactly 0 and 1, which rounding would miss by a little.
        return max(0.0, low) if self.hits else 0.0, min(1.0, high) if self.hits < self.n else 1.0

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.3f} [{low:.3f}, {high:.3f}] (n={self.n})"

    def as_dict(self) -> dict[str, float | int | None]:
        """JSON form: `value`, `low`, `high`, `n`; `value` is null over nothing."""
        low, high = self.interval
        return {"value": self.value if self.n else None, "low": low, "high": high, "n": self.n}


class Detection(NamedTuple):
    """Counts of one tool (or of all): true positives, false positives, false negatives."""

    true_positives: int
    false_positives: int
    false_negatives: int

    @property
    def precision(self) -> Rate:
        """Of the calls made, how many were right."""
        return Rate(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> Rate:
        """Of the calls wanted, how many were made."""
        return Rate(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 where neither a call was right nor one was missed."""
        total = 2 * self.true_positives + self.false_positives + self.false_negatives
        return 2 * self.true_positives / total if total else 0.0

    @property
    def f1_interval(self) -> tuple[float, float]:
        """95 % interval of F1, which grows with the share `J = tp / (tp + fp + fn)`: `F1 = 2 J / (1 + J)`."""
        low, high = Rate(self.true_positives, sum(self)).interval
        return 2 * low / (1 + low), 2 * high / (1 + high)

    def __add__(self, other: object) -> Detection:
        """Sum of the counts (micro average)."""
        if not isinstance(other, Detection):
            return NotImplemented
        return Detection(*(a + b for a, b in zip(self, other, strict=True)))

    def as_dict(self) -> dict[str, object]:
        """JSON form with rates, intervals and the counts."""
        low, high = self.f1_interval
        return {
            "f1": self.f1,
            "f1_low": low,
            "f1_high": high,
            "precision": self.precision.as_dict(),
            "recall": self.recall.as_dict(),
            "true_positives": self.true_positives,
            "false_positives": self.false_positives,
            "false_negatives": self.false_negatives,
        }
