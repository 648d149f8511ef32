from __future__ import annotations

import json
import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolken.config import PromptSection
from toolken.data.answers import announced, extract_answer, format_value
from toolken.data.values import read_value
from toolken.errors import UserError

PATTERN = PromptSection().answer_pattern
CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "final_answers.jsonl").read_text(encoding="utf-8").splitlines()
]


def parse_answer(text: str, pattern: str) -> Fraction | None:
    tail = announced(text, pattern)
    return None if tail is None else read_value(tail)


@pytest.mark.parametrize("case", CASES, ids=[case["text"] for case in CASES])
def test_every_case_reads_as_a_person_reads_it(case: dict[str, str | None]) -> None:
    expected = case["expect"]
    assert parse_answer(str(case["text"]), PATTERN) == (None if expected is None else Fraction(expected))


SAME = {
    "-5": ["-5", "−5", "–5", "- 5", "-$5", "$-5", "minus 5", "negative 5", "x = -5", "**-5**", "$-5$", ": -5.", "(-5)"],
    "1234": [
        "1,234",
        "1 234",
        "1\u202f234",
        "1_234",
        "1'234",
        "1{,}234",
        r"1\,234",
        "$1,234.00",
        "1,234 apples, of 9",
        "\n\n1234\n",
    ],
    "1234567.5": ["1,234,567.5", "1 234 567.50", "12,34,567.5"],
    "40": [
        "USD 40",
        "USD40",
        "US$40",
        "€40",
        "40€",
        "40%",
        r"40\%",
        "Rs. 40",
        "Rs.40",
        "`40`",
        r"$\boxed{40}$",
        r"\(40\)",
        "40°",
        "40x",
    ],
    "3/4": ["3/4", "3 / 4", r"\frac{3}{4}", r"\boxed{\dfrac{3}{4}}", "¾", "3⁄4 cup", "0.75", "3/4 = 0.75", "3/4."],
    "-3/4": ["-3/4", r"-\frac{3}{4}", "−¾"],
    "13/2": ["6 1/2", "6½", r"6\frac{1}{2}", "6 and 1/2", "6.5", "6 & 1/2 hours"],
    "2500": [
        "2.5e3",
        "2.5E+3",
        "2.5 x 10^3",
        "2.5 × 10³",
        "2.5*10**3",
        r"2.5 \times 10^{3}",
        "2.5·10^3",
        "2.5 thousand",
    ],
    "1/400": ["2.5e-3", "2.5 × 10⁻³", "2.5 x 10^(-3)"],
    "1000": ["10^3", "10³", "10**3", "1 thousand"],
    "2000000": ["2 million", "2 Million dollars", "$2 million"],
    "12": [
        "3*4=12",
        "3 x 4 = 12.",
        "12 = 3*4",
        "3 + 4 + 5 = 12, as said",
        r"3 \times 4 = 12",
        "12 = 12.0",
        "12 (twelve)",
        "12.",
        "12...",
    ],
    "5": [
        "5 and then 7 left",
        "5, since 7 is prime",
        "5. 3 + 4 = 9",
        "5\n7",
        "5-year-old",
        "H2O: 5",
        "x1 = 5",
        "approx. 5",
        "5th",
        "5 (of 7)",
    ],
    "0": ["0", "-0", "0.00", "0%"],
}


@pytest.mark.parametrize(("value", "text"), [(value, text) for value, texts in SAME.items() for text in texts])
def test_notations_of_one_value_read_alike(value: str, text: str) -> None:
    assert read_value(text) == Fraction(value)
    assert parse_answer(f"There are 99. So, the answer is {text}", PATTERN) == Fraction(value)


