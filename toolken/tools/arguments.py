"""Argument text as models write it -> typed values, checked against the tool's schema.

Forms: values in order (`316, 196`), by name (`a=3, b=4`), or one JSON object (`{"a": 3}`); the brackets around them
are optional. Invariant: the text is read by a grammar and never evaluated, any text is answered in bounded time, and
the only exception is `ToolError`, whose message says what was wrong so that a model can be asked again. Nothing is
guessed: what can be read in two ways is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolken.errors import ToolError, did_you_mean
from toolken.tools.numeric import MAX_TEXT, normalise, show
from toolken.tools.schema import items_of
from toolken.tools.splitting import call_content, split_arguments, unwrap, visible
from toolken.tools.tool import Tool
from toolken.tools.values import check_arguments, check_choices, parse_object, parse_value

_KEYWORD = re.compile(r"(?:^|[,;])\s*([A-Za-z_][A-Za-z0-9_]*)\s*=(?!=)")


def parse_arguments(text: str, tool: Tool) -> dict[str, object]:
    """Read the arguments of a call of this tool.

    Args:
        text: What stands behind `<name>`, or behind its opening bracket.
        tool: Gives names, order, types and defaults.

    Returns:
        Values by name; a variadic argument is a list. Arguments left out are absent: the function's defaults apply.

    Raises:
        ToolError: The text cannot be read, or the values do not fit the schema; the argument is named.
    """
    if len(text) > MAX_TEXT:
        raise ToolError(f"the arguments are longer than {MAX_TEXT} characters")
    if tool.numeric:
        text = normalise(text)
    content = call_content(text, quotes=takes_text(tool)).strip()
    if content.startswith("{") and content.endswith("}") and not _takes_one_object(tool):
        arguments = parse_object(content)
    else:
        arguments = _by_position_and_name(content, tool)
    unknown = [name for name in arguments if name not in tool.properties]
    if unknown:
        raise ToolError(f"<{tool.name}> has no argument {show(unknown[0])}; {did_you_mean(unknown[0], tool.order)}")
    missing = [name for name in tool.required if name not in arguments]
    if missing:
        raise ToolError(f"the argument `{missing[0]}` is missing")
    return check_arguments(tool, arguments)


def takes_text(tool: Tool) -> bool:
    """Whether quotes mean anything in the tool's arguments."""
    return not tool.numeric


def _by_position_and_name(content: str, tool: Tool) -> dict[str, object]:
    quotes = takes_text(tool)
    marks = _keywords(content, tool, quotes=quotes)
    positional = content[: marks[0][0]] if marks else content
    arguments: dict[str, object] = {}
    if positional.strip() or not marks:
        arguments = _positional(positional, tool, bool(marks))
    for number, (_, start, name) in enumerate(marks):
        stop = marks[number + 1][0] if number + 1 < len(marks) else len(content)
        if name in arguments:
            raise ToolError(f"the argument {show(name)} is given twice")
        if name not in tool.properties:
            raise ToolError(f"<{tool.name}> has no argument {show(name)}; {did_you_mean(name, tool.order)}")
        arguments[name] = _named(content[start:stop], name, tool)
    return arguments


def _positional(content: str, tool: Tool, named: bool) -> dict[str, object]:
    quotes = takes_text(tool)
    least, most = tool.arity
    if _takes_one_text(tool) and content.strip():
        pieces = [content.strip()]
    else:
        if tool.numeric or tool.order[:1] == (tool.variadic,):
            content = unwrap(content, quotes=quotes)
        pieces = split_arguments(content, 0 if named else least, most, quotes=quotes)
    if tool.variadic:
        check_choices(len(pieces), _item_schema(tool.variadic, tool))
    arguments: dict[str, object] = {}
    rest: list[object] = []
    for index, piece in enumerate(pieces):
        name = _name_at(index, tool)
        value = _value(piece, _item_schema(name, tool), name)
        if name == tool.variadic:
            rest.append(value)
        else:
            arguments[name] = value
    if rest and tool.variadic:
        arguments[tool.variadic] = rest
    return arguments


def _named(text: str, name: str, tool: Tool) -> object:
    if name != tool.variadic:
        return _value(text, tool.properties[name], name)
    quotes = takes_text(tool)
    pieces = split_arguments(unwrap(text, quotes=quotes), 0, None, quotes=quotes)
    check_choices(len(pieces), _item_schema(name, tool))
    return [_value(piece, _item_schema(name, tool), name) for piece in pieces]


def _value(text: str, schema: Mapping[str, Any], name: str) -> object:
    if not text.strip():
        raise ToolError(f"the argument `{name}` is empty")
    try:
        return parse_value(text.strip(), schema)
    except ToolError as error:
        raise ToolError(f"argument `{name}`: {error}") from None


def _name_at(index: int, tool: Tool) -> str:
    if tool.variadic and index >= tool.order.index(tool.variadic):
        return tool.variadic
    return tool.order[index]


def _item_schema(name: str, tool: Tool) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = tool.properties[name]
    return items_of(schema) if name == tool.variadic else schema


def _keywords(content: str, tool: Tool, *, quotes: bool) -> list[tuple[int, int, str]]:
    """Return where each `name=` starts and ends; in free text only names that the tool has count."""
    top = {index for index, _, around in visible(content, quotes=quotes) if not around}
    return [
        (found.start(), found.end(), found.group(1))
        for found in _KEYWORD.finditer(content)
        if found.start(1) in top and (found.group(1) in tool.properties or not _takes_one_text(tool))
    ]


def _takes_one_text(tool: Tool) -> bool:
    """Whether the whole text, commas included, is one string."""
    return len(tool.order) == 1 and not tool.variadic and tool.properties[tool.order[0]].get("type") == "string"


def _takes_one_object(tool: Tool) -> bool:
    return len(tool.order) == 1 and tool.properties[tool.order[0]].get("type") == "object"
