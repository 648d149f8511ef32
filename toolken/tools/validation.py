"""Whether a value fits a JSON Schema, in a bounded number of steps.

Applied: `type`, `enum`, `const`, `$ref` inside the schema, the bounds of numbers, texts, lists and objects,
`multipleOf`, `uniqueItems`, `properties`, `required`, `additionalProperties`, `items`, `prefixItems`, `contains`,
`propertyNames`, `anyOf`, `oneOf`, `allOf`, `not`, `if`/`then`/`else`. Not applied: regular expressions, formats, and
what is not named here. Exact fractions are numbers. The schema has passed `check_schema`; however it branches or
refers to itself, the answer is a problem, none, or `ToolError` when the steps are used up.
Source: JSON Schema, draft 2020-12, https://json-schema.org/draft/2020-12/json-schema-validation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from toolken.errors import ToolError
from toolken.tools.numeric import show
from toolken.tools.schema import resolve

_STEPS = 100_000
_MAX_DEPTH = 120

Schema = Mapping[str, Any]


class Problem(NamedTuple):
    """Why a value does not fit, and the keys and places that lead to the part that does not."""

    path: tuple[str | int, ...]
    text: str


def find_problem(value: object, schema: Schema) -> Problem | None:
    """Return the first reason why a value does not fit a schema, None if it fits.

    Raises:
        ToolError: The schema takes too many steps, or refers to itself without end.
    """
    try:
        return _Check(schema).problem(value, schema, (), 0)
    except RecursionError:
        raise ToolError("the schema of the arguments refers to itself too often") from None


def plain(value: object) -> str:
    """Return a value as a message quotes it."""
    if not isinstance(value, Fraction):
        return show(str(value))
    try:
        return show(f"{float(value):g}")
    except OverflowError:
        return show(str(value))


class _Check:
    """One value against one schema: counts the steps that are left."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.left = _STEPS

    def spend(self, steps: int = 1) -> None:
        self.left -= steps
        if self.left < 0:
            raise ToolError(f"checking the arguments by their schema takes more than {_STEPS} steps")

    def problem(self, value: object, schema: Schema, path: tuple[str | int, ...], depth: int) -> Problem | None:
        """Apply every keyword of a schema; the first problem counts."""
        self.spend()
        if depth > _MAX_DEPTH:
            raise ToolError(f"the schema of the arguments refers to itself more than {_MAX_DEPTH} times")
        text = self._of_value(value, schema, depth + 1)
        if text:
            return Problem(path, text)
        if "$ref" in schema:
            target: Any = resolve(self.root, schema["$ref"])
            if found := self.problem(value, target, path, depth + 1):
                return found
        for inner in schema.get("allOf", ()):
            if found := self.problem(value, inner, path, depth + 1):
                return found
        if "if" in schema:
            branch = "then" if self.fits(value, schema["if"], depth + 1) else "else"
            if branch in schema and (found := self.problem(value, schema[branch], path, depth + 1)):
                return found
        if isinstance(value, list):
            return self._in_list(value, schema, path, depth + 1)
        return self._in_object(value, schema, path, depth + 1) if isinstance(value, dict) else None

    def fits(self, value: object, schema: Schema, depth: int) -> bool:
        return self.problem(value, schema, (), depth) is None

    def equal(self, one: object, other: object) -> bool:
        """Compare as JSON does: true is not 1, and 1.0 is 1."""
        self.spend()
        if isinstance(one, bool) or isinstance(other, bool):
            return one is other
        if isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(map(self.equal, one, other))
        if isinstance(one, dict) and isinstance(other, dict):
            return one.keys() == other.keys() and all(self.equal(item, other[key]) for key, item in one.items())
        return one == other

    def _of_value(self, value: object, schema: Schema, depth: int) -> str:
        kinds = schema.get("type", ())
        names = [kinds] if isinstance(kinds, str) else kinds
        if names and not any(_IS[name](value) for name in names):
            return f"{plain(value)} is not of type {' or '.join(names)}"
        if "enum" in schema and not any(self.equal(value, choice) for choice in schema["enum"]):
            return f"{plain(value)} is none of {choices(schema['enum'])}"
        if "const" in schema and not self.equal(value, schema["const"]):
            return f"{plain(value)} is not {plain(schema['const'])}"
        for keyword, (measure, fits, words) in _BOUNDS.items():
            size = measure(value) if keyword in schema else None
            if size is not None and not fits(size, schema[keyword]):
                return f"{plain(value)} {words} {schema[keyword]}"
        if "multipleOf" in schema and _is_number(value) and _exact(value) % _exact(schema["multipleOf"]):
            return f"{plain(value)} is not a multiple of {schema['multipleOf']}"
        return self._combined(value, schema, depth)

    def _combined(self, value: object, schema: Schema, depth: int) -> str:
        if "not" in schema and self.fits(value, schema["not"], depth):
            return f"{plain(value)} is what it must not be"
        if "anyOf" in schema and not any(self.fits(value, inner, depth) for inner in schema["anyOf"]):
            return f"{plain(value)} fits none of the alternatives"
        if "oneOf" in schema and (count := sum(self.fits(value, inner, depth) for inner in schema["oneOf"])) != 1:
            return f"{plain(value)} fits {count} of the alternatives, not one"
        return ""

    def _in_list(self, value: list[object], schema: Schema, path: tuple[str | int, ...], depth: int) -> Problem | None:
        if schema.get("uniqueItems"):
            for place, item in enumerate(value):
                if any(self.equal(item, earlier) for earlier in value[:place]):
                    return Problem((*path, place), f"{plain(item)} is there twice")
        if "contains" in schema and not any(self.fits(item, schema["contains"], depth) for item in value):
            return Problem(path, "no item is as one must be")
        heads: Sequence[Schema] = schema.get("prefixItems", ())
        for place, item in enumerate(value):
            inner = heads[place] if place < len(heads) else schema.get("items", {})
            if found := self.problem(item, inner, (*path, place), depth):
                return found
        return None

    def _in_object(
        self, value: dict[str, object], schema: Schema, path: tuple[str | int, ...], depth: int
    ) -> Problem | None:
        for name in schema.get("required", ()):
            self.spend()
            if name not in value:
                return Problem(path, f"{show(name)} is missing")
        properties: Schema = schema.get("properties", {})
        # names that a regular expression would admit cannot be told from others
        rest = {} if "patternProperties" in schema else schema.get("additionalProperties", {})
        for name, item in value.items():
            if name not in properties and rest is False:
                return Problem(path, f"{show(name)} is not expected there")
            if "propertyNames" in schema and (found := self.problem(name, schema["propertyNames"], path, depth)):
                return found
            inner = properties.get(name, rest if isinstance(rest, Mapping) else {})
            if found := self.problem(item, inner, (*path, name), depth):
                return found
        return None


