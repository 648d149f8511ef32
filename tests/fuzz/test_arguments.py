"""Laws 11 and 12 of the argument grammar: any text is read or refused, in time, and nothing stays in memory."""

from __future__ import annotations

import gc
import json
import random
import time

import pytest

from tests.fuzz.limits import SECONDS, in_time, resident_mb
from tests.fuzz.texts import LONG, argument_text, pieces_of
from tests.tools.calls import book, tags, total, where
from toolken.errors import ToolError
from toolken.tools.arguments import parse_arguments
from toolken.tools.arithmetic import ARITHMETIC
from toolken.tools.constrain import may_continue
from toolken.tools.results import encode, format_result
from toolken.tools.splitting import ArgumentScanner, closing_bracket
from toolken.tools.tool import Tool

CHOICE = Tool(
    "choice",
    "",
    {
        "type": "object",
        "properties": {
            "a": {"type": ["integer", "null"], "minimum": 1, "multipleOf": 2},
            "b": {"anyOf": [{"type": "string", "maxLength": 3}, {"$ref": "#/$defs/tree"}]},
            "more": {"type": "array", "items": {"enum": [1, "x", None, True]}, "uniqueItems": True},
        },
        "required": ["a"],
        "$defs": {"tree": {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}}},
    },
    ("a", "b", "more"),
    variadic="more",
)
TOOLS = [*ARITHMETIC, book, where, tags, total, CHOICE]
GROWTH_MB = 40.0


def read(text: str, tool: Tool) -> bool:
    """Read a text as the arguments of a tool; whatever is read can be sent to a process and shown."""
    try:
        values = parse_arguments(text, tool)
    except ToolError as error:
        message = str(error)
        assert message and "\n" not in message and len(message) < 1000, (text, tool.name)
        return False
    assert set(values) <= set(tool.order), (text, tool.name)
    json.dumps(encode(values, 10**6), allow_nan=False).encode()
    assert isinstance(format_result(values), str)
    return True


def read_many(count: int, seed: int) -> int:
    """Read so many texts; return how many were arguments."""
    draw = random.Random(seed)
    accepted = 0
    slowest, worst = 0.0, ""
    for _ in range(count):
        text = argument_text(draw)
        tool = draw.choice(TOOLS)
        start = time.process_time()
        accepted += read(text, tool)
        seconds = time.process_time() - start
        if seconds > slowest:
            slowest, worst = seconds, text
    assert slowest < SECONDS, f"{slowest:.2f} s: {worst[:200]!r}"
    return accepted


def test_laws_11_and_12_twenty_thousand_argument_texts() -> None:
    assert 1000 < read_many(20_000, seed=1) < 19_000


@pytest.mark.long
def test_laws_11_and_12_a_million_argument_texts_in_flat_memory() -> None:
    read_many(50_000, seed=2)
    gc.collect()
    before = resident_mb()
    for part in range(20):
        read_many(50_000, seed=100 + part)
    gc.collect()
    assert resident_mb() - before < GROWTH_MB


def test_memory_stays_flat_over_argument_texts() -> None:
    read_many(5_000, seed=3)
    gc.collect()
    before = resident_mb()
    read_many(10_000, seed=4)
    gc.collect()
    assert resident_mb() - before < GROWTH_MB


@pytest.mark.parametrize("unit", LONG)
def test_law_12_long_repetitions_take_bounded_time(unit: str) -> None:
    for length in (100, 4000, 10**6):
        text = (unit * length)[:length]
        for tool in (ARITHMETIC["add"], ARITHMETIC["ln"], book, total, CHOICE):
            for opening in ("", "(", '({"a": ', '("'):
                with in_time():
                    read((opening + text)[:length], tool)
                with in_time():
                    read(f"{opening}{text[:4000]}1)", tool)


def check_pieces(count: int, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(count):
        text = argument_text(draw)[:300]
        pieces = pieces_of(text, draw)
        for quotes in (False, True):
            scanner = ArgumentScanner(quotes=quotes)
            assert [scanner.feed(piece) for piece in pieces][-1] == closing_bracket(text, quotes=quotes), text
        so_far, allowed = "", True
        for piece in pieces:
            allowed = allowed and (not piece or may_continue(so_far, piece))
            so_far += piece
        assert allowed == (not text or may_continue("", text)), text


def test_brackets_and_continuations_of_pieces_are_those_of_the_whole() -> None:
    check_pieces(5_000, seed=5)


@pytest.mark.long
def test_brackets_and_continuations_of_pieces_are_those_of_the_whole_at_length() -> None:
    check_pieces(200_000, seed=6)


def test_what_may_continue_is_never_a_word_a_quote_or_a_line() -> None:
    draw = random.Random(7)
    for _ in range(5_000):
        text = argument_text(draw)[:60]
        if text and may_continue("", text):
            inside = text[: closing_bracket(text)]
            assert not set(inside) & set("\"'\n{}abcdfghijklm\x00"), text
