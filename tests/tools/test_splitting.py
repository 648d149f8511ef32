"""Where arguments end: the closing bracket, the commas that separate, and those that group thousands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.calls import read_numbers
from toolken.errors import ToolError
from toolken.tools.splitting import ArgumentScanner, closing_bracket


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=5))
def test_thousands_separators_and_a_space_between_arguments_are_read_back(values: list[int]) -> None:
    assert read_numbers("(" + ", ".join(f"{value:,}" for value in values) + ")", len(values)) == values


@given(st.integers(1, 99), st.lists(st.integers(100, 999), min_size=1, max_size=4), st.integers(1, 5))
def test_thousands_readings_equal_a_search_over_all_of_them(first: int, groups: list[int], arity: int) -> None:
    texts = [str(first), *map(str, groups)]
    readings = []
    for mask in range(2 ** len(groups)):
        reading = [texts[0]]
        for position, group in enumerate(texts[1:]):
            if mask >> position & 1:
                reading.append(group)
            else:
                reading[-1] += group
        readings.append([int(value) for value in reading])
    fitting = [reading for reading in readings if len(reading) == arity]
    text = "(" + ",".join(texts) + ")"
    if len(fitting) == 1:
        assert read_numbers(text, arity) == fitting[0]
    else:
        with pytest.raises(ToolError):
            read_numbers(text, arity)


@pytest.mark.parametrize(
    ("text", "quotes", "end"),
    [
        ("1, (2+3)) = 4)", False, 8),
        ("1, 2", False, None),
        ('"a)", b) c', True, 7),
        ('"a)", b) c', False, 2),
        ("O'Brien) x'", True, 7),
        ("'it\\'s)') x", True, 8),
        ('name="a)", {"k": ")"}) x', True, 21),
    ],
)
def test_the_closing_bracket_is_the_one_that_matches(text: str, quotes: bool, end: int | None) -> None:
    assert closing_bracket(text, quotes=quotes) == end
    scanner = ArgumentScanner(quotes=quotes)
    for character in text:
        scanner.feed(character)
    assert scanner.end == end
