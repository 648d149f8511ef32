"""Questions to answer, from a JSONL file of the user's own or from an official benchmark file.

Invariant: ids are kept as they are given (their row number where there are none) and occur once; gold answers come
along where there are any. Templates with `{v_1}` are filled with the enlarged numbers that stand beside them, or with
the first ones where a row has no enlarged ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolken.data.rows import RawRow, read_rows
from toolken.errors import UserError


@dataclass(frozen=True)
class Question:
    """A question; `answer` is the gold answer as text, None where the file has none or several."""

    id: str | int
    question: str
    answer: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)


def number_text(value: object) -> str:
    """Return a JSON value as a person writes it: whole floats without a decimal point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _fill(template: str, row: Mapping[str, object], where: str) -> str:
    """Put the enlarged numbers into `{v_1}`, `{v_2}`, ...; a row may hold words, and those cannot be enlarged."""
    values = row.get("enhanced_v") or row.get("v")
    numbers = values if isinstance(values, list) else []

    def value(match: re.Match[str]) -> str:
        place = int(match[1])
        if not 1 <= place <= len(numbers):
            raise UserError(where, f"no number for {match[0]} in `enhanced_v`", "give one value for each place")
        number = numbers[place - 1]
        if isinstance(number, bool) or not isinstance(number, (int, float, str)):
            raise UserError(where, f"{match[0]} in `enhanced_v` is {type(number).__name__}", "write a number or a word")
        return number_text(number)

    return re.sub(r"\{v_([0-9]{1,9})\}", value, template)


def _gold(row: Mapping[str, object]) -> str | None:
    value = row.get("enhanced_result", row.get("answer"))
    if value is None or isinstance(value, (list, dict, bool)):
        return None
    # Worked answers end in "#### 72"; only that end is the answer.
    return number_text(value).rpartition("####")[2].strip() or None


def _question(raw: RawRow, number: int) -> Question:
    row = raw.value
    if not isinstance(row, dict):
        raise UserError(
            raw.where, f"the row is {type(row).__name__}, not an object", 'write {"id": 1, "question": "..."}'
        )
    text = row.get("question")
    if not isinstance(text, str):
        found = f"is {type(text).__name__}, not text" if "question" in row else "is missing"
        raise UserError(raw.where, f"`question` {found}", 'write {"id": 1, "question": "..."}')
    if not text.strip():
        raise UserError(raw.where, "`question` is empty", "ask something, or leave the row out")
    identity = row.get("id", number)
    if isinstance(identity, bool) or not isinstance(identity, (str, int)):
        raise UserError(raw.where, f"`id` is {type(identity).__name__}", "write text or a whole number")
    rest = {key: value for key, value in row.items() if key not in ("id", "question", "answer")}
    asked = _fill(text, row, raw.where) if "enhanced_v" in row else text
    return Question(identity, asked, _gold(row), rest)


def read_questions(path: Path | str, *, root: Path | None = None) -> list[Question]:
    """Read questions.

    Args:
        path: JSONL with `{"id", "question"}`, or an official file: a JSON list with `question` and `answer`, or JSON
            lines with a template `question`, `enhanced_v` and `enhanced_result`. A row slice may follow.
        root: Folder that a relative path starts from; else the working directory.

    Raises:
        UserError: Malformed rows, no rows, or an id that occurs twice; names file and line.
    """
    name = str(path)
    questions: list[Question] = []
    seen: dict[str | int, str] = {}
    for number, raw in enumerate(read_rows(name, root=root)):
        question = _question(raw, number)
        if question.id in seen:
            raise UserError(
                raw.where, f"the id {question.id!r} stands at {seen[question.id]} as well", "make ids unique"
            )
        seen[question.id] = raw.where
        questions.append(question)
    if not questions:
        raise UserError(name, "no questions", "name a file, or a slice of one, with at least one row")
    return questions
