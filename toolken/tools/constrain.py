"""Which pieces of text can continue the arguments of a tool that takes numbers, while they are being decoded.

A character automaton for digits, points, exponents, operators, brackets, separators, currency and percent signs, with
one space at a time. It lets every text through that is written in these and that `parse_arguments` can read, refuses
words, units, quotes and line breaks, and never lets the call be closed before its arguments are complete. It says
nothing about values: sizes are the parser's business.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

_SIGNS = "+-−"
_BINARY = "*/^×·÷xX"
_CURRENCY = "$€£¥₹"
_MAX_DEPTH = 16


class _State(NamedTuple):
    """Where the automaton stands behind a text.

    `part` is the part of a number literal that the text ends in: empty, `whole`, `decimals`, or one that needs a
    digit next (`point`, `e`, `e-`, `exponent` being complete); or `unit`, a currency sign behind a number.
    """

    depth: int = 1
    wanted: bool = True
    part: str = ""
    last: str = ""
    signs: int = 0
    values: int = 0
    closed: bool = False


def may_continue(text_so_far: str, piece: str, *, minimum: int = 1) -> bool:
    """Return whether a piece can follow in the arguments of a numeric tool.

    Args:
        text_so_far: What stands behind `<name>(`.
        piece: Text of a candidate token; what it holds behind the closing bracket is free.
        minimum: Values that must be there before the call can be closed.
    """
    state = _state(text_so_far)
    for character in piece:
        if state is None or state.closed:
            break
        state = _step(state, character, minimum)
    return state is not None and bool(piece)


@lru_cache(maxsize=4096)
def _state(text: str) -> _State | None:
    state: _State | None = _State()
    for character in text:
        if state is None or state.closed:
            break
        state = _step(state, character, 0)
    return state


def _step(state: _State, character: str, minimum: int) -> _State | None:
    open_literal = state.part in ("point", "e", "e-")
    if state.part == "unit" and character not in ",;) ":
        return None
    if character in "0123456789" or character.isdecimal():
        return _digit(state)
    if character == ".":
        if state.part == "whole":
            return state._replace(part="decimals", last=".")
        return state._replace(part="point", last=".", signs=0) if state.wanted and not open_literal else None
    if character in "eE":
        return state._replace(part="e", last="e", wanted=True) if state.part in ("whole", "decimals") else None
    if character in _SIGNS and state.part == "e":
        return state._replace(part="e-", last=character)
    if open_literal:
        return None
    if character == " ":
        return None if state.last == " " else state._replace(part=state.part if state.part == "unit" else "", last=" ")
    return _symbol(state, character, minimum)


def _digit(state: _State) -> _State | None:
    after = {"whole": "whole", "decimals": "decimals", "point": "decimals", "e": "exponent", "e-": "exponent"}
    if state.part:
        return state._replace(part=after.get(state.part, "exponent"), wanted=False, last="0")
    return state._replace(part="whole", wanted=False, last="0", signs=0) if state.wanted else None


def _symbol(state: _State, character: str, minimum: int) -> _State | None:
    if character in _SIGNS:
        signs = state.signs + 1 if state.wanted else 1
        return None if signs > 2 else state._replace(part="", wanted=True, last=character, signs=signs)
    if character == "*" and state.last == "*":
        return state._replace(last="**")
    if character in _CURRENCY:
        doubled = state.last and state.last in _CURRENCY
        return None if doubled else state._replace(part="" if state.wanted else "unit", last=character)
    if character == "(":
        if not state.wanted or state.depth >= _MAX_DEPTH:
            return None
        return state._replace(depth=state.depth + 1, part="", last="(", signs=0)
    if state.wanted:
        return None
    if character in _BINARY:
        return state._replace(part="", wanted=True, last=character, signs=0)
    if character == "%":
        return state._replace(part="", last="%") if state.last != "%" else None
    if character in ",;":
        if state.depth > 1:
            return None
        return state._replace(part="", wanted=True, last=character, signs=0, values=state.values + 1)
    if character != ")":
        return None
    if state.depth > 1:
        return state._replace(depth=state.depth - 1, part="", last=")")
    return state._replace(depth=0, closed=True) if state.values + 1 >= minimum else None
