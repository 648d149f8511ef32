"""Free text: inline markup, answers of models and the patterns of artefacts are read or refused in time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.limits import in_time
from toolken.data.answers import extract_answer
from toolken.data.inline import parse_inline, write_inline
from toolken.data.values import read_value
from toolken.errors import UserError

MARKUP = st.lists(
    st.sampled_from(
        [
            "<gcd>(",
            "<add>(",
            "<[W]>(",
            ")",
            "=",
            " = ",
            "<eoe>",
            "4",
            "45",
            "0.",
            "3,000",
            " ",
            "\n",
            "a",
            "<",
            ">",
            "(",
            "é",
            "\x00",
        ]
    ),
    max_size=24,
).map("".join)


def check_markup(text: str) -> None:
    try:
        with in_time():
            answer, calls = parse_inline(text, "x:1", None)
    except UserError as error:
        assert str(error).startswith("x:1: ")
        return
    assert "<eoe>" not in answer
    again, same = parse_inline(write_inline(answer, calls), "x:1", None)
    assert (again, same) == (answer, calls)


@settings(max_examples=1000)
@given(text=MARKUP)
def test_any_markup_is_refused_or_round_trips(text: str) -> None:
    check_markup(text)


@pytest.mark.long
@settings(max_examples=50_000)
@given(text=MARKUP)
def test_any_markup_is_refused_or_round_trips_at_length(text: str) -> None:
    check_markup(text)


ANSWERS = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            [
                "7",
                "1,234",
                ".5",
                " ",
                "/",
                "^",
                "e5",
                "e99999",
                "%",
                "$",
                "\\frac{1}{2}",
                "½",
                "²",
                "-",
                "=",
                "million ",
                "and ",
                "\n",
                ".",
            ]
        ),
        max_size=30,
    ).map("".join),
    st.builds(
        lambda unit, n: unit * n,
        st.sampled_from(["9", "1,", "= ", "- ", "a\n", "\\", "{", "9 ", ". ", "1/"]),
        st.just(20_000),
    ),
)


@settings(max_examples=300)
@given(text=ANSWERS)
def test_any_answer_has_one_value_or_none_in_time(text: str) -> None:
    with in_time():
        read_value(text)
        assert extract_answer(f"The answer is {text}", "answer is") is None or text.strip()


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "(" * 5000,
        "(a+)+$b",
        "((a{1000}){1000}){1000}",
        "a{999999999999}",
        "[",
        "\\",
        "(?P<x>",
        "(?R)",
        "*",
        "(?:" * 200,
    ],
)
def test_a_hostile_pattern_of_an_artefact_is_refused_in_time(pattern: str) -> None:
    with in_time(3):
        try:
            extract_answer("a" * 5000, pattern)
        except UserError as error:
            assert "prompt.answer_pattern" in str(error) and len(str(error)) < 3000


def test_a_pattern_that_refers_to_itself_is_refused_before_it_runs() -> None:
    for pattern in ("(?R)", "(a(?1)?b)", "(?P<x>a(?&x)?)"):
        with pytest.raises(UserError, match="refers to itself"):
            extract_answer("aabb", pattern)
