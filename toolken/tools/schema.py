"""Which JSON Schemas a tool may have: checked once, when the tool is made.

Schemas come from artefacts and importers too, so every keyword must have the form that the metaschema of draft
2020-12 gives it, whatever dialect is named, and a reference must lead to a schema inside: nothing is ever fetched.
Other dialects than the ones that share these forms are refused, and so is a part that names its own. Invariant: what
passes here can be applied by `validation` without an error of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import jsonschema
from jsonschema_specifications import REGISTRY
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from toolken.errors import ToolError, UserError
from toolken.tools.exact import MAX_BITS
from toolken.tools.patterns import compile_pattern
from toolken.tools.problems import explain
from toolken.tools.validation import bounded_validator, find_errors

MAX_NODES = 20_000
"""Most values, at any depth, that one tool's parameters may hold."""

_MAX_DEPTH = 80
_MAX_KEYWORDS = 50
_DIALECTS = ("json-schema.org/draft/2020-12/schema", "json-schema.org/draft/2019-09/schema",
             "json-schema.org/draft-07/schema")  # fmt: skip
_FIX = "write the JSON Schema of an object; see json-schema.org"

_Path = tuple[str | int, ...]


def check_schema(parameters: Mapping[str, Any], where: str) -> None:
    """Check the schema of a tool's arguments.

    Raises:
        UserError: It is no schema, too large, or refers to something outside; the message names the part.
    """
    if not isinstance(parameters, Mapping):
        raise _refusal(where, ("parameters",), f"is {type(parameters).__name__}, not an object")
    _check_size(parameters, where)
    dialect = parameters.get("$schema", _DIALECTS[0])
    if str(dialect).removeprefix("http://").removeprefix("https://").rstrip("#") not in _DIALECTS:
        raise _refusal(where, ("parameters", "$schema"), f"{dialect!r} is none of {', '.join(_DIALECTS)}")
    root = {key: part for key, part in parameters.items() if key not in ("$schema", "$id")}
    found: set[int] = set()
    references: list[tuple[_Path, str]] = []
    todo: list[tuple[_Path, Any]] = [(("parameters",), root)]
    while todo:
        path, schema = todo.pop()
        todo += _parts(schema, path, where)
        if isinstance(schema, Mapping):
            found.add(id(schema))
            _check_keywords(schema, path, where)
            if "$ref" in schema:
                references.append((path, schema["$ref"]))
    for path, reference in references:
        _check_reference(reference, root, found, path=path, where=where)


def items_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a list's items; an empty one where true, false or nothing is said about them."""
    items = schema.get("items")
    return items if isinstance(items, Mapping) else {}


def _refusal(where: str, path: _Path, problem: str) -> UserError:
    return UserError(where, f"its parameters are no JSON Schema: {'.'.join(map(str, path))} {problem}", _FIX)


def _check_size(parameters: Mapping[str, Any], where: str) -> None:
    """Refuse what is too large, or no JSON: nothing after this takes long."""
    count, level = 0, [parameters]
    for _ in range(_MAX_DEPTH):
        count += len(level)
        if count > MAX_NODES or not level:
            break
        level = list(itertools.islice((inner for value in level for inner in _values(value, where)), MAX_NODES + 1))
    if level:
        limit = f"{MAX_NODES} parts" if count > MAX_NODES else f"{_MAX_DEPTH} levels"
        raise UserError(where, f"its parameters have more than {limit}", "describe fewer choices, or plain text")


def _values(value: Any, where: str) -> Any:
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return value.values()
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise _refusal(where, ("parameters",), "hold a number that is too large")
    if value is None or isinstance(value, (list, tuple, str, int, float)):
        return value if isinstance(value, (list, tuple)) else ()
    raise _refusal(where, ("parameters",), f"hold a {type(value).__name__} that is no JSON value")


def _parts(schema: object, path: _Path, where: str) -> list[tuple[_Path, Any]]:
    """Return the schemas inside one, after a check of the forms of its keywords."""
    inner = []
    try:
        for error in find_errors(schema, _METASCHEMA):
            at = (*path, *error.path)
            if error.validator != "$dynamicRef":
                while error.context:
                    error = error.context[0]
                raise _refusal(where, (*at[:-1], f"{at[-1]}:"), explain(error))
            inner.append((at, error.instance))
    except ToolError:
        raise _refusal(where, path, "is too large to be checked") from None
    return inner


def _check_keywords(schema: Mapping[str, Any], path: _Path, where: str) -> None:
    """Refuse what the metaschema lets through and the validator must not meet."""
    if len(schema) > _MAX_KEYWORDS:
        raise _refusal(where, path, f"has more than {_MAX_KEYWORDS} keywords")
    for keyword in ("$schema", "$id", "$dynamicRef"):
        if keyword in schema:
            raise _refusal(where, path, f"has `{keyword}`, which has no place inside the parameters of a tool")
    for pattern in (*schema.get("patternProperties", ()), *((schema["pattern"],) if "pattern" in schema else ())):
        compile_pattern(pattern, f"{where}, {'.'.join(map(str, path))}")


def _check_reference(reference: str, root: Mapping[str, Any], found: set[int], *, path: _Path, where: str) -> None:
    """Refuse a reference unless the validator's own way of following it ends at a schema that was checked."""
    if not (reference + "/").startswith("#/"):
        raise _refusal(where, path, f"refers to {reference!r}: a reference must stay inside the schema")
    registry: Registry[Any] = Registry().with_resource("", DRAFT202012.create_resource(root))
    try:
        target = registry.resolver().lookup(reference).contents
    except (Unresolvable, ValueError, TypeError):
        target = None
    if not isinstance(target, bool) and id(target) not in found:
        raise _refusal(where, path, f"refers to {reference!r}, which is not there")


def _forms() -> dict[str, Any]:
    """Return the metaschema in one piece: the form of every keyword, with inner schemas left to the caller."""
    official = jsonschema.Draft202012Validator.META_SCHEMA
    forms: dict[str, Any] = {"type": official["type"], "properties": {}, "$defs": {}}
    for part in official["allOf"]:
        vocabulary = REGISTRY[f"https://json-schema.org/draft/2020-12/{part['$ref']}"].contents
        forms["properties"] |= vocabulary["properties"]
        forms["$defs"] |= vocabulary.get("$defs", {})
    forms["properties"]["definitions"] = forms["properties"]["$defs"]
    return forms


_METASCHEMA = bounded_validator(_forms())