def choices(options: Sequence[object]) -> str:
    """Return the first of many choices as a message lists them."""
    shown = ", ".join(plain(option)[1:-1] for option in options[:20])
    return f"{shown} and {len(options) - 20} more" if len(options) > 20 else shown


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool)


def _exact(value: Any) -> Fraction:
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)


def _number(value: object) -> object | None:
    return value if _is_number(value) else None


def _size(kind: type[Any]) -> Callable[[Any], int | None]:
    return lambda value: len(value) if isinstance(value, kind) else None


_IS: dict[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": _is_integer,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_BOUNDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], bool], str]] = {
    "minimum": (_number, operator.ge, "is less than"),
    "maximum": (_number, operator.le, "is more than"),
    "exclusiveMinimum": (_number, operator.gt, "is not more than"),
    "exclusiveMaximum": (_number, operator.lt, "is not less than"),
    "minLength": (_size(str), operator.ge, "has fewer characters than"),
    "maxLength": (_size(str), operator.le, "has more characters than"),
    "minItems": (_size(list), operator.ge, "has fewer items than"),
    "maxItems": (_size(list), operator.le, "has more items than"),
    "minProperties": (_size(dict), operator.ge, "has fewer names than"),
    "maxProperties": (_size(dict), operator.le, "has more names than"),
}
