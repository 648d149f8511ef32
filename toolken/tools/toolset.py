"""An ordered, hashable set of tools: row `k` of the head is tool `k`.

Invariant: names are unique and the order never changes; two sets with the same tools in the same order are equal and
hash alike. There is no global registry: a set is a value. A rule about which tools may follow which belongs to the
set, not to what a tool is: it plays no part in equality and hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import overload

from toolken.errors import UserError, did_you_mean
from toolken.tools.rule import Rule
from toolken.tools.tool import Tool, tool


class ToolSet(Sequence[Tool]):
    """Tools in row order; takes Tools and plain typed functions.

    Attributes:
        rule: Which tools may follow which in an answer; None: any, at any time.

    Raises:
        UserError: Two tools have one name, or a function cannot be made a tool.
    """

    def __init__(self, tools: Iterable[Tool | Callable[..., object]] = (), *, rule: Rule | None = None) -> None:
        self.rule = rule
        self._tools = tuple(item if isinstance(item, Tool) else tool(item) for item in tools)
        self._index: dict[str, int] = {}
        for row, item in enumerate(self._tools):
            if item.name in self._index:
                raise UserError("tools", f"two tools are called <{item.name}>", "rename one of them: `@tool(name=...)`")
            self._index[item.name] = row

    def __len__(self) -> int:
        return len(self._tools)

    @overload
    def __getitem__(self, key: int | str) -> Tool: ...

    @overload
    def __getitem__(self, key: slice) -> ToolSet: ...

    def __getitem__(self, key: int | str | slice) -> Tool | ToolSet:
        """Return the tool of a row or of a name, or the set of a slice of rows."""
        if isinstance(key, slice):
            return ToolSet(self._tools[key], rule=self.rule)
        return self._tools[self.index(key) if isinstance(key, str) else key]

    def __contains__(self, item: object) -> bool:
        return item in self._index if isinstance(item, str) else item in self._tools

    def __eq__(self, other: object) -> bool:
        return self._tools == other._tools if isinstance(other, ToolSet) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._tools)

    def __add__(self, other: Iterable[Tool | Callable[..., object]]) -> ToolSet:
        """Return this set with the other's rows behind its own."""
        return ToolSet([*self._tools, *other], rule=self.rule)

    def __repr__(self) -> str:
        return f"ToolSet({', '.join(f'<{name}>' for name in self.names)})"

    @property
    def names(self) -> tuple[str, ...]:
        """Names in row order."""
        return tuple(self._index)

    @property
    def hash(self) -> str:
        """SHA-256 over the schemas of all tools, in row order."""
        return hashlib.sha256("\n".join(item.schema_hash for item in self._tools).encode()).hexdigest()

    def index(self, value: object, start: int = 0, stop: int | None = None) -> int:
        """Return the row of a tool, by name or by the tool itself.

        Raises:
            UserError: There is no such tool.
        """
        name = value.name if isinstance(value, Tool) else value
        row = self._index.get(name) if isinstance(name, str) else None
        if row is None or row < start or (stop is not None and row >= stop):
            raise UserError("tools", f"there is no tool <{name}>", did_you_mean(str(name), self.names))
        return row

    def subset(self, names: Iterable[str]) -> ToolSet:
        """Return the tools of these names, in the order of the names."""
        return ToolSet([self._tools[self.index(name)] for name in names], rule=self.rule)
