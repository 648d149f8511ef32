"""Arguments of tools that take texts, choices, lists and objects: typed values by name, or a refusal that names one."""

from __future__ import annotations

import os
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.tools.calls import book, tags, total, where
from toolken.errors import ToolError
from toolken.tools.arguments import parse_arguments
from toolken.tools.arithmetic import ARITHMETIC

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
    (book, '({"city": "' + "]" * 1300 + '", "nights": ' + "[" * 1300 + "]" * 1300 + "})", "deep"),
    (book, '({"city": "\\"' + "]" * 100 + '", "nights": ' + "[" * 60 + "]" * 60 + "})", "deep"),
    (book, '({"ci\\nty": 1})', "no argument `ci ty`"),
    (book, '({"' + "x" * 3000 + '": 1})', "xxx...`"),
    (where, "x" * 10**6, "longer than 4096"),
    (ARITHMETIC["gcd"], "７" * 10**6, "longer than 4096"),
    (ARITHMETIC["gcd"], '({"a": ' + "9" * 900 + '.5, "b": 2})', "not of type integer"),
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
