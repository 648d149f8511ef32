"""The text behind an inserted number never makes it another number."""

import pytest

from toolken.inference.continuation import extends_number, may_extend

EXTENDING = [
    ("37", "0"), ("37", "00 apples"), ("37", ".7"), ("37", ".70 m"), ("37", ",000"), ("37", "'000"), ("37", "’000"),
    ("37", "e5"), ("37", "E+5"), ("37", "e-05"), ("37", ".e5"), ("3.5", "5"), ("3.5", "e5"), ("37", "½"), ("37", "²"),
    ("37", "٣"), ("37", "\u00a0000"), ("37", "_000"), ("37", "·5"), ("3", ". 75 pizzas"), ("BA117", "3"), ("-4", ".5"),
]  # fmt: skip
KEEPING = [
    ("37", ""), ("37", "."), ("37", ". Then 7"), ("37", ".\n7"), ("37", ".  7"), ("37", ", 7"), ("37", "%"),
    ("37", " 000"), ("37", "km"), ("37", "e"), ("37", "east 5"), ("37", " e5"), ("37", "-5"), ("37", "/3"),
    ("37", "*2"), ("37", "'s 5"), ("37", "..7"), ("37", "). 7"), ("Paris", "7"), ("Paris", ".7"), ("", "7"),
    ("3 km", "2"),
]  # fmt: skip


@pytest.mark.parametrize(("result", "tail"), EXTENDING)
def test_what_extends_a_number(result: str, tail: str) -> None:
    assert extends_number(result, tail)


@pytest.mark.parametrize(("result", "tail"), KEEPING)
def test_what_keeps_a_number(result: str, tail: str) -> None:
    assert not extends_number(result, tail)


@pytest.mark.parametrize(
    ("tail", "open_end"),
    [("", True), (".", True), ("e", True), ("e-", True), (". ", True), (".  ", False), (". T", False), (" is ", False)],
)
def test_no_result_may_land_where_its_digits_would_extend_the_last_one(tail: str, open_end: bool) -> None:
    assert may_extend("37", tail) is open_end
    assert not may_extend("Paris", tail)