@pytest.mark.parametrize(
    "text",
    [
        *("1.234,5", "1.234.567", "1,23", "1,2345", "0,123", "1,234,5", "1,,234", "1 234/5"),
        *(
            "3-4",
            "3 – 4",
            "3 to 4",
            "3 or 4",
            "either 3 or 4",
            "between 3 km and 4 km",
            "3, 4",
            "3, 4 and 5",
            "3 and 4",
            "3; 4",
        ),
        *(
            "3 4",
            "3 + 4",
            "3*4",
            "3 x 4",
            "2π",
            r"2\pi",
            "√2",
            r"\sqrt{2}",
            r"2\sqrt{3}",
            "sqrt(2)",
            "12:30",
            "1/2/2003",
            "3:4",
        ),
        *("3/0", "0^-1", "1e99999", "9^99999", "10^1000000000", "1.2.3", "3..4", "5'3\"", "0x1F", "2b3"),
        *(
            "not 5",
            "!= 5",
            "≠ 5",
            "infinity, since 5 is",
            "undefined (5/0)",
            "unknown. There are 5.",
            "yes. 5",
            "∞",
            "> 5",
            "twelve",
            "",
            " ",
            "-",
            ".",
        ),
        "unknown\n\n5",
    ],
)
def test_where_two_readings_or_none_exist_there_is_no_value(text: str) -> None:
    assert read_value(text) is None


def test_the_last_announcement_counts_even_where_nothing_follows_it() -> None:
    assert parse_answer("The answer is 7. ####", PATTERN) is None
    assert extract_answer("The answer is 7. ####", PATTERN) is None
    assert parse_answer("#### 7\n#### 8", PATTERN) == 8


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("So, the answer is $1,234.", "1234"),
        ("#### 6 7/8", "6.875"),
        ("#### 1/3", "1/3"),
        ("#### -0.50", "-0.5"),
        ("So, the answer is Paris. It lies in France.", "Paris"),
        ("The answer is: **between 3 and 4**.", "between 3 and 4"),
        ("I do not know.", None),
        ("#### \n", None),
    ],
)
def test_the_answer_as_text_is_plain_and_null_only_where_nothing_is_announced(text: str, answer: str | None) -> None:
    assert extract_answer(text, PATTERN) == answer


PIECES = st.sampled_from(
    [
        "3",
        "4",
        "1234",
        "1,234",
        "7/8",
        ".5",
        "10^3",
        "e3",
        " ",
        ",",
        ".",
        "-",
        "=",
        "x",
        "*",
        "**",
        "/",
        "$",
        "%",
        "\\",
        "\n",
        "or",
        "π",
        "is",
    ]
    + ["½", "²", "−", "(", ")", "{", "}", "\\frac{1}{2}", "million", "not", "between", "approx.", "'", "_", ":"]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_the_extracted_text_reads_as_the_same_value(tail: str) -> None:
    text = f"#### {tail}"
    extracted = extract_answer(text, PATTERN)
    assert (None if extracted is None else read_value(extracted)) == parse_answer(text, PATTERN)


@settings(max_examples=300, deadline=None)
@given(st.fractions(min_value=-(10**12), max_value=10**12) | st.decimals(-(10**9), 10**9, places=7).map(Fraction))
def test_a_written_value_reads_back(value: Fraction) -> None:
    assert Fraction(format_value(value)) == value
    assert read_value(format_value(value)) == value


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    extract_answer(text, PATTERN)
    read_value(text)


@pytest.mark.parametrize(
    "piece",
    [
        "9",
        "1,234,",
        "1 ",
        " ",
        "\n",
        "-",
        "*",
        "\\frac{",
        "^2",
        "{",
        "½",
        "3 or ",
        "(",
        "a. ",
        "####",
        "the answer is ",
        "=",
        "1=",
        "million ",
    ],
)
@pytest.mark.timeout(20)
def test_reading_takes_linear_time_and_never_builds_a_huge_number(piece: str) -> None:
    text = "#### 7" + piece * (50_000 // len(piece))
    started = time.perf_counter()
    parse_answer(text, PATTERN)
    extract_answer(text, PATTERN)
    assert time.perf_counter() - started < 3
    assert read_value("9" * 10_000) is None


def test_a_pattern_that_is_no_regular_expression_is_the_users_error() -> None:
    with pytest.raises(UserError, match="prompt.answer_pattern"):
        parse_answer("", "(")


def test_a_pattern_that_backtracks_without_end_is_refused_in_time() -> None:
    start = time.monotonic()
    with pytest.raises(UserError, match="prompt.answer_pattern.*took more than"):
        extract_answer("a" * 60 + "!", r"^(?:(?:a|aa)+)+$")
    assert time.monotonic() - start < 10
