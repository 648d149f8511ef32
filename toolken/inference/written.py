"""Calls that the base writes out in words, `<name>(arguments)=`, as prompts with worked calls teach it.

Invariant: a call is found once, when its `=` has been written; what follows it is the result. A name that is no tool,
arguments over several lines and brackets that do not end in `=` are ordinary text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from toolken.tools.arguments import takes_text
from toolken.tools.splitting import closing_bracket
from toolken.tools.tool import Tool
from toolken.tools.toolset import ToolSet

_EQUALS = re.compile(r"[^\S\n]*=")


class WrittenCall(NamedTuple):
    """A call as it stands in a text, the argument text without its brackets."""

    tool: Tool
    raw_arguments: str


class WrittenCalls:
    """Finds the calls of some tools in one text that grows."""

    def __init__(self, tools: ToolSet) -> None:
        self._tools = tools
        names = sorted(map(re.escape, tools.names), key=len, reverse=True)
        self._opening = re.compile(rf"<({'|'.join(names)})>\(" if names else r"(?!)")
        self._read = 0

    def find(self, text: str) -> WrittenCall | None:
        """Return the first complete call behind those that were returned before."""
        for opening in self._opening.finditer(text, self._read):
            tool, rest = self._tools[opening[1]], text[opening.end() :]
            end = closing_bracket(rest, quotes=takes_text(tool))
            if end is None or "\n" in rest[:end]:
                continue
            if equals := _EQUALS.match(rest, end + 1):
                self._read = opening.end() + equals.end()
                return WrittenCall(tool, rest[:end])
        return None
