"""GSM8K's worked answers, whose annotations are the calls: `48/2 = <<48/2=24>>24 clips`.

Invariant: every operation that an answer works out in an annotation is a call, or the row is refused: an operation
left as text would teach that no call belongs there. An annotation of one operation (sums and products of several
numbers are one) is a call; one of a bare number is none. One that mixes operations, or subtracts or divides twice,
has no tool of its own. Line breaks become spaces, since answers are written on one line.
Source: Cobbe et al., "Training Verifiers to Solve Math Word Problems", arXiv 2110.14168.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from toolken.data.example import CallSpan, Example
from toolken.data.inline import check_call, cuts_number
from toolken.errors import UserError

OPERATORS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
_CHAINED = "+*"

_ANNOTATION = re.compile(r"<<([^<>]*)>>")
_NUMBER = r"-?(?:\d+(?:\.\d*)?|\.\d+)"
_VALUE = re.compile(rf"\s*({_NUMBER})\s*")
_RESULT = re.compile(r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")
_FIX = "leave the row out, or write each operation as an annotation of its own"


def is_gsm8k(row: Mapping[str, object]) -> bool:
    """Return whether a row's answer holds annotations."""
    answer = row.get("answer")
    return isinstance(answer, str) and isinstance(row.get("question"), str) and _ANNOTATION.search(answer) is not None


def read_gsm8k(row: Mapping[str, object], where: str, tools: Sequence[str] | None) -> Example:
    """Read `{"question", "answer"}` with annotations.

    Raises:
        UserError: An annotation is no single operation, or the number after it is not its result.
    """
    source = str(row["answer"]).strip()
    answer, done = "", 0
    calls: list[CallSpan] = []
    for annotation in _ANNOTATION.finditer(source):
        answer += _one_line(source[done : annotation.start()])
        done = annotation.end()
        expression, _, result = annotation[1].rpartition("=")
        values, operator = _split(expression, where)
        if operator is None:
            continue
        written = _RESULT.match(source, done)
        if written is None or not _same(written[0].rstrip(","), result):
            problem = f"<<{annotation[1]}>> is followed by {source[done : done + 12]!r}, not by its result"
            raise UserError(where, problem, "repeat the result after it")
        check_call(OPERATORS[operator], where, tools)
        text = written[0].rstrip(",")
        if cuts_number(answer + text, len(answer), len(answer) + len(text)):
            raise UserError(where, f"the result of <<{annotation[1]}>> stands inside a number", _FIX)
        calls.append(CallSpan(len(answer), len(answer) + len(text), OPERATORS[operator], ", ".join(values)))
        answer += text
        done += len(text)
    answer += _one_line(source[done:])
    return Example(str(row["question"]), answer, tuple(calls), origin=where)


def _split(expression: str, where: str) -> tuple[list[str], str | None]:
    """Return the numbers of an annotation and its operator, None for a bare number."""
    values: list[str] = []
    operators: list[str] = []
    at = 0
    while found := _VALUE.match(expression, at):
        values.append(found[1])
        operators.append(expression[found.end() : found.end() + 1])
        at = found.end() + 1
    closed = bool(operators) and operators.pop() == ""  # nothing stands behind the last number
    kinds = set(operators)
    one = len(kinds) <= 1 and kinds <= OPERATORS.keys() and (len(values) <= 2 or kinds <= set(_CHAINED))
    if not closed or not one:
        raise UserError(where, f"<<{expression}=...>> is not one operation", _FIX)
    return values, next(iter(kinds), None)


def _same(written: str, result: str) -> bool:
    try:
        return float(written.replace(",", "")) == float(result.strip().replace(",", ""))
    except ValueError:
        return False


def _one_line(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text)
