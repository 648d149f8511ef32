"""The two kinds of failure that are expected; everything else crashes with its traceback.

`UserError` is bad input to the program: it names where, what is wrong and how to fix it, in one line, and the command
line prints it without a traceback. `ToolError` is a tool that says no: it becomes an outcome, goes back to the engine
as data, and never ends a run.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Bad configuration, data or artefact.

    Args:
        where: File, line, key or argument at fault.
        problem: What is wrong with it.
        fix: What to do about it; left out where the problem already says so.
    """

    def __init__(self, where: str, problem: str, fix: str = "") -> None:
        self.where = where
        self.problem = problem
        self.fix = fix
        line = f"{where}: {problem}" + (f"; {fix}" if fix else "")
        super().__init__(" ".join(line.split()))


class ToolError(Exception):
    """A tool or an argument text that is refused; the message is shown to the model when the call is asked again."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "did you mean `x`?" for the closest known name, or the list of known names."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean `{close[0]}`?" if close else f"known: {', '.join(names)}"
