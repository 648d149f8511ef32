from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.calls import read_numbers
from toolken.errors import ToolError
from toolken.tools.constrain import may_continue
from toolken.tools.splitting import closing_bracket

CASES = [json.loads(line) for line in (Path(__file__).parent / "cases/arguments.jsonl").read_text().splitlines()]
PLAIN = [
    case["text"].strip().removeprefix("(").strip()
    for case in CASES
    if case["expect"] != "refuse" and not any(letter in case["text"] for letter in ("km", "dollars"))
]


@pytest.mark.parametrize(
    "text",
    [*PLAIN, "2, 3)", "3)\n\nQ:", "2.5e-3, 1E+2)", "-$5, 3)", "(3+4)*2, 1)", "5%).", "5€, $6 )", "1,000,000, 2)"],
)
def test_every_good_text_may_be_written_character_by_character_and_at_once(text: str) -> None:
    assert may_continue("", text)
    assert all(may_continue(text[:index], character) for index, character in enumerate(text))


@pytest.mark.parametrize(
    ("before", "piece"),
    [
        ("", ")"),
        ("", " )"),
        ("", ","),
        ("", "*"),
        ("", "x"),
        ("", "e5"),
        ("", "%"),
        ("", "." + ")"),
        ("1", "\n"),
        ("1", "a"),
        ("1", '"'),
        ("1", "'"),
        ("1", "="),
        ("1", " 2"),
        ("1", "("),
        ("1 ", " "),
        ("1,", ")"),
        ("1,", ","),
        ("1+", ")"),
        ("1e", ")"),
        ("1e", ","),
        ("1e5", "."),
        ("1e5", "e"),
        ("1.5", "."),
        ("1%", "%"),
        ("1%", "5"),
        ("1€", "5"),
        ("1€ ", "+"),
        ("(1)", "5"),
        ("(1", ","),
        ("---", "1"),
        ("1", ""),
        ("1 apples", "5"),
    ],
)
def test_words_line_breaks_and_empty_arguments_may_not(before: str, piece: str) -> None:
    assert not may_continue(before, piece)


def test_a_call_is_not_closed_before_it_has_its_values() -> None:
    assert not may_continue("3", ")", minimum=2)
    assert may_continue("3, 4", ")", minimum=2)
    assert may_continue("3", ", 4)", minimum=2)
    assert may_continue("1,234", ")", minimum=1)


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet="0123456789.,;+-*/^%()xeE$ ", max_size=25))
def test_whatever_is_let_through_is_read_but_for_sizes_and_thousands(text: str) -> None:
    if not may_continue("", text) or closing_bracket(text) is None:
        return
    try:
        read_numbers(text, None)
    except ToolError as error:
        reasons = (
            "can be read",
            "not a number",
            "large",
            "zero",
            "complex",
            "percentage",
            "hexadecimal",
            "wanted",
            "real",
            "deep",
        )
        assert any(reason in str(error) for reason in reasons), error
