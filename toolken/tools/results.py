"""The text that a result becomes, and the JSON in which values travel to a tool's process and back.

Invariant: `decode(encode(value)) == value` for every value that passes; integers and fractions stay exact. What is
not finite, too long, too deep or has no JSON form is refused with `ToolError`. Nothing is ever pickled.
"""

from __future__ import annotations

import decimal
import json
import math
import operator
import unicodedata
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from toolken.errors import ToolError, UserError
from toolken.tools.exact import MAX_BITS

MAX_LINE = 4096
"""Longest result text, in characters."""

_MAX_DEPTH = 50
_JOINERS = "\u200c\u200d"
_JSON_WHOLE = 2**53


def format_result(value: object, result_format: str = ".6g") -> str:
    """Return the one line of text that a result is inserted as.

    Whole numbers are written with all their digits, also where they come as a Fraction or a float below 1e15. Other
    numbers get `result_format`, but never fewer digits than stand before the point, no `-0`, and no exponent between
    1e-6 and 1e15. Texts are put on one line, without the characters that nobody sees.

    Raises:
        ToolError: The number is not finite, or too long.
        UserError: `result_format` is no format of a number.
    """
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, (int, float, Fraction)):
        return _format_number(value, result_format)
    if isinstance(value, str):
        line = " ".join(_visible(value).split())
        return line if len(line) <= MAX_LINE else line[: MAX_LINE - 3] + "..."
    if isinstance(value, (list, tuple)):
        return format_result_parts("[", [format_result(item, result_format) for item in value], "]")
    if isinstance(value, Mapping):
        parts = [f"{key}: {format_result(item, result_format)}" for key, item in value.items()]
        return format_result_parts("{", parts, "}")
    raise ToolError(f"a result of type {type(value).__name__} has no text form")


def _visible(text: str) -> str:
    """Return a text without what a reader does not see: controls, direction marks, tags; joiners of scripts stay."""
    if text.isprintable():
        return text
    return "".join(
        c for c in text if c.isspace() or c in _JOINERS or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co")
    )


def format_result_parts(opening: str, parts: list[str], closing: str) -> str:
    """Join the texts of a list's items, capped like every other text."""
    return format_result(opening + ", ".join(parts) + closing)


def encode(value: object, limit: int) -> Any:
    """Return the JSON form of a value: large integers, fractions and mappings are tagged objects.

    Args:
        value: Numbers, texts, lists and mappings of them.
        limit: Characters that all texts and items may take together.

    Raises:
        ToolError: The value has no such form, or is too long.
    """
    return _Encoder(limit).encode(value, 0)


def decode(value: Any) -> Any:
    """Return the value of a JSON form."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if isinstance(value, dict):
        if "integer" in value:
            return int(value["integer"], 16)
        if "fraction" in value:
            return Fraction(*(int(part, 16) for part in value["fraction"]))
        return {key: decode(item) for key, item in value["mapping"].items()}
    return value


class _Encoder:
    """Counts characters while it walks a value, so that a huge one is given up early."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    def spend(self, characters: int) -> None:
        self.left -= characters
        if self.left < 0:
            raise ToolError(f"the result is longer than {self.limit} characters")

    def encode(self, value: object, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ToolError(f"the result is nested more than {_MAX_DEPTH} deep")
        self.spend(1)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            self.spend(len(value))
            return value.encode("utf-8", "replace").decode()
        if isinstance(value, decimal.Decimal) and value.is_finite() and abs(value.adjusted()) < MAX_BITS:
            return self.encode(Fraction(value), depth)
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ToolError(f"the result is {float(value)}, not a number")
            return float(value)
        if isinstance(value, Fraction):
            return {"fraction": [hex(self.whole(value.numerator)), hex(self.whole(value.denominator))]}
        if hasattr(type(value), "__index__"):
            whole = self.whole(operator.index(value))  # type: ignore[arg-type]
            return whole if abs(whole) < _JSON_WHOLE else {"integer": hex(whole)}
        if isinstance(value, (list, tuple)):
            return [self.encode(item, depth + 1) for item in value]
        if isinstance(value, Mapping):
            return {"mapping": {self.key(key): self.encode(item, depth + 1) for key, item in value.items()}}
        if hasattr(type(value), "__float__"):
            return self.encode(float(value), depth)  # type: ignore[arg-type]
        raise ToolError(f"the result is a {type(value).__name__}, which has no JSON form")

    def whole(self, value: int) -> int:
        if value.bit_length() > MAX_BITS:
            raise ToolError("the result is a number that is too large")
        self.spend(value.bit_length() // 4)
        return int(value)

    def key(self, key: object) -> str:
        if not isinstance(key, str):
            raise ToolError("the result has a key that is not a text")
        self.spend(len(key))
        return key.encode("utf-8", "replace").decode()


def _format_number(value: int | float | Fraction, result_format: str) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise ToolError(f"the result is {value}, not a number")
    whole = round(value)
    if whole == value and (not isinstance(value, float) or abs(value) < 1e15):
        if whole.bit_length() > MAX_BITS:
            raise ToolError("the result is a number that is too large")
        return str(whole)
    try:
        text = format(float(value), result_format)
    except OverflowError:
        return str(whole) if whole.bit_length() <= MAX_BITS else _format_number(math.inf, result_format)
    except ValueError as error:
        raise UserError("result_format", f"`{result_format}` is no format of a number: {error}") from error
    size = abs(float(value))
    if 1e-6 <= size < 1e15 and "e" in text.lower():
        text = str(whole) if size >= 1 else format(decimal.Decimal(text), "f")
    zero = not any(digit in text for digit in "123456789")
    return text.lstrip("-") if zero else text
