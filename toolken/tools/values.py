"""Texts of single arguments -> values by their JSON Schema, and the check of all values of a call.

Numbers stay exact (`Fraction`). Schemas may come from elsewhere, so the time that they take is bounded. JSON is read
strictly: no duplicate keys, no NaN or infinity, no lone surrogates, bounded depth. The only exception is `ToolError`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from toolken.errors import ToolError
from toolken.tools.exact import MAX_BITS, bits
from toolken.tools.numeric import MAX_DEPTH, literal, parse_number, show
from toolken.tools.problems import choices
from toolken.tools.schema import items_of
from toolken.tools.splitting import QUOTES, split_arguments, unwrap
from toolken.tools.tool import Tool
from toolken.tools.validation import find_problem

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "/": "/"}
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"?')
_COMPARISONS = 1_000_000
_WORDS = {"true": True, "false": False, "null": None, "none": None}


def parse_value(text: str, schema: Mapping[str, Any]) -> object:
    """Read one value as its schema wants it.

    Raises:
        ToolError: The text is no value of that type.
    """
    kinds = _kinds(schema)
    if "enum" in schema:
        return _choice(text, schema["enum"])
    if "null" in kinds and text.lower() in ("null", "none"):
        return None
    if kinds & {"number", "integer"} and "string" not in kinds:
        return _number(unquote(text), integer="number" not in kinds)
    if "boolean" in kinds and "string" not in kinds:
        if text.lower() not in ("true", "false"):
            raise ToolError(f"{show(text)} is neither true nor false")
        return text.lower() == "true"
    if "array" in kinds:
        if text[:1] not in ("[", "("):
            raise ToolError(f"{show(text)} is not a list; write [...]")
        items = items_of(schema)
        pieces = split_arguments(unwrap(text, quotes=True), 0, None, quotes=not _kinds(items) <= {"number", "integer"})
        check_choices(len(pieces), items)
        return [parse_value(piece, items) for piece in pieces]
    if "object" in kinds:
        return parse_object(text)
    if not kinds and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return _clean(unquote(text))


def check_choices(count: int, schema: Mapping[str, Any]) -> None:
    """Refuse so many values where each is looked for among so many choices that it would take long.

    Raises:
        ToolError: There are too many.
    """
    choices_each = len(schema.get("enum", ()))
    if count * choices_each > _COMPARISONS:
        raise ToolError(f"{count} values are too many where each has {choices_each} choices")


def parse_object(text: str) -> dict[str, object]:
    """Read one JSON object strictly, its numbers exactly.

    Raises:
        ToolError: It is not JSON, or JSON that two readers may read in two ways.
    """
    depth = 0
    for character in _QUOTED.sub("", text):
        depth += (character in "[{") - (character in "]}")
        if depth > MAX_DEPTH:
            raise ToolError(f"the arguments are nested more than {MAX_DEPTH} deep")
    try:
        value = json.loads(
            text,
            object_pairs_hook=_pairs,
            parse_constant=_constant,
            parse_float=literal_number,
            parse_int=literal_number,
        )
    except ValueError as error:
        raise ToolError(f"{show(text)} is not a JSON object: {error}") from None
    if not isinstance(value, dict):
        raise ToolError(f"{show(text)} is not a JSON object")
    _check_text(value)
    return value


def literal_number(text: str) -> int | Fraction:
    """Read a JSON number exactly."""
    return -literal(text[1:]) if text.startswith("-") else literal(text)


def unquote(text: str) -> str:
    """Remove the quotes around a text, and the escapes inside them.

    Raises:
        ToolError: The quote is not closed, or something stands behind it.
    """
    closing = QUOTES.get(text[:1])
    if closing is None:
        return text
    characters: list[str] = []
    index = 1
    while index < len(text) and text[index] != closing:
        character = text[index]
        if character == "\\" and index + 1 < len(text):
            index += 1
            character = _ESCAPES.get(text[index], "\\" + text[index])
            if text[index] == "u":
                digits = text[index + 1 : index + 5]
                if len(digits) < 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                    raise ToolError(f"{show(text)} has a broken escape")
                character = chr(int(digits, 16))
                index += 4
        characters.append(character)
        index += 1
    if index >= len(text):
        raise ToolError(f"the quote in {show(text)} is not closed")
    if text[index + 1 :].strip():
        raise ToolError(f"{show(text[index + 1 :])} is not expected behind a quoted text")
    return "".join(characters)


def check_arguments(tool: Tool, arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments as the tool's schema wants them: a text where a number is wanted is read as one, 12.0 is 12.

    Raises:
        ToolError: A value does not fit; the argument is named.
    """
    values = {name: _adapt(value, tool.properties.get(name, {})) for name, value in arguments.items()}
    if problem := find_problem(values, tool.parameters):
        path = "".join(f"[{part}]" if isinstance(part, int) else show(part) for part in problem.path)
        raise ToolError(f"argument {path}: {problem.text}" if path else problem.text)
    return values


def _adapt(value: object, schema: Mapping[str, Any], depth: int = 0) -> object:
    kinds = _kinds(schema)
    if depth > MAX_DEPTH:
        raise ToolError(f"the arguments are nested more than {MAX_DEPTH} deep")
    if isinstance(value, str) and kinds and not kinds & {"string", "array", "object"} and "enum" not in schema:
        return parse_value(value.strip(), schema)
    if isinstance(value, (list, tuple)):
        return [_adapt(item, items_of(schema), depth + 1) for item in value]
    if isinstance(value, dict):
        return {key: _adapt(item, {}, depth + 1) for key, item in value.items()}
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise ToolError("a number is not finite")
    if bits(value) > MAX_BITS:
        raise ToolError("a number is too large")
    whole = isinstance(value, Fraction) or "integer" in kinds
    return int(value) if whole and value == int(value) else value


def _number(text: str, *, integer: bool) -> object:
    value = parse_number(split_arguments(text, 1, 1)[0])
    if not integer:
        return value
    if value != int(value):
        raise ToolError(f"{show(text)} is not a whole number")
    return int(value)


def _choice(text: str, options: list[object]) -> object:
    plain = unquote(text).strip()
    for option in options:
        if plain == str(option):
            return option
    folded = [option for option in options if isinstance(option, str) and option.casefold() == plain.casefold()]
    if len(folded) == 1:
        return folded[0]
    if None in options and plain.lower() in ("null", "none"):
        return None
    raise ToolError(f"{show(text)} is none of {choices(options)}")


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    kinds = schema.get("type", ())
    return {kinds} if isinstance(kinds, str) else set(kinds)


def _clean(text: str) -> str:
    _check_text(text)
    return text


def _check_text(value: object) -> None:
    """Refuse lone surrogates, which no UTF-8 text can hold."""
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise ToolError("a text holds half a surrogate pair")
    elif isinstance(value, list):
        for item in value:
            _check_text(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key)
            _check_text(item)


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise ToolError(f"the argument {show(key)} is given twice")
        result[key] = value
    return result


def _constant(text: str) -> object:
    raise ToolError(f"`{text}` is not a number")
