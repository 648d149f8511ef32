"""JSON that has one reading: what files, artefacts and a tool's process hold.

Refused with `ValueError`: a key given twice, `NaN` and infinities (`1e999` too), values nested too deep, and whatever
is no JSON. Numbers are bounded by Python's own limit on digits. Nothing but plain values comes out.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, NoReturn

from toolken.errors import UserError
from toolken.files import read_text

MAX_DEPTH = 100
"""Deepest nesting of lists and objects; below what recursive readers and writers of the value can take."""


class Parsed(NamedTuple):
    """A value, and where its text ends."""

    value: object
    end: int


def parse_json(text: str) -> object:
    """Return the one value that a text holds.

    Raises:
        ValueError: It holds none, more than one, or one that is refused; a `JSONDecodeError` names the place.
    """
    value, end = parse_json_at(text, len(text) - len(text.lstrip()))
    if text[end:].strip():
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def parse_json_at(text: str, at: int) -> Parsed:
    """Return the value that starts at a character.

    Raises:
        ValueError: There is none, or one that is refused; a `JSONDecodeError` names the place.
    """
    try:
        value, end = _DECODER.raw_decode(text, at)
    except RecursionError:
        raise ValueError(f"nested more than {MAX_DEPTH} deep") from None
    if text.count("[", at, end) + text.count("{", at, end) > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} deep")
    return Parsed(value, end)


def read_object(path: Path, fix: str) -> dict[str, object]:
    """Return the one object that a file holds.

    Raises:
        UserError: It is no file, no UTF-8, no JSON of one reading, or holds something else; `fix` is what to do.
    """
    try:
        value = parse_json(read_text(path, fix))
    except ValueError as error:
        raise UserError(str(path), f"cannot be read as JSON ({error})", fix) from None
    if not isinstance(value, dict):
        raise UserError(str(path), "it does not hold an object", fix)
    return value


def _depth(value: object) -> int:
    """Return the nesting of lists and objects, without recursion."""
    depth = 0
    level: list[object] = [value]
    while level := [item for container in level for item in _items(container)]:
        depth += 1
    return depth


def _items(value: object) -> Iterable[object]:
    """Return what a container holds, and a stand-in for an empty one, which is a level too."""
    if isinstance(value, dict):
        return value.values() or (None,)
    return (value or (None,)) if isinstance(value, list) else ()


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = sorted(key for key, _ in pairs)
        twice = next(key for key, following in itertools.pairwise(names) if key == following)
        raise ValueError(f"the key {twice[:100]!r} appears twice")
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large for a number")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_finite)
