"""Texts that are nearly what a reader expects, or nothing like it: a fast generator for millions, and strategies."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

DIGITS = [
    "0",
    "7",
    "12",
    "316",
    "1,234",
    "0.5",
    ".5",
    "5.",
    "1e5",
    "2E-3",
    "٣",
    "४",
    "７",
    "½",
    "²",
    "1_0",
    "0x1F",
    "1e999999999",
]
OPERATORS = ["+", "-", "*", "/", "^", "**", "×", "÷", "−", "–", "·", " x ", "%", "//", "=", "=="]
BRACKETS = ["(", ")", "[", "]", "{", "}", "((", "))", '"', "'", "“", "”", "‘", "’", "\\", '\\"', "\\u00e9", "\\ud800"]
SEPARATORS = [
    ",",
    ", ",
    ";",
    " ",
    "\n",
    "\t",
    "\u00a0",
    "\u2009",
    "\u200b",
    "\u202e",
    "\u200f",
    "\ufeff",
    "，",
    "（",
    "）",
]
WORDS = [
    "km",
    "m/s^2",
    "percent",
    "million",
    "$",
    "€",
    "USD ",
    "a=",
    "b = ",
    "more=",
    "name=",
    "city=",
    "x",
    "null",
    "true",
]
ODD = [
    "\x00",
    "\x1b[2J",
    "\ud800",
    "\udcff",
    "\U0010ffff",
    "é",
    "東京",
    "🙂",
    "NaN",
    "Infinity",
    "<eoe>",
    "<gcd>(",
    "__import__",
]
JSON = ['{"a": 1', '"b": 2}', '"a"', ": ", "[1, 2]", "{}", '{"a": {"a": ', "1e400", "-0", "[[[[", "]]]]"]
PIECES = [*DIGITS * 3, *OPERATORS, *BRACKETS, *SEPARATORS * 2, *WORDS, *ODD, *JSON]
VALID = [
    "(316, 196)",
    "(1,234,567.5)",
    "3, 4",
    "((3+4), 2)",
    "(a=316, b=196)",
    '({"a": 3, "b": 4})',
    "(2^0.5, -1)",
    "([1, 2.5])",
    '("New York", 3)',
    "(Rome, nights=12)",
    "(city='a, b', nights=3)",
    '({"city": "Rome", "nights": 3, "price": 0.1})',
    "(9^9^9)",
    "(1e999999999, 2)",
    "(5 million dollars, 20%)",
    "(9.8 m/s², 3 km)",
]
LONG = [
    "9",
    "(",
    "[",
    "{",
    "-",
    "9^",
    "1/3+",
    "1,234,",
    '"',
    "\\",
    '{"a":',
    "a=",
    " ",
    "\n",
    "²",
    "%",
    "x ",
    "1e308*",
    "(7^99)^.5+",
]


def mutate(draw: random.Random, text: str, pieces: Sequence[str]) -> str:
    """Cut, repeat, exchange or insert something in a text."""
    for _ in range(draw.randrange(1, 4)):
        at, to = sorted((draw.randrange(len(text) + 1), draw.randrange(len(text) + 1)))
        text = draw.choice(
            [
                text[:at] + draw.choice(pieces) + text[at:],
                text[:at] + text[to:],
                text[:to] + text[at:],
                text[:at] + draw.choice(pieces) + text[to:],
                text[:at] + text[at:to][::-1] + text[to:],
            ]
        )
    return text[:5000]


def argument_text(draw: random.Random) -> str:
    """Return one text that stands where arguments should."""
    kind = draw.random()
    if kind < 0.45:
        return (
            "(" * draw.randrange(2) + "".join(draw.choices(PIECES, k=draw.randrange(1, 14))) + ")" * draw.randrange(3)
        )
    if kind < 0.85:
        return mutate(draw, draw.choice(VALID), PIECES)
    if kind < 0.995:
        return "".join(
            chr(draw.choice([draw.randrange(128), draw.randrange(0x3000), draw.randrange(0x110000)])) for _ in range(8)
        )
    unit = draw.choice(LONG)
    return (
        draw.choice(["", "(", '({"a": '])
        + (unit * 4000)[: draw.choice([60, 400, 4000, 10**5])]
        + draw.choice(["", "1)", ")" * 50])
    )


def pieces_of(text: str, draw: random.Random) -> list[str]:
    """Cut a text into pieces, as tokens do."""
    cuts = sorted(draw.sample(range(len(text) + 1), min(len(text) + 1, draw.randrange(6))))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def damaged(valid: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Bytes of a valid file, cut off, overwritten, doubled or with something put in; or any bytes at all."""

    @st.composite
    def change(draw: st.DrawFn) -> bytes:
        content = draw(st.sampled_from(list(valid)))
        at = draw(st.integers(0, len(content)))
        to = draw(st.integers(at, min(len(content), at + 40)))
        put = draw(st.one_of(st.binary(max_size=8), st.sampled_from(BYTES)))
        kinds: list[Callable[[], bytes]] = [
            lambda: content[:at],
            lambda: content[:at] + put + content[to:],
            lambda: content[:at] + put + content[at:],
            lambda: content[:to] + content[at:],
            lambda: put + content,
            lambda: content.replace(b"\n", b"\r\n"),
        ]
        return draw(st.sampled_from(kinds))()

    return st.one_of(change(), change(), st.binary(max_size=200))


BYTES = [
    b"\xef\xbb\xbf", b"\xff\xfe", b"\x00", b"\r\n", b"\n\n", b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"null",
    b"true", b"[]", b"{}",
    b"[" * 2000, b'{"a":' * 2000, b'"\\ud800"', b"\xed\xa0\x80", b'"question": "again", ', b"<eoe>", b"<gcd>(",
    b"-1", b'""',
    b"\xe2\x80\xa8", b"\x1b]0;owned\x07",
]  # fmt: skip

JSON_VALUES: st.SearchStrategy[object] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.integers(-(10**400), 10**400), st.floats(), st.text(max_size=8),
        st.sampled_from(["<gcd>(1)=1<eoe>1", "{v_1}", "a\x00b", "\x1b[2J", "9" * 400]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip
