"""Rates and their intervals."""

import math

import pytest

from toolken.metrics import Detection, Rate


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(0, 10, 0.0, 0.27753), (5, 10, 0.23659, 0.76341), (10, 10, 0.72247, 1.0), (45, 60, 0.62767, 0.84223)],
)
def test_wilson_intervals(hits: int, n: int, low: float, high: float) -> None:
    assert Rate(hits, n).interval == pytest.approx((low, high), abs=1e-5)
    assert Rate(hits, n).interval[0] <= hits / n <= Rate(hits, n).interval[1]


def test_a_rate_over_nothing_has_no_value_and_says_nothing() -> None:
    empty = Rate(0, 0)
    assert math.isnan(empty.value) and empty.interval == (0.0, 1.0) and empty.as_dict()["value"] is None


def test_f1_counts_both_kinds_of_error() -> None:
    assert Detection(8, 2, 2).f1 == 0.8 and Detection(0, 0, 0).f1 == 0.0
    assert Detection(1, 2, 3) + Detection(4, 5, 6) == Detection(5, 7, 9)


@pytest.mark.parametrize("counts", [Detection(0, 0, 0), Detection(0, 3, 2), Detection(5, 0, 0), Detection(36, 1, 3)])
def test_the_interval_of_f1_holds_f1(counts: Detection) -> None:
    low, high = counts.f1_interval
    assert 0 <= low <= counts.f1 <= high <= 1
