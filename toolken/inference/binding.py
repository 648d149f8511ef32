"""Which row of an artefact may call which function: built-in tools by themselves, others only when a user passes them.

Invariant: nothing that an artefact says is imported. A row runs a tool of the same name and the same schema hash; a
different schema is refused with the fix. Rows that cannot run (not passed, not trained, denied, without a function)
are masked, with one line that says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from toolken.errors import UserError, did_you_mean
from toolken.model.artefact import ToolRecord
from toolken.tools.arithmetic import ARITHMETIC, REFERENCE
from toolken.tools.tool import Tool
from toolken.tools.toolset import ToolSet


class Binding(NamedTuple):
    """Row -> tool of the rows that may be picked, and what is worth a line on screen."""

    tools: dict[int, Tool]
    notes: list[str]


def bind(
    records: Sequence[ToolRecord], passed: ToolSet | None, *, allow: Sequence[str] = (), deny: Sequence[str] = ()
) -> Binding:
    """Bind the rows of an artefact.

    Args:
        records: The artefact's tools in row order.
        passed: Tools that the user vouches for.
        allow: Only these names may be called; empty: all.
        deny: These names may not be called.

    Raises:
        UserError: An unknown name in `allow` or `deny`, or a tool whose schema is not the trained one.
    """
    names = [record.name for record in records]
    _check_names("inference.allow", allow, names)
    _check_names("inference.deny", deny, names)
    bound: dict[int, Tool] = {}
    masked: dict[str, list[str]] = {}
    for row, record in enumerate(records):
        if (allow and record.name not in allow) or record.name in deny:
            continue
        tool = _passed(record.name, passed) or _builtin(record)
        problem = _problem(record, tool)
        if problem or tool is None:
            masked.setdefault(problem, []).append(f"<{record.name}>")
        else:
            bound[row] = tool
    notes = [f"{', '.join(rows)} will not be called: {problem}" for problem, rows in masked.items()]
    extra = [tool.name for tool in passed or () if tool.name not in names]
    if extra:
        notes.append(f"no toolken was trained for {', '.join(f'<{name}>' for name in extra)}: never called")
    return Binding(bound, notes)


def _check_names(where: str, chosen: Iterable[str], names: Sequence[str]) -> None:
    for name in chosen:
        if name not in names:
            hint = did_you_mean(name, names) if names else "there are no toolkens"
            raise UserError(where, f"no tool <{name}> in the artefact", hint)


def _passed(name: str, tools: ToolSet | None) -> Tool | None:
    return tools[name] if tools is not None and name in tools.names else None


def _builtin(record: ToolRecord) -> Tool | None:
    if not record.reference.startswith(REFERENCE):
        return None
    return _passed(record.reference.removeprefix(REFERENCE), ARITHMETIC)


def _problem(record: ToolRecord, tool: Tool | None) -> str:
    """Return why a row cannot run; empty if it can."""
    if not record.trained:
        return "no training example"
    if tool is None:
        named = record.reference.partition(":")[0]
        place = record.reference.partition("#")[0] if named.endswith(".py") or named == "benchmark" else ""
        return f"pass its tool set (--tools {place or 'FILE.py:NAME'}, or Engine(tools=...))"
    if tool.schema_hash != record.schema_hash:
        raise UserError(
            f"tool <{record.name}>",
            f"its schema {tool.schema_hash[:12]} is not the one that was trained, {record.schema_hash[:12]}",
            "pass the tool as it was (name, description, arguments, order), or train its row again",
        )
    return "" if tool.function is not None else "it has a description and no function"
