"""Why a value does not fit its schema, in one short line that a model or a person can act on."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from toolken.tools.numeric import show

_WORDS = {
    None: "is not expected there",
    "const": "is not {}",
    "pattern": "does not match `{}`",
    "minimum": "is less than {}",
    "maximum": "is more than {}",
    "exclusiveMinimum": "is not more than {}",
    "exclusiveMaximum": "is not less than {}",
    "minLength": "has fewer characters than {}",
    "maxLength": "has more characters than {}",
    "minItems": "has fewer items than {}",
    "maxItems": "has more items than {}",
    "minProperties": "has fewer names than {}",
    "maxProperties": "has more names than {}",
    "multipleOf": "is not a multiple of {}",
    "uniqueItems": "has an item twice",
    "not": "is what it must not be",
    "anyOf": "fits none of the alternatives",
    "oneOf": "does not fit exactly one of the alternatives",
}


def explain(error: Any) -> str:
    """Return one short line for a `jsonschema` error."""
    keyword, wanted, value = error.validator, error.validator_value, error.instance
    if keyword == "type":
        return f"{plain(value)} is not of type {wanted if isinstance(wanted, str) else ' or '.join(wanted)}"
    if keyword == "enum":
        return f"{plain(value)} is none of {choices(wanted)}"
    if keyword == "required":
        return f"{show(next(name for name in wanted if name not in value))} is missing"
    return f"{plain(value)} {_WORDS.get(keyword, f'does not fit `{keyword}`').format(plain(wanted)[1:-1])}"


def plain(value: object) -> str:
    """Return a value as a message quotes it."""
    if not isinstance(value, Fraction):
        return show(str(value))
    try:
        return show(f"{float(value):g}")
    except OverflowError:
        return show(str(value))


def choices(options: Sequence[object]) -> str:
    """Return the first of many choices as a message lists them."""
    shown = ", ".join(plain(option)[1:-1] for option in options[:20])
    return f"{shown} and {len(options) - 20} more" if len(options) > 20 else shown
