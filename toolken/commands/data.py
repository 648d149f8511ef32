"""`toolken data validate | convert | generate`: look at training data before training on it."""

from __future__ import annotations

import sys
from pathlib import Path

from toolken.commands.command import Command
from toolken.config import GenerateSection, Section
from toolken.data.formats import read_examples, validate_rows, write_examples
from toolken.errors import UserError
from toolken.files import check_output
from toolken.recipes.preparation import load_tool_set
from toolken.tools.arithmetic import ARITHMETIC


class ValidateArguments(Section):
    """Which rows to check."""

    file: str
    """Path, glob or `hub:owner/name`, with an optional `[:100]` row slice."""
    root: Path | None = None
    """Folder that relative paths start from."""
    tools: str | None = None
    """Tool set whose names calls may use: `arithmetic`, `benchmark:NAME` or `FILE.py:NAME`; unset: any name."""


class ConvertArguments(ValidateArguments):
    """Which rows to convert."""

    output: Path
    """JSONL file with character spans that is written."""


class GenerateArguments(GenerateSection):
    """What to generate."""

    output: Path
    """JSONL file with character spans that is written."""


def validate(arguments: ValidateArguments) -> dict[str, object]:
    """Print what each call of each row covers; refuse, after all lines, if a row is misaligned."""
    tools = load_tool_set(arguments.tools, arguments.root).names if arguments.tools else None
    rows = calls = 0
    refused: list[str] = []
    for row in validate_rows(arguments.file, root=arguments.root, tools=tools):
        rows += 1
        if row.refused is not None:
            refused.append(row.refused)
            print(f"refused: {row.refused}", file=sys.stderr)
            continue
        calls += row.calls
        for line in row.lines:
            print(line, file=sys.stderr)
    if refused:
        problem = f"{len(refused)} of {rows} rows refused, the first: {refused[0]}"
        raise UserError(arguments.file, problem, "mend them, or train with `--data.on_bad_row skip`")
    return {"rows": rows, "calls": calls}


def convert(arguments: ConvertArguments) -> dict[str, object]:
    """Write the usable rows of a source as JSONL with character spans."""
    check_output(arguments.output)
    names = load_tool_set(arguments.tools, arguments.root).names if arguments.tools else None
    read = read_examples([arguments.file], root=arguments.root, tools=names, on_bad_row="skip")
    for line in read.refused:
        print(f"left out: {line}", file=sys.stderr)
    rows = write_examples(arguments.output, read.examples)
    return {"output": str(arguments.output), "rows": rows, "left_out": len(read.refused)}


def generate(arguments: GenerateArguments) -> dict[str, object]:
    """Write the project's own seeded word problems."""
    check_output(arguments.output)
    rows = read_examples(["generated"], generate=arguments, tools=ARITHMETIC.names).examples
    return {"output": str(arguments.output), "rows": write_examples(arguments.output, rows)}


VALIDATE = Command(ValidateArguments, validate, "print what each call of a data file covers", ("file",))
CONVERT = Command(ConvertArguments, convert, "write a data file as JSONL with character spans", ("file",))
GENERATE = Command(GenerateArguments, generate, "write seeded word problems with calls")
