"""Sources to examples: reading, checking what each call covers, and writing.

Invariant: every row of a source is either an example or is named in `refused` with its place and the reason.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from toolken.config import GenerateSection
from toolken.data.example import Example
from toolken.data.generate import generate_examples
from toolken.data.readers import read_row
from toolken.data.rows import read_rows
from toolken.errors import UserError
from toolken.files import write_text

GENERATED = "generated"


class Rows(NamedTuple):
    """Examples of all sources, and one line for every row that was left out: `file:line: why`."""

    examples: list[Example]
    refused: list[str]


class CheckedRow(NamedTuple):
    """What `validate_rows` says about a row: its lines to print, its calls, and why it is refused, if it is."""

    lines: tuple[str, ...]
    calls: int
    refused: str | None


def read_examples(
    sources: Sequence[str],
    *,
    root: Path | None = None,
    generate: GenerateSection | None = None,
    tools: Sequence[str] | None,
    limit: int | None = None,
    on_bad_row: Literal["error", "skip"] = "error",
) -> Rows:
    """Read the examples of sources.

    Args:
        sources: `generated`, a path or glob with an optional row slice, or `hub:owner/name[:split]`.
        root: Folder that relative paths start from; see `rows.data_root`.
        generate: Settings of the source `generated`.
        tools: Names of the tools that calls may name; None takes any name.
        limit: Keep so many rows of every source at most.
        on_bad_row: Stop at a row that has no usable call or span, or name it in `refused`.

    Raises:
        UserError: A malformed file, a source without a usable row, or (`error`) a bad row.
    """
    examples: list[Example] = []
    refused: list[str] = []
    for source in sources:
        before = len(examples)
        if source == GENERATED:
            section = generate or GenerateSection()
            examples += generate_examples(section, tools or (), seed=section.seed)[:limit]
            continue
        for raw in itertools.islice(read_rows(source, root=root), limit):
            try:
                examples.append(read_row(raw, tools))
            except UserError as error:
                if on_bad_row == "error":
                    raise UserError(raw.where, error.problem, error.fix or "or set data.on_bad_row to skip") from error
                refused.append(str(error))
        if len(examples) == before:
            why = f" (the first: {refused[-1]})" if refused else ""
            raise UserError(f"data source {source}", f"no usable row{why}", "mend the rows, or name another source")
    return Rows(examples, refused)


def validate_rows(source: str, *, root: Path | None = None, tools: Sequence[str] | None = None) -> Iterator[CheckedRow]:
    """Yield what each call of each row covers, `file:line  <gcd>(316,196) covers "4" at 103:104`.

    Args:
        source: A path, glob or hub source.
        root: Folder that a relative path starts from.
        tools: Known tool names; None takes any name.
    """
    for raw in read_rows(source, root=root):
        try:
            example = read_row(raw, tools)
        except UserError as error:
            yield CheckedRow((), 0, str(error))
            continue
        lines = tuple(
            f"{raw.where}  <{call.tool}>({call.arguments}) covers "
            f"{json.dumps(example.result(call), ensure_ascii=False)} at {call.start}:{call.end}"
            for call in example.calls
        )
        yield CheckedRow(lines or (f"{raw.where}  no call",), len(example.calls), None)


def example_record(example: Example) -> dict[str, object]:
    """Return an example as a row with character spans; a text without a question goes under `text`."""
    texts = {"question": example.question, "answer": example.answer} if example.question else {"text": example.answer}
    return {**texts, "calls": [call._asdict() for call in example.calls]}


def write_examples(path: Path, examples: Iterable[Example]) -> int:
    """Write examples as JSONL with character spans, under their own name only once complete; return how many."""
    lines = [json.dumps(example_record(example), ensure_ascii=False) + "\n" for example in examples]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(lines))
    return len(lines)
