from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolken.errors import ToolError
from toolken.tools.arguments import parse_arguments, parse_numbers
from toolken.tools.arithmetic import ARITHMETIC
from toolken.tools.splitting import ArgumentScanner, closing_bracket
from toolken.tools.tool import Tool, tool

CASES = [
    json.loads(line, parse_float=Fraction)
    for line in (Path(__file__).parent / "cases/arguments.jsonl").read_text().splitlines()
]


def as_a_call(text: str, arity: int | None, *, minimum: int = 0) -> list[object]:
    """Read arguments as a call of a tool that takes so many numbers; None: any number of them."""
    names = ["values"] if arity is None else [f"x{place}" for place in range(arity)]
    number: dict[str, Any] = {"type": "number"}
    values = {"type": "array", "items": number, "minItems": minimum}
    schema = {
        "type": "object",
        "properties": {name: values if arity is None else number for name in names},
        "required": names if arity is not None else [],
    }
    variadic = "values" if arity is None else None
    parsed = parse_arguments(text, Tool("f", "", schema, tuple(names), variadic=variadic))
    return list(parsed["values"]) if arity is None else [parsed[name] for name in names]  # type: ignore[call-overload]


@pytest.mark.parametrize("read", [parse_numbers, as_a_call])
@pytest.mark.parametrize("case", CASES, ids=[case["text"][:40] for case in CASES])
def test_every_case_gives_its_numbers_or_is_refused(case: dict[str, Any], read: Callable[..., list[object]]) -> None:
    start = time.process_time()
    if case["expect"] == "refuse":
        with pytest.raises(ToolError) as refusal:
            read(case["text"], case["arity"])
        assert 8 < len(str(refusal.value)) < 300
    else:
        # the case writes an irrational root to 17 digits, which is the float itself
        expected = [float(value) if len(str(value)) > 30 else Fraction(value) for value in case["expect"]]
        assert read(case["text"], case["arity"]) == expected
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
    ],
)
def test_the_kind_behind_each_case_is_read(text: str, arity: int | None, expected: list[object]) -> None:
    assert parse_numbers(text, arity) == expected


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
        ("('3', 4)", 2, "not expected"),
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
        parse_numbers(text, arity)


@tool
def book(
    city: str, nights: int, price: float = 9.5, kind: Literal["single", "double"] = "single", pets: bool = False
) -> str:
    """Book a room."""
    return city


@tool
def where(name: str) -> str:
    """Find a place."""
    return name


@tool
def tags(first: str, *more: str, limit: int | None = None, options: dict[str, int] | None = None) -> str:
    """Tag."""
    return first


@tool
def total(values: list[float], names: list[str] = []) -> float:  # noqa: B006
    """Sum."""
    return sum(values)


