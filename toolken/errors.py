"""The two kinds of failure that are expected; everything else crashes with its traceback.

`UserError` is bad input to the program: it names where, what is wrong and how to fix it, in one line, and the command
line prints it without a traceback. `ToolError` is a tool that says no: it becomes an outcome, goes back to the engine
as data, and never ends a run.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_PART = 1000
_KNOWN = 60
_CLOSE = 0.5


class UserError(Exception):
    """Bad configuration, data or artefact.

    The line is safe to print: what a file or a flag holds is shortened, and cannot drive a terminal.

    Args:
        where: File, line, key or argument at fault.
        problem: What is wrong with it.
        fix: What to do about it; left out where the problem already says so.
    """

    def __init__(self, where: str, problem: str, fix: str = "") -> None:
        self.where = where
        self.problem = problem
        self.fix = fix
        line = f"{_shown(where) or repr(where)}: {_shown(problem)}" + (f"; {_shown(fix)}" if fix else "")
        super().__init__(line)


class ToolError(Exception):
    """A tool or an argument text that is refused; the message is shown to the model when the call is asked again."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "did you mean `x`?" for the closest known name, the first of equally close ones; or the known names."""
    names = list(known)
    matcher = difflib.SequenceMatcher()
    matcher.set_seq2(name)

    def likeness(candidate: str) -> float:
        matcher.set_seq1(candidate)
        if matcher.real_quick_ratio() < _CLOSE or matcher.quick_ratio() < _CLOSE:
            return 0.0
        return matcher.ratio()

    closest = max(names, key=likeness, default="")
    if names and likeness(closest) >= _CLOSE:
        return f"did you mean `{closest}`?"
    return f"known: {', '.join(names[:_KNOWN])}" + (f" and {len(names) - _KNOWN} more" if len(names) > _KNOWN else "")


def _shown(text: str) -> str:
    """Return a text on one line: control characters as escapes, what is too long without its middle."""
    if len(text) > _PART:
        text = f"{text[: _PART // 2]} ... {text[-_PART // 2 :]}"
    return " ".join("".join(c if c.isprintable() or c in " \n\r\t" else repr(c)[1:-1] for c in text).split())
