"""The numbers of generated problems: large enough that a small model cannot work them out in its head.

Every draw takes its randomness from the generator it is given, so that a seed fixes all problems.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

# (generator, how many, whether amounts with decimals fit the question) -> the arguments as text
Draw = Callable[[Random, int, bool], list[str]]


def _amount(random: Random, value: int, decimals: bool) -> str:
    return f"{value}.{random.randint(1, 99):02d}" if decimals else str(value)


def amounts(low: int, high: int) -> Draw:
    """Draw numbers, with two decimals now and then where they fit."""

    def draw(random: Random, count: int, decimals: bool) -> list[str]:
        with_decimals = decimals and random.random() < 0.4
        return [_amount(random, random.randint(low, high), with_decimals) for _ in range(count)]

    return draw


def whole(low: int, high: int) -> Draw:
    """Draw different whole numbers."""
    return lambda random, count, _: [str(value) for value in random.sample(range(low, high), count)]


def falling(low: int, high: int) -> Draw:
    """Draw two different numbers, the larger one first."""

    def draw(random: Random, _: int, decimals: bool) -> list[str]:
        large, small = sorted(random.sample(range(low, high), 2), reverse=True)
        with_decimals = decimals and random.random() < 0.3
        return [_amount(random, large, with_decimals), _amount(random, small, with_decimals)]

    return draw


def falling_whole(low: int, high: int) -> Draw:
    """Draw two different whole numbers, the larger one first."""
    return lambda random, _, __: [str(value) for value in sorted(random.sample(range(low, high), 2), reverse=True)]


def counts(low: int, high: int, most: int) -> Draw:
    """Draw a number of things, and a smaller number to take."""

    def draw(random: Random, _: int, __: bool) -> list[str]:
        total = random.randint(low, high)
        return [str(total), str(random.randint(3, min(most, total - 2)))]

    return draw


def shared(random: Random, count: int, _: bool) -> list[str]:
    """Draw numbers with a common factor."""
    factor = random.randint(2, 40)
    return [str(factor * value) for value in random.sample(range(11, 60), count)]


def growth(random: Random, _: int, __: bool) -> list[str]:
    """Draw a base, whole or with decimals, and an exponent."""
    exponent = str(random.randint(3, 12))
    if random.random() < 0.5:
        return [str(random.randint(2, 19)), exponent]
    return [f"{random.choice([0, 1])}.{random.randint(2, 98):02d}", exponent]