READ = [
    (book, '("New York", 3)', {"city": "New York", "nights": 3}),
    (book, "('O\\'Hare', 3)", {"city": "O'Hare", "nights": 3}),
    (book, "(St. John's, 3)", {"city": "St. John's", "nights": 3}),
    (
        book,
        "(Rome, 1,200, 2.5, single, true)",
        dict(city="Rome", nights=1200, price=Fraction(5, 2), kind="single", pets=True),
    ),
    (
        book,
        '("a, b (c", 3, $1.50, double, TRUE)',
        dict(city="a, b (c", nights=3, price=Fraction(3, 2), kind="double", pets=True),
    ),
    (book, "(city=Rome, nights=3)", {"city": "Rome", "nights": 3}),
    (book, "(nights = 3, city = 'a=b, c')", {"city": "a=b, c", "nights": 3}),
    (book, "(Rome, nights=12.0)", {"city": "Rome", "nights": 12}),
    (book, '({"city": "Rome", "nights": 3, "price": 0.1})', {"city": "Rome", "nights": 3, "price": Fraction(1, 10)}),
    (book, '({"city": "Rome", "nights": "3"})', {"city": "Rome", "nights": 3}),
    (book, "(“Rome”, 3, kind=“Double”)", {"city": "Rome", "nights": 3, "kind": "double"}),
    (where, "(Paris, France)", {"name": "Paris, France"}),
    (where, '("Paris")', {"name": "Paris"}),
    (where, "(name=Paris (Texas))", {"name": "Paris (Texas)"}),
    (where, "(x=3, y)", {"name": "x=3, y"}),
    (where, "(東京)", {"name": "東京"}),
    (where, '("caf\\u00e9")', {"name": "café"}),
    (tags, "(a, b, 'c, d', limit=3)", {"first": "a", "more": ["b", "c, d"], "limit": 3}),
    (tags, "(a, limit=null)", {"first": "a", "limit": None}),
    (tags, '(a, options={"k": 2})', {"first": "a", "options": {"k": 2}}),
    (total, "([1, 2.5, 1/4])", {"values": [1, Fraction(5, 2), Fraction(1, 4)]}),
    (total, "([1, 2], ['a', b])", {"values": [1, 2], "names": ["a", "b"]}),
    (ARITHMETIC["gcd"], "(a=316, b=196)", {"a": 316, "b": 196}),
    (ARITHMETIC["gcd"], "(768,268)", {"a": 768, "b": 268}),
    (ARITHMETIC["gcd"], "(a=1,234, b=5, more=[6, 7])", {"a": 1234, "b": 5, "more": [6, 7]}),
    (ARITHMETIC["add"], "([1, 2, 3, 4])", {"a": 1, "b": 2, "more": [3, 4]}),
    (ARITHMETIC["log"], "(1,234)", {"x": 1234}),
    (ARITHMETIC["power"], '{"base": 2, "exponent": 0.5}', {"base": 2, "exponent": Fraction(1, 2)}),
]


@pytest.mark.parametrize(("made", "text", "expected"), READ, ids=[text for _, text, _ in READ])
def test_texts_names_lists_and_json_become_typed_values(made: Any, text: str, expected: dict[str, object]) -> None:
    values = parse_arguments(text, made)
    assert values == expected
    assert [type(value) for value in values.values()] == [type(expected[name]) for name in values]


REFUSED = [
    (book, "(Rome, 12.5)", "`nights`"),
    (book, "(Rome, many)", "`nights`"),
    (book, "(Rome, 1,200)", "can be read"),
    (book, "(Rome)", "2 to 5 arguments wanted, 1 given"),
    (book, "(city=Rome)", "`nights` is missing"),
    (book, "(Rome, 3, city=Paris)", "`city` is given twice"),
    (book, "(Rome, 3, nigths=3)", "did you mean `nights`"),
    (book, '({"city": "Rome", "nights": 3, "city": "Paris"})', "`city` is given twice"),
    (book, '({"city": "Rome", "nights": NaN})', "NaN"),
    (book, '({"city": "Rome", "nights": -Infinity})', "Infinity"),
    (book, '({"city": "Rome", "nights": 1e999})', "large"),
    (book, '({"city": "\\ud800", "nights": 3})', "surrogate"),
    (book, '({"city": "Rome", "nights": true})', "nights"),
    (book, '({"city": "Rome", "stars": 3, "nights": 3})', "no argument `stars`"),
    (book, "({'city': 'Rome'})", "not a JSON object"),
    (book, '({"city": ' + "[" * 200 + "]" * 200 + ', "nights": 3})', "deep"),
    (book, "(Rome, 3, 9, triple)", "none of single, double"),
    (book, "(Rome, 3, 9, single, maybe)", "neither true nor false"),
    (book, "(city=, nights=3)", "`city` is empty"),
    (book, '("Rome" or so, 3)', "not expected behind"),
    (where, '("\\uD83D")', "surrogate"),
    (where, '("Rome)', "not closed"),
    (total, "(1)", "not a list"),
    (total, "([1, x])", "`values`"),
    (ARITHMETIC["gcd"], "(12.5, 3)", "`a`"),
    (ARITHMETIC["gcd"], "(3)", "2 or more"),
    (ARITHMETIC["gcd"], "(a=3, c=4)", "no argument `c`"),
    (ARITHMETIC["sqrt"], "(2, 3)", "1 argument wanted, 2 given"),
]


