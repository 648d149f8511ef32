"""Tools whose arguments tests read: numbers, texts, choices, lists and objects; none of them is run."""

from __future__ import annotations

from typing import Any, Literal

from toolken.tools.arguments import parse_arguments
from toolken.tools.tool import Tool, tool


def read_numbers(text: str, arity: int | None, *, minimum: int = 0) -> list[object]:
    """Read arguments as a call of a tool that takes so many numbers; None: any number of them."""
    names = ["values"] if arity is None else [f"x{place}" for place in range(arity)]
    number: dict[str, Any] = {"type": "number"}
    values = {"type": "array", "items": number, "minItems": minimum}
    schema = {
        "type": "object",
        "properties": {name: values if arity is None else number for name in names},
        "required": names if arity is not None else [],
    }
    variadic = "values" if arity is None else None
    parsed = parse_arguments(text, Tool("f", "", schema, tuple(names), variadic=variadic))
    return list(parsed["values"]) if arity is None else [parsed[name] for name in names]  # type: ignore[call-overload]


@tool
def book(
    city: str, nights: int, price: float = 9.5, kind: Literal["single", "double"] = "single", pets: bool = False
) -> str:
    """Book a room."""
    return city


@tool
def where(name: str) -> str:
    """Find a place."""
    return name


@tool
def tags(first: str, *more: str, limit: int | None = None, options: dict[str, int] | None = None) -> str:
    """Tag."""
    return first


@tool
def total(values: list[float], names: list[str] = []) -> float:  # noqa: B006
    """Sum."""
    return sum(values)
