"""Plans as training texts: every call is a mark that stands in the text itself, `[WALK]` or `<couch>`.

A text holds solved tasks and, last, the one to learn from: `Task 4:`, a description, a line `Plan:`, and the plan. The
solved tasks are what the prompt shows, so that they are left out. Invariant: the marks of the plan are those that the
row lists, in order; a mark is the whole text of its call. `<couch>` belongs to the tool `couch`, `[WALK]` to `[WALK]`.
Source: the VirtualHome texts of Hao et al., "ToolkenGPT", arXiv 2305.11554.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from toolken.data.example import CallSpan, Example
from toolken.data.inline import check_call
from toolken.errors import UserError

MARK = re.compile(r"\[\w+\]|<\w+>")
_TASK = re.compile(r"^Task \d+:\n", re.MULTILINE)
_PLAN = "\nPlan:\n"
_FORM = "write solved tasks, `Task n:`, a description, `Plan:` and the plan, and list its marks in `tar_eq`"


def mark_name(mark: str) -> str:
    """Return the tool that a mark stands for."""
    return mark.strip("<>")


def mark_text(name: str) -> str:
    """Return the mark of a tool."""
    return name if name.startswith("[") else f"<{name}>"


def is_marked(row: Mapping[str, object]) -> bool:
    """Return whether a row lists marks, where other rows list calls with arguments and results."""
    marks = row.get("tar_eq")
    return isinstance(marks, list) and bool(marks) and all(isinstance(m, str) and MARK.fullmatch(m) for m in marks)


def read_marked(row: Mapping[str, object], where: str, tools: Sequence[str] | None) -> Example:
    """Read `{"text", "tar_eq"}` where `tar_eq` lists marks; token indices belong to one tokenizer and are ignored.

    Raises:
        UserError: The text has no task with a plan, the plan has other marks than the row lists, or a tool is unknown.
    """
    text, marks = row.get("text"), row.get("tar_eq")
    tasks = list(_TASK.finditer(text)) if isinstance(text, str) else []
    if not isinstance(text, str) or not tasks or _PLAN not in text[tasks[-1].end() :]:
        raise UserError(where, "`text` ends in no task with a plan", _FORM)
    question, _, answer = text[tasks[-1].end() :].rpartition(_PLAN)
    answer = answer.strip()
    found = list(MARK.finditer(answer))
    if [match[0] for match in found] != marks:
        raise UserError(where, "the plan has other marks than `tar_eq` lists", _FORM)
    for match in found:
        check_call(mark_name(match[0]), where, tools)
    calls = tuple(CallSpan(match.start(), match.end(), mark_name(match[0]), "") for match in found)
    return Example(question.strip(), answer, calls, origin=where)
