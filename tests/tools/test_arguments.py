"""Numbers as models write them: the one reading, or a refusal that says why."""

from __future__ import annotations

import json
import re
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.calls import read_numbers
from toolken.errors import ToolError

CASES = [
    json.loads(line, parse_float=Fraction)
    for line in (Path(__file__).parent / "cases/arguments.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=[case["text"][:40] for case in CASES])
def test_every_case_gives_its_numbers_or_is_refused(case: dict[str, Any]) -> None:
    start = time.process_time()
    if case["expect"] == "refuse":
        with pytest.raises(ToolError) as refusal:
            read_numbers(case["text"], case["arity"])
        assert 8 < len(str(refusal.value)) < 300
    else:
        # the case writes an irrational root to 17 digits, which is the float itself
        expected = [float(value) if len(str(value)) > 30 else Fraction(value) for value in case["expect"]]
        assert read_numbers(case["text"], case["arity"]) == expected
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("text", "arity", "expected"),
    [
        # thousands
        ("(1,000,000)", 1, [10**6]),
        ("(1,000,000, 2)", 2, [10**6, 2]),
        ("(12,345,678.9)", 1, [Fraction("12345678.9")]),
        ("(-1,234)", 1, [-1234]),
        ("(-1,234)", 2, [-1, 234]),
        ("($1,234, $5)", 2, [1234, 5]),
        ("(1,234 km, 5)", 2, [1234, 5]),
        ("(1,234,5,678)", 2, [1234, 5678]),
        ("(1234,567)", None, [1234, 567]),
        ("(0,123)", None, [0, 123]),
        ("(2*1,234, 2)", 2, [2468, 2]),
        ("((1,234), 2)", 2, [1234, 2]),
        ("(1,000; 2)", 2, [1000, 2]),
        ("(７，０００, 2)".replace("，", ","), 2, [7000, 2]),
        # operators, signs, brackets
        ("(-2^2, 2)", 2, [-4, 2]),
        ("(2^-1, 2^3^2)", 2, [Fraction(1, 2), 512]),
        ("(3 - 4, 2 - -1)", 2, [-1, 3]),
        ("(3 X 4, 12 ÷ 5)", 2, [12, Fraction(12, 5)]),
        ("(3·4, 3∗4)", 2, [12, 12]),
        ("(5², 2³)", 2, [25, 8]),
        ("((3+4), (2))", 2, [7, 2]),
        ("(3+4), 2)", 2, [7, 2]),
        ("((3, 4))", 2, [3, 4]),
        ("([3, 4, 5])", 3, [3, 4, 5]),
        ("(2.5e-3, 1E+2)", 2, [Fraction(1, 400), 100]),
        ("(5., 1)", 2, [5, 1]),
        ("(8^(1/3), 2)", 2, [2, 2]),
        # money, percent, units
        ("(-$5, $-5)", 2, [-5, -5]),
        ("(€3.50, 4 €)", 2, [Fraction("3.5"), 4]),
        ("(US$20, USD 30)", 2, [20, 30]),
        ("(5 %, 12.5%)", 2, [Fraction(1, 20), Fraction(1, 8)]),
        ("(20 percent, 3 dozen)", 2, [Fraction(1, 5), 36]),
        ("(5 million, 2 thousand dollars)", 2, [5 * 10**6, 2000]),
        ("(100*5%, 2)", 2, [5, 2]),
        ("(9.8 m/s^2, 9.8 m/s²)", 2, [Fraction("9.8"), Fraction("9.8")]),
        ("(5kg, 10 square feet)", 2, [5, 10]),
        ("(3 kilometers per hour, 20°)", 2, [3, 20]),
        # scripts
        ("(٣, ४)", 2, [3, 4]),
        ("（３，４）".replace("，", ", "), 2, [3, 4]),
        ("(3,\u00a04)", 2, [3, 4]),
        ("(\u200b3, 4)", 2, [3, 4]),
        ("(3, 4) = 7 (see above)", 2, [3, 4]),
        ("3, 4", 2, [3, 4]),
        ("('3', \"4\")", 2, [3, 4]),
    ],
)
def test_the_kind_behind_each_case_is_read(text: str, arity: int | None, expected: list[object]) -> None:
    assert read_numbers(text, arity) == expected


@pytest.mark.parametrize(
    ("text", "arity", "message"),
    [
        ("(1,234, 567)", None, "can be read"),
        ("(1,234,567)", 2, "can be read"),
        ("(1,045)", 2, "2 arguments wanted, 1 given"),
        ("(0,000)", None, "not a number"),
        ("(1 000, 2)", 2, "not a number"),
        ("(3, 4", 2, "not closed"),
        ("(3 4)", 1, "not expected"),
        ("(3 x, 2)", 2, "not expected"),
        ("(2n, 3)", 2, "`n`"),
        ("(2 pi, 3)", 2, "`pi`"),
        ("(5k, 2)", 2, "`k`"),
        ("(5 squared, 2)", 2, "`squared`"),
        ("(3rd, 2)", 2, "`rd`"),
        ("(two, 2)", 2, "`two`"),
        ("(about 5, 2)", 2, "`about`"),
        ("(3 and 4)", 2, "1 given"),
        ("(17 % 5, 2)", 2, "`5`"),
        ("(100 - 20%, 2)", 2, "percentage"),
        ("(0x1F, 2)", 2, "hexadecimal"),
        ("(0b11, 2)", 2, "`b`"),
        ("(1_000, 2)", 2, "`_`"),
        ("(2(3), 2)", 2, "not expected"),
        ("(5!, 2)", 2, "`!`"),
        ("(3–4, 2)", 2, "`–`"),
        ("(3 // 2, 2)", 2, "not expected"),
        ("(3 +, 4)", 2, "ends where"),
        ("(, 3)", 2, "argument 1"),
        ("(3, )", 2, "argument 2"),
        ("(1e, 2)", 2, "`e`"),
        ("(1e99999999999999, 2)", 2, "large"),
        ("(2j, 1)", 2, "`j`"),
        ("(½, 1)", 2, "`½`"),
        ("(Infinity, 1)", 2, "Infinity"),
        ("(" + "(" * 60 + "1" + ")" * 60 + ", 2)", 2, "deep"),
        ("(" + "-" * 60 + "1, 2)", 2, "deep"),
        ("(2" + "^2" * 60 + ", 2)", 2, "deep"),
        ("(" + "9" * 1500 + ", 2)", 2, "digits"),
        ("((" + "9" * 900 + "*9" * 1000 + ")^999, 2)", 2, "large"),
    ],
)
def test_what_can_be_read_in_two_ways_or_none_is_refused_and_says_why(
    text: str, arity: int | None, message: str
) -> None:
    with pytest.raises(ToolError, match=re.escape(message)):
        read_numbers(text, arity)


@given(st.integers(-(10**40), 10**40), st.fractions(max_denominator=1000))
def test_what_is_written_exactly_is_read_exactly(whole: int, fraction: Fraction) -> None:
    assert read_numbers(f"({whole}, {fraction})", 2) == [whole, fraction]
