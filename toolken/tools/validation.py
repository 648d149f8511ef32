"""Whether a value fits a JSON Schema, in a bounded number of steps.

The library `jsonschema` judges by draft 2020-12. Added is what schemas of others need: every keyword counts steps by
the work it does, regular expressions run in `regex` and their time counts too, and nothing is ever fetched. Numbers
are exact and compared as they are written; truth values are none. Not applied: `format`, `unevaluatedItems` and
`unevaluatedProperties`, whose work cannot be counted. The schema has passed `check_schema`; whatever it says, the
answer is a problem, none, or `ToolError`.
Source: JSON Schema, draft 2020-12, https://json-schema.org/draft/2020-12/json-schema-validation.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from fractions import Fraction
from typing import Any, NamedTuple

import jsonschema
from referencing import Registry

from toolken.errors import ToolError
from toolken.tools.numeric import show
from toolken.tools.patterns import compile_pattern
from toolken.tools.problems import explain

_STEPS = 50_000
_STEPS_PER_SECOND = 200_000
_left: ContextVar[int] = ContextVar("steps that are left")


class Problem(NamedTuple):
    """Why a value does not fit, and the keys and places that lead to the part that does not."""

    path: tuple[str | int, ...]
    text: str


def find_problem(value: object, schema: Mapping[str, Any]) -> Problem | None:
    """Return the first reason why a value does not fit a schema, None if it fits.

    Raises:
        ToolError: The schema takes too many steps, or refers to itself without end.
    """
    validator = bounded_validator({key: part for key, part in schema.items() if key not in ("$schema", "$id")})
    error = next(find_errors(value, validator), None)
    return None if error is None else Problem(tuple(error.path), explain(error))


def bounded_validator(schema: Mapping[str, Any]) -> Any:
    """Return a validator for `find_errors`; its `$dynamicRef` reports the place as an error and goes no further."""
    return _Validator(schema, registry=Registry())


def find_errors(value: object, validator: Any) -> Iterator[Any]:
    """Yield the `jsonschema` errors of a value.

    Raises:
        ToolError: There are too many steps.
    """
    _left.set(_STEPS)
    try:
        yield from validator.iter_errors(value)
    except RecursionError:
        raise ToolError("the schema of the arguments refers to itself too often") from None


def _spend(steps: int) -> None:
    _left.set(_left.get() - steps)
    if _left.get() < 0:
        raise ToolError(f"checking the arguments by their schema takes more than {_STEPS} steps")


def _counted(keyword: str, judge: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    """Return the judge of a keyword, with its steps counted."""

    def counted(validator: Any, wanted: Any, value: object, schema: object) -> Iterator[Any]:
        if keyword in ("enum", "const"):
            value = _written(value)
        else:
            wanted, value = _exact(wanted), _exact(value)
        if keyword in ("enum", "const", "dependentRequired"):
            _spend(1 + (_size(wanted) + _size(value)) // 10)
        elif keyword == "multipleOf":
            _spend(_size(wanted) + _size(value))
        elif keyword == "$ref":
            _spend(1 + wanted.count("/"))
        elif keyword == "uniqueItems":
            _spend(1 + _length(value) * _size(value) // 40)
        else:
            _spend(1 + _length(wanted) + _length(value))
        for error in judge(validator, wanted, value, schema) or ():
            if not isinstance(error.validator, str):  # the judge's own, and its message quotes both
                _spend((_size(wanted) + _size(value)) // 10)
            yield error

    return counted


def _length(value: object) -> int:
    return len(value) if isinstance(value, (dict, list, tuple)) else 0


def _size(value: object) -> int:
    """Count what a value holds, long texts and numbers as several."""
    if isinstance(value, dict):
        return 1 + sum(map(_size, itertools.chain(value, value.values())))
    if isinstance(value, (list, tuple)):
        return 1 + sum(map(_size, value))
    if isinstance(value, (int, Fraction)):
        return 1 + (value.numerator.bit_length() + value.denominator.bit_length()) // 200
    return 1 + len(value) // 100 if isinstance(value, str) else 1


def _exact(value: object) -> object:
    """Return a number as it is written: 0.1 is one tenth."""
    return Fraction(str(value)) if isinstance(value, float) and math.isfinite(value) else value


def _written(value: object) -> object:
    """Return the float that is written as this number, if one is, so that it equals the one of a schema."""
    if not isinstance(value, Fraction):
        return value
    try:
        return number if _exact(number := float(value)) == value else value
    except OverflowError:
        return value


def _matches(pattern: str, text: str) -> bool:
    _spend(1)
    start = time.thread_time()
    try:
        found = compile_pattern(pattern, "pattern").search(text, timeout=(_left.get() + 1) / _STEPS_PER_SECOND)
    except (TimeoutError, MemoryError):
        raise ToolError(f"the pattern {show(pattern)} of the schema takes too long") from None
    _spend(int((time.thread_time() - start) * _STEPS_PER_SECOND))
    return found is not None


def _pattern(_: Any, pattern: str, value: object, __: object) -> Iterator[Any]:
    if isinstance(value, str) and not _matches(pattern, value):
        yield jsonschema.ValidationError("")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], value: object, _: object) -> Iterator[Any]:
    for name, item in value.items() if isinstance(value, dict) else ():
        for pattern, schema in patterns.items():
            if _matches(pattern, name):
                yield from validator.descend(item, schema, path=name)


def _additional(validator: Any, schema: object, value: object, around: Mapping[str, Any]) -> Iterator[Any]:
    known, patterns = around.get("properties", ()), around.get("patternProperties", ())
    for name, item in value.items() if isinstance(value, dict) else ():
        if name in known or any(_matches(pattern, name) for pattern in patterns):
            continue
        if schema is False:  # the library would not say which name
            yield jsonschema.ValidationError("", None, (name,), validator_value=False, instance=item)
        else:
            yield from validator.descend(item, schema, path=name)


def _is_number(_: object, value: object) -> bool:
    return isinstance(value, (int, Fraction)) and not isinstance(value, bool)


_OWN: dict[str, Callable[..., Any]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "unevaluatedItems": lambda *_: (),
    "unevaluatedProperties": lambda *_: (),
    "$dynamicRef": lambda *_: (jsonschema.ValidationError(""),),
}
_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    {name: _counted(name, _OWN.get(name, judge)) for name, judge in jsonschema.Draft202012Validator.VALIDATORS.items()},
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {
            "number": _is_number,
            "integer": lambda _, value: _is_number(_, value) and value.denominator == 1,
            "array": lambda _, value: isinstance(value, (list, tuple)),
        }
    ),
)
