"""Paired comparisons: values that can be checked by hand, symmetry, and intervals that hold what they promise."""

import random

import pytest

from toolken.evaluation.paired import compare, mcnemar


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 2 / 32),
        (6, 0, 2 / 64),
        (8, 2, 2 * (1 + 10 + 45) / 1024),
        (4, 4, 1.0),
        (10, 0, 2 / 1024),
    ],
)
def test_mcnemar_is_the_tail_of_a_fair_coin(first: int, second: int, p: float) -> None:
    assert mcnemar(first, second) == pytest.approx(p)
    assert mcnemar(second, first) == mcnemar(first, second)


def test_a_method_against_itself_differs_in_nothing() -> None:
    found = compare([([1, 0, 1, 1], [1, 0, 1, 1])])
    assert (found.difference, found.low, found.high, found.p, found.verdict) == (0, 0, 0, 1.0, "not told apart")


def test_the_comparison_turned_round_has_the_other_sign() -> None:
    a, b = [1, 1, 1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 1, 0, 1, 0]
    one, other = compare([(a, b)]), compare([(b, a)])
    assert one.difference == pytest.approx(-other.difference) == pytest.approx(3 / 8)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
    assert (one.first_only, one.second_only) == (other.second_only, other.first_only) == (4, 1)


def test_a_clear_difference_is_told_and_a_small_one_is_not() -> None:
    clear = compare([([1] * 40 + [0] * 20, [0] * 40 + [0] * 20)])
    assert clear.verdict == "above" and clear.p is not None and clear.p < 1e-9
    small = compare([([1, 0] * 30, [1] + [0, 1] * 29 + [0])])
    assert small.verdict == "not told apart" and small.low <= small.difference <= small.high


def test_benchmarks_are_pooled_over_their_questions() -> None:
    first, second = ([1, 1, 0, 0], [0, 0, 0, 0]), ([1, 0], [1, 0])
    pooled = compare([first, second])
    assert pooled.n == 6 and pooled.difference == pytest.approx(2 / 6)
    assert pooled.p == mcnemar(2, 0)


def test_the_interval_holds_the_difference_of_the_population_about_95_times_in_100() -> None:
    rng = random.Random(1)
    held = 0
    for _ in range(200):
        first = [float(rng.random() < 0.5) for _ in range(150)]
        second = [float(rng.random() < 0.35) for _ in range(150)]
        found = compare([(first, second)], draws=1000)
        held += found.low <= 0.15 <= found.high
    assert 180 <= held <= 198


def test_means_over_seeds_are_scores_between_0_and_1() -> None:
    found = compare([([1, 1, 0, 1], [0.5, 1, 0, 0.25])])
    assert found.difference == pytest.approx((0.5 + 0.75) / 4) and found.p is None and found.first_only is None


def test_scores_of_other_questions_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="3 and 2 scores"):
        compare([([1, 0, 1], [1, 0])])
    with pytest.raises(ValueError, match="no question"):
        compare([])
