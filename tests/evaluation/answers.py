"""Answers as an engine would give them, for marking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolken.inference.engine import Answer
from toolken.inference.events import CallRecord
from toolken.inference.schedule import Usage
from toolken.tools.tool import Outcome

OK = "ok"


def call(tool: str, arguments: Mapping[str, object] | None, result: object = None, *, status: str = OK) -> CallRecord:
    """Return a call; one that did not work has a `status`, and its result goes nowhere."""
    outcome = Outcome("ok", result=result) if status == OK else Outcome("refused", "no")
    return CallRecord(tool, arguments, "", outcome)


def answered(text: str, answer: str | None = None, calls: Sequence[CallRecord] = ()) -> Answer:
    """Return an answer with its text, its final value and its calls."""
    usage = Usage(prompt_tokens=1, new_tokens=1, fed_tokens=1, calls=len(calls), seconds=0.1)
    return Answer("Q", text, answer, tuple(calls), "stop", usage, ())
