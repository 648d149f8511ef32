"""`records.jsonl`: one line for each answer of a method, appended as answers come; the only state of an evaluation.

Invariant: a line is whole or cut off when the file is opened again, and a question has at most one line of a method.
So a run that was killed goes on where it was, and everything in a report is computed from these lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TextIO

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from toolken.errors import UserError
from toolken.evaluation.benchmarks.benchmark import Cause, Item, Mark
from toolken.evaluation.scoring import Verdict
from toolken.files import room_for
from toolken.inference.engine import Answer

RECORDS = "records.jsonl"


@dataclass(frozen=True)
class Record:
    """One answer of one method, marked.

    Attributes:
        benchmark: Name of the benchmark.
        method: As it was asked for: `toolken-adam:1`.
        id: Of the question.
        question: As it was asked.
        gold: The right answer as the benchmark has it.
        text: What was written, results included.
        answer: The final value that was read off it.
        calls: Every attempt at a call (`CallRecord.as_dict`).
        finish_reason: Why the answer ended.
        verdict: Right, wrong, or not to be scored.
        cause: Why.
        published: Verdict of the published scorer; None where there is none.
        measures: Further numbers by the benchmark's names.
        tools: Tools of the gold calculation, where it is known.
        usage: Tokens, calls and seconds (`Usage.as_dict`).
    """

    benchmark: str
    method: str
    id: str | int
    question: str
    gold: JsonValue
    text: str
    answer: str | None
    calls: Sequence[Mapping[str, JsonValue]]
    finish_reason: str
    verdict: Verdict
    cause: Cause
    published: bool | None
    measures: Mapping[str, float]
    tools: Sequence[str]
    usage: Mapping[str, float]


_RECORD = TypeAdapter(Record)


def record_of(benchmark: str, method: str, item: Item, answer: Answer, mark: Mark) -> Record:
    """Put together what is kept of an answer."""
    written = answer.as_dict()
    return _RECORD.validate_python(
        {
            "benchmark": benchmark,
            "method": method,
            "id": item.id,
            "question": item.question,
            "gold": item.gold,
            **{name: written[name] for name in ("text", "answer", "calls", "finish_reason", "usage")},
            "verdict": mark.verdict,
            "cause": mark.cause,
            "published": mark.published,
            "measures": mark.measures,
            "tools": list(mark.tools),
        }
    )


def read_records(path: Path) -> list[Record]:
    """Return the whole lines of a file, in order; an incomplete last line is left out, no file means no record.

    Raises:
        UserError: A line is damaged.
    """
    return [_parse(line, f"{path}:{number}") for number, line in enumerate(_whole_lines(path), start=1)]


class RecordFile:
    """The file of a run that is under way; use it in a `with` statement.

    Attributes:
        records: What it holds.
    """

    def __init__(self, path: Path) -> None:
        """Open for appending; a line that a killed process left half-written is cut off first."""
        self.path = path
        self.records = read_records(path)
        if path.is_file():
            os.truncate(path, sum(len(line) + 1 for line in _whole_lines(path)))
        self._handle: TextIO = path.open("a", encoding="utf-8")

    def append(self, record: Record) -> None:
        """Write a record where a power cut does not lose it."""
        line = _RECORD.dump_json(record).decode() + "\n"
        with room_for(self.path, len(line)):
            self._handle.write(line)
            self._handle.flush()
            os.fsync(self._handle.fileno())
        self.records.append(record)

    def ids(self, method: str) -> frozenset[str | int]:
        """Return which questions a method has answered."""
        return frozenset(record.id for record in self.records if record.method == method)

    def __enter__(self) -> RecordFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handle.close()


def by_method(records: Sequence[Record]) -> Iterator[tuple[str, list[Record]]]:
    """Yield methods in the order of their first record, each with its records."""
    for method in dict.fromkeys(record.method for record in records):
        yield method, [record for record in records if record.method == method]


def _whole_lines(path: Path) -> list[bytes]:
    """Return the lines that end in a line break; JSON texts may hold other separators, so only that one counts."""
    return path.read_bytes().split(b"\n")[:-1] if path.is_file() else []


def _parse(line: bytes, where: str) -> Record:
    try:
        return _RECORD.validate_json(line)
    except ValidationError as error:
        problem = f"it is no record ({error.errors()[0]['msg']})"
        raise UserError(where, problem, "restore the file, or delete the line to answer its question again") from error