@pytest.mark.parametrize(("made", "text", "message"), REFUSED, ids=[text[:40] for _, text, _ in REFUSED])
def test_what_does_not_fit_the_schema_is_refused_by_name(made: Any, text: str, message: str) -> None:
    with pytest.raises(ToolError, match=re.escape(message)):
        parse_arguments(text, made)


def test_law_11_argument_texts_have_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "system", lambda command: pytest.fail(f"ran {command}"))
    for text in (
        "(__import__('os').system('touch x'), 2)",
        "(open('x', 'w').write('1'), 2)",
        "(exec('import os'), 2)",
        "([].__class__.__base__.__subclasses__(), 2)",
        "((lambda: 1)(), 2)",
    ):
        for made in ARITHMETIC:
            with pytest.raises(ToolError):
                parse_arguments(text, made)
        for made in (book, where, tags, total):
            try:
                values = parse_arguments(text, made)
            except ToolError:
                continue
            assert all(isinstance(value, (str, int, list)) for value in values.values())
    assert not list(tmp_path.iterdir())


TEXTS = st.one_of(
    st.text(max_size=200),
    st.text(alphabet="0123456789.,;+-*/^%()xeE$ []{}\"'=ab\\:u\u2212²", max_size=300),
    st.lists(
        st.sampled_from(["1,234", "(", ")", "2", "**", "9", "-", ", ", ",", "e5", "%", " km", "[", '"', "a="]),
        max_size=60,
    ).map("".join),
)
EVERY_TOOL = st.sampled_from([book, where, tags, total, *ARITHMETIC])


def read_anything(text: str, made: Any) -> None:
    start = time.process_time()
    for read in (lambda: parse_arguments(text, made), lambda: parse_numbers(text, None)):
        try:
            values = read()
        except ToolError as error:
            assert "\n" not in str(error)
            continue
        assert json.dumps(values, default=str)
    assert time.process_time() - start < 2


@settings(max_examples=300, deadline=None)
@given(TEXTS, EVERY_TOOL)
def test_law_12_any_text_is_read_or_refused_in_bounded_time(text: str, made: Any) -> None:
    read_anything(text, made)


@pytest.mark.slow
@settings(max_examples=20_000, deadline=None)
@given(TEXTS, EVERY_TOOL)
def test_law_12_any_text_is_read_or_refused_in_bounded_time_at_length(text: str, made: Any) -> None:
    read_anything(text, made)


@pytest.mark.parametrize(
    "unit",
    [
        "(",
        ")",
        "[",
        "{",
        '"',
        "'",
        "-",
        "9",
        "1,234,",
        "9**",
        "1e9*",
        "^9",
        "a=",
        "x ",
        "\\",
        ",",
        "%",
        "0,",
        "km/",
        "(1)^",
    ],
)
def test_law_12_long_repetitions_take_bounded_time(unit: str) -> None:
    for length in (100, 4000, 100_000):
        for made in (ARITHMETIC["add"], book, tags, total):
            for prefix in ("", "(", "({", '("'):
                read_anything((prefix + unit * length)[:length], made)


@given(st.integers(-(10**40), 10**40), st.fractions(max_denominator=1000))
def test_what_is_written_exactly_is_read_exactly(whole: int, fraction: Fraction) -> None:
    assert parse_numbers(f"({whole}, {fraction})", 2) == [whole, fraction]


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=5))
def test_thousands_separators_and_a_space_between_arguments_are_read_back(values: list[int]) -> None:
    assert parse_numbers("(" + ", ".join(f"{value:,}" for value in values) + ")", len(values)) == values


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
        assert parse_numbers(text, arity) == fitting[0]
    else:
        with pytest.raises(ToolError):
            parse_numbers(text, arity)


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
