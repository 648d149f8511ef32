"""From a typed Python function to the JSON Schema of its arguments, and from checked values to a call of it.

Supported annotations: `int`, `float`, `Fraction` (exact), `bool`, `str`, `list[...]`, `dict[str, ...]`,
`Literal[...]`, unions of numbers, and `X | None`; defaults, `*args` and keyword-only arguments. Anything else is
refused when the tool is made, not when it is called.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from toolken.errors import ToolError, UserError

JsonSchema = dict[str, Any]

_SCALARS: dict[object, str] = {int: "integer", float: "number", Fraction: "number", bool: "boolean", str: "string"}
_NUMBERS = (int, float, Fraction)


class Description(NamedTuple):
    """What a signature and its docstring say about a tool."""

    description: str
    parameters: JsonSchema
    order: tuple[str, ...]
    variadic: str | None


def describe(function: Callable[..., object]) -> Description:
    """Read the schema, the argument order and the description of a function.

    Raises:
        UserError: An argument has no type, or one that has no place in a schema.
    """
    where = f"tool `{getattr(function, '__qualname__', function)}`"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise UserError(where, "an async function cannot be a tool", "write a plain `def`")
    signature, hints = _signature(function, where)
    summary, argument_texts = read_docstring(inspect.getdoc(function) or "")
    properties: JsonSchema = {}
    required: list[str] = []
    variadic = None
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            raise UserError(where, f"`**{name}` has no schema", "name every argument")
        if name not in hints:
            raise UserError(where, f"the argument `{name}` has no type", f"write `{name}: float`, or another type")
        schema = annotation_schema(hints[name], f"{where}, argument `{name}`")
        if parameter.kind is parameter.VAR_POSITIONAL:
            variadic = name
            schema = {"type": "array", "items": schema}
        elif parameter.default is not parameter.empty:
            schema["default"] = _default(parameter.default, f"{where}, argument `{name}`")
        else:
            required.append(name)
        if name in argument_texts:
            schema["description"] = argument_texts[name]
        properties[name] = schema
    parameters: JsonSchema = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return Description(summary, parameters, tuple(properties), variadic)


def annotation_schema(annotation: object, where: str) -> JsonSchema:
    """Return the JSON Schema of one annotation.

    Raises:
        UserError: The annotation is not among the supported ones.
    """
    if annotation in _SCALARS:
        return {"type": _SCALARS[annotation]}
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list and len(inner) == 1:
        return {"type": "array", "items": annotation_schema(inner[0], where)}
    if origin is dict and len(inner) == 2 and inner[0] is str:
        return {"type": "object", "additionalProperties": annotation_schema(inner[1], where)}
    if origin is Literal and all(isinstance(value, (str, int)) for value in inner):
        return {"enum": list(inner)}
    if _is_union(origin):
        members = [member for member in inner if member is not type(None)]
        nullable = len(members) < len(inner)
        if len(members) == 1:
            schema = annotation_schema(members[0], where)
        elif all(member in _NUMBERS for member in members):
            schema = {"type": "number"}
        else:
            schema = {}
        if schema:
            return _nullable(schema) if nullable else schema
    raise UserError(
        where,
        f"the type `{getattr(annotation, '__name__', annotation)}` is not supported",
        "use int, float, Fraction, bool, str, list[...], dict[str, ...], Literal[...] or `X | None`",
    )


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Split a Google docstring into its first paragraph and the texts of its `Args:` section."""
    summary = " ".join(text.strip().split("\n\n", 1)[0].split())
    arguments: dict[str, str] = {}
    inside, current, indent = False, "", 0
    for line in text.splitlines():
        stripped = line.strip()
        depth = len(line) - len(line.lstrip())
        if stripped in ("Args:", "Arguments:"):
            inside, indent, current = True, depth, ""
        elif inside and stripped and depth <= indent:
            inside = False
        elif inside and stripped:
            name, colon, rest = stripped.partition(":")
            name = name.split("(")[0].strip().lstrip("*")
            if colon and name.isidentifier():
                current = name
                arguments[current] = rest.strip()
            elif current:
                arguments[current] += " " + stripped
    return summary, arguments


def call_function(function: Callable[..., object], arguments: Mapping[str, object]) -> object:
    """Call a function with checked arguments by name, each turned into what its annotation says."""
    positional: list[object] = []
    keyword: dict[str, object] = {}
    signature, hints = _plan(function)
    parameters = list(signature.parameters.values())
    rest = next((arguments.get(p.name) for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    gap = False
    for parameter in parameters:
        name, hint = parameter.name, hints.get(parameter.name)
        if parameter.kind is parameter.VAR_KEYWORD:
            keyword.update((key, value) for key, value in arguments.items() if key not in signature.parameters)
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += [convert(value, hint) for value in rest] if isinstance(rest, (list, tuple)) else []
        elif name not in arguments:
            if rest and parameter.kind is not parameter.KEYWORD_ONLY and parameter.default is not parameter.empty:
                positional.append(parameter.default)
            else:
                gap = True
        elif parameter.kind is parameter.KEYWORD_ONLY or gap:
            keyword[name] = convert(arguments[name], hint)
        else:
            positional.append(convert(arguments[name], hint))
    return function(*positional, **keyword)


def convert(value: object, annotation: object) -> object:
    """Turn a checked value into the type that the annotation names; exact where `Fraction` is accepted.

    Raises:
        ToolError: The number does not fit into a float.
    """
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list and isinstance(value, (list, tuple)):
        return [convert(item, inner[0]) for item in value]
    if origin is dict and isinstance(value, dict):
        return {key: convert(item, inner[1]) for key, item in value.items()}
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return value
    accepted = [member for member in inner if member is not type(None)] if _is_union(origin) else [annotation]
    if int in accepted and value == int(value):
        return int(value)
    if Fraction in accepted:
        return value if len(accepted) > 1 else Fraction(value)
    if float in accepted:
        try:
            return float(value)
        except OverflowError:
            raise ToolError("the number is too large") from None
    return value


def _is_union(origin: object) -> bool:
    # `X | Y`, and the older spelling, which a user may still write
    return origin is typing.Union or origin is types.UnionType  # noqa: TID251


def _nullable(schema: JsonSchema) -> JsonSchema:
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    return {**schema, "type": [schema["type"], "null"]}


def _default(value: object, where: str) -> object:
    """Return a default as JSON holds it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_default(item, where) for item in value]
    if isinstance(value, Fraction):
        return float(value)
    raise UserError(where, f"the default {value!r} is not a JSON value", "use None and fill it inside the function")


def _signature(function: Callable[..., object], where: str) -> tuple[inspect.Signature, dict[str, Any]]:
    try:
        signature = inspect.signature(function)
        hints = typing.get_type_hints(function)
    except (NameError, TypeError, ValueError) as error:
        raise UserError(where, f"its signature cannot be read: {error}", "use types that its module imports") from error
    return signature, hints


@lru_cache(maxsize=1024)
def _plan(function: Callable[..., object]) -> tuple[inspect.Signature, dict[str, Any]]:
    return _signature(function, f"tool `{getattr(function, '__qualname__', function)}`")
