"""Which JSON Schemas a tool may have: checked once, when the tool is made.

Schemas come from artefacts and importers too, so every keyword that is applied later must have the form it needs, and
a reference must stay inside the schema: nothing is ever fetched. Regular expressions (`pattern`, `patternProperties`)
and keywords that are not in the table are not applied. Invariant: what passes here can be applied by `validation`
without an error of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from toolken.errors import UserError

TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")
MAX_NODES = 20_000
"""Most schemas and choices that one tool's parameters may hold."""

_MAX_DEPTH = 40
_SCHEMA = ("items", "not", "if", "then", "else", "contains", "propertyNames")
_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions")
_FIX = "write the JSON Schema of an object; see json-schema.org"


class _Part(NamedTuple):
    """A schema inside another one, and the keywords that lead to it."""

    path: str
    schema: object
    depth: int


def check_schema(parameters: Mapping[str, Any], where: str) -> None:
    """Check the schema of a tool's arguments.

    Raises:
        UserError: It is no schema, too large, or refers to something outside; the message names the part.
    """
    left = MAX_NODES
    todo = [_Part("parameters", parameters, 0)]
    while todo:
        path, schema, depth = part = todo.pop()
        problem = _problem(schema, parameters)
        if problem:
            raise UserError(where, f"its parameters are no JSON Schema: {path} {problem}", _FIX)
        choices = schema.get("enum", ()) if isinstance(schema, Mapping) else ()
        left -= 1 + len(choices)
        if left < 0 or depth > _MAX_DEPTH:
            limit = f"{MAX_NODES} parts" if left < 0 else f"{_MAX_DEPTH} levels"
            raise UserError(where, f"its parameters have more than {limit}", "describe fewer choices, or plain text")
        todo += _parts(part)


def resolve(root: Mapping[str, Any], reference: str) -> object:
    """Return what a reference such as `#/$defs/place` points to; None if there is nothing."""
    found: object = root
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _parts(part: _Part) -> Iterable[_Part]:
    path, schema, depth = part
    if not isinstance(schema, Mapping):
        return
    for key in _SCHEMA:
        if key in schema:
            yield _Part(f"{path}.{key}", schema[key], depth + 1)
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield _Part(f"{path}.additionalProperties", schema["additionalProperties"], depth + 1)
    for key in _SCHEMAS:
        for place, inner in enumerate(schema.get(key, ())):
            yield _Part(f"{path}.{key}.{place}", inner, depth + 1)
    for key in _NAMED:
        for name, inner in schema.get(key, {}).items():
            yield _Part(f"{path}.{key}.{name}", inner, depth + 1)


def _problem(schema: object, root: Mapping[str, Any]) -> str:
    """Return what is wrong with one schema, its inner schemas aside; empty if nothing is."""
    if not isinstance(schema, Mapping):
        return f"is {type(schema).__name__}, not an object"
    for key, (fits, form) in _FORMS.items():
        if key in schema and not fits(schema[key]):
            return f"has `{key}` that is not {form}"
    if "$ref" in schema:
        if not isinstance(schema["$ref"], str) or not (schema["$ref"] + "/").startswith("#/"):
            return f"refers to {schema['$ref']!r}: a reference must stay inside the schema"
        if not isinstance(resolve(root, schema["$ref"]), Mapping):
            return f"refers to {schema['$ref']!r}, which is not there"
    return ""


def _is_type(value: object) -> bool:
    names = [value] if isinstance(value, str) else value
    return isinstance(names, list) and bool(names) and all(isinstance(n, str) and n in TYPES for n in names)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_names(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)


_FORMS: dict[str, tuple[Callable[[object], bool], str]] = {
    "type": (_is_type, f"one or several of {', '.join(TYPES)}"),
    "enum": (lambda value: isinstance(value, list), "a list"),
    "required": (_is_names, "a list of names"),
    "additionalProperties": (lambda value: isinstance(value, (bool, Mapping)), "true, false or a schema"),
    "uniqueItems": (lambda value: isinstance(value, bool), "true or false"),
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),  # type: ignore[operator]
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (_is_number, "a number")),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), (_is_count, "a count")),
    **dict.fromkeys(("minProperties", "maxProperties"), (_is_count, "a count")),
    **dict.fromkeys(_NAMED, (lambda value: isinstance(value, Mapping), "an object")),
    **dict.fromkeys(_SCHEMAS, (lambda value: isinstance(value, list) and bool(value), "a list of schemas")),
}
