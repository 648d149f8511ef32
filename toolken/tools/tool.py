"""A tool: name, description, JSON Schema of its arguments, and how it runs; and the outcome of one call.

Invariant: a `Tool` can be shown as `<name>`, `order` names every argument of the schema once, and `schema_hash`
changes when and only when what a model can be told about the tool changes. A tool without a function is described,
and cannot be run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, overload

from toolken.errors import ToolError, UserError
from toolken.tools.schema import check_schema, items_of
from toolken.tools.signature import describe

Status = Literal["ok", "refused", "tool_error", "timeout", "crash"]

_NAME = re.compile(r"[A-Za-z_\[][A-Za-z0-9_.\[\]-]{0,127}")


@dataclass(frozen=True)
class Outcome:
    """What came of one call.

    Attributes:
        status: `ok`; `refused` (bad arguments, or the tool said no); `tool_error` (the tool raised); `timeout`;
            `crash` (its process died).
        detail: What was wrong, or what the tool printed.
        transport: State of the connection, where the tool knows it.
        business: State of the request behind the connection, where the tool knows it.
        data: State of the data returned, where the tool knows it.
        result: The value, JSON-able but for exact Fractions; None unless `ok`.
    """

    status: Status
    detail: str = ""
    transport: str | None = None
    business: str | None = None
    data: str | None = None
    result: object | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.status == "ok"

    def as_dict(self) -> dict[str, str | None]:
        """Return the form that answers carry, without the result."""
        return {
            "status": self.status,
            "detail": self.detail,
            "transport": self.transport,
            "business": self.business,
            "data": self.data,
        }


@dataclass(frozen=True)
class Tool:
    """A tool that a toolken can stand for.

    Attributes:
        name: Shown to people as `<name>`.
        description: One paragraph.
        parameters: JSON Schema of the arguments, of type `object`.
        order: Argument names in the order in which a call gives them.
        variadic: The argument that takes all further values, as a list.
        function: What runs; None for a tool that is only described.
        reference: `builtin:arithmetic.gcd`, `my_tools.py:TOOLS#name`, or empty for a function of this process.
        origin: Absolute file and the name in it that the tool was loaded from by the user's flag.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    order: tuple[str, ...]
    variadic: str | None = None
    function: Callable[..., object] | None = field(default=None, repr=False)
    reference: str = field(default="", compare=False)
    origin: tuple[str, str] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        where = f"tool `{self.name}`"
        if not _NAME.fullmatch(self.name):
            raise UserError(
                where,
                "the name cannot be shown as <name>",
                "use letters, digits, `_`, `.`, `-`, `[` and `]`, up to 128",
            )
        check_schema(self.parameters, where)
        properties = self.parameters.get("properties", {})
        if sorted(self.order) != sorted(properties):
            problem = f"its order {list(self.order)} does not name each of its arguments once"
            raise UserError(where, problem, f"its arguments: {', '.join(properties)}")
        if self.variadic is not None and self.variadic not in self.order:
            problem = f"its variadic argument `{self.variadic}` is not one of its arguments"
            raise UserError(where, problem, f"its arguments: {', '.join(self.order)}")
        if unknown := [name for name in self.required if name not in self.order]:
            problem = f"its required argument `{unknown[0]}` is not one of its arguments"
            raise UserError(where, problem, f"its arguments: {', '.join(self.order)}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, in this process and without limits."""
        if self.function is None:
            raise ToolError(f"<{self.name}> is only described: no function is bound to it")
        return self.function(*args, **kwargs)

    def __hash__(self) -> int:
        return hash(self.schema_hash)

    @cached_property
    def properties(self) -> Mapping[str, Any]:
        """The schemas of the arguments by name; an empty one where the schema is true or false."""
        properties: Mapping[str, Any] = self.parameters.get("properties", {})
        return {name: schema if isinstance(schema, Mapping) else {} for name, schema in properties.items()}

    @property
    def required(self) -> tuple[str, ...]:
        """Arguments without a default."""
        return tuple(self.parameters.get("required", ()))

    @property
    def arity(self) -> tuple[int, int | None]:
        """Fewest and most values of a call; None: any number."""
        most = None if self.variadic else len(self.order)
        return len(self.required), most

    @property
    def numeric(self) -> bool:
        """Whether every argument is a number, so that the numeric grammar can constrain decoding."""
        schemas = [items_of(schema) if name == self.variadic else schema for name, schema in self.properties.items()]
        return bool(schemas) and all(_is_numeric(schema) for schema in schemas)

    @property
    def schema_hash(self) -> str:
        """SHA-256 of name, description, parameters and order."""
        content = [self.name, self.description, self.parameters, list(self.order)]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _is_numeric(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type")
    names = {kinds} if isinstance(kinds, str) else set(kinds or ())
    return "enum" not in schema and bool(names) and names <= {"number", "integer", "null"} and names != {"null"}


@overload
def tool(function: Callable[..., object]) -> Tool: ...


@overload
def tool(*, name: str | None = None, description: str | None = None) -> Callable[[Callable[..., object]], Tool]: ...


def tool(
    function: Callable[..., object] | None = None, *, name: str | None = None, description: str | None = None
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """Make a Tool of a typed function and its docstring: `@tool`, or `@tool(name="...")`.

    The first paragraph of the docstring is the description, a Google `Args:` section describes the arguments.

    Raises:
        UserError: An argument has no type, or one that has no place in a schema.
    """
    if function is None:
        return lambda made: _make(made, name, description)
    return _make(function, name, description)


def _make(function: Callable[..., object], name: str | None, description: str | None) -> Tool:
    read = describe(function)
    return Tool(
        name=name or str(getattr(function, "__name__", "")),
        description=read.description if description is None else description,
        parameters=read.parameters,
        order=read.order,
        variadic=read.variadic,
        function=function,
    )
