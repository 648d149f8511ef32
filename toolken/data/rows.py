"""Rows of local files, globs and hub data sets, each with the place that messages name.

Invariant: a row's place is its file and the line it starts on (its row number, where a format has no lines). Files
are found under the data root; what is malformed, empty, not UTF-8 or not there is refused with that place. No file is
ever executed, and no remote loading script runs.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from huggingface_hub import constants

from toolken.errors import UserError
from toolken.files import is_unicode, read_text
from toolken.hub import hub_silence
from toolken.tools.strict_json import parse_json_at

HUB = "hub:"
CHECK_NAME = "check the name and `data.root`"
CONNECT = "connect, or name a local file"
# more digits than any file has rows
_SLICE = re.compile(r"^(?P<name>.*)\[(?P<start>-?[0-9]{0,15}):(?P<stop>-?[0-9]{0,15})\]$", re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class RawRow(NamedTuple):
    """A row as it was read, and where: `funcqa/train.json:12`."""

    where: str
    value: object


class Source(NamedTuple):
    """A source string taken apart: the name, and the rows to keep."""

    name: str
    rows: slice


def data_root(root: Path | None) -> Path:
    """Return the folder that relative names start from: the given one, `$TOOLKEN_DATA`, or the working directory."""
    return root or Path(os.environ.get("TOOLKEN_DATA") or ".")


def parse_source(source: str) -> Source:
    """Take `name[start:stop]` apart; the brackets may be missing."""
    match = _SLICE.match(source)
    if not match:
        return Source(source, slice(None))
    start, stop = (int(match[part]) if match[part] not in ("", "-") else None for part in ("start", "stop"))
    return Source(match["name"], slice(start, stop))


def find_files(pattern: str, root: Path) -> list[Path]:
    """Return the files that a path or glob names, sorted: under the root, or else from the working directory.

    Raises:
        UserError: There is none.
    """
    path = Path(pattern)
    places = [Path(path.anchor)] if path.is_absolute() else list(dict.fromkeys([root, Path(".")]))
    relative = str(path.relative_to(path.anchor)) if path.is_absolute() else pattern
    for place in places:
        try:
            named = place.glob(relative) if any(mark in pattern for mark in "*?") else [place / relative]
            found = sorted(file for file in named if file.is_file())
        except (ValueError, NotImplementedError, OSError) as error:
            raise UserError(f"data source {pattern}", f"no valid name or pattern ({error})", CHECK_NAME) from error
        if found:
            return found
    looked = " or ".join(str(place.resolve()) for place in places)
    raise UserError(f"data source {pattern}", f"no file matches under {looked}", CHECK_NAME)


def _parse(text: str, where: str, at: int = 0) -> tuple[object, int]:
    """Parse one JSON value that starts at a character; return it and where it ends."""
    try:
        value, end = parse_json_at(text, at)
    except json.JSONDecodeError as error:
        path = where.rpartition(":")[0]
        first = int(where.rpartition(":")[2])
        line = first + text.count("\n", at, error.pos) if at or error.pos else first
        raise UserError(
            f"{path}:{line}", f"not valid JSON: {error.msg} (column {error.colno})", "mend the line"
        ) from None
    except ValueError as error:
        raise UserError(where, f"cannot be read as JSON ({error})", "mend the line") from None
    if _SURROGATE.search(text, at, end) and not is_unicode(value):
        raise UserError(where, "a text holds half of a surrogate pair (\\ud800 to \\udfff)", "write whole characters")
    return value, end


def _json_lines(text: str, name: str) -> Iterator[RawRow]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{name}:{number}"
            start = len(line) - len(line.lstrip())
            value, end = _parse(line, where, start)
            if line[end:].strip():
                raise UserError(where, "more text after the JSON value", "write one JSON object a line")
            yield RawRow(where, value)


def _json_array(text: str, name: str) -> Iterator[RawRow]:
    """Yield the items of a JSON list with the line that each starts on."""
    space = re.compile(r"\s*")
    at = space.match(text, text.index("[") + 1).end()  # type: ignore[union-attr]
    line, counted = 1, 0
    while text[at : at + 1] != "]":
        line, counted = line + text.count("\n", counted, at), at
        where = f"{name}:{line}"
        value, at = _parse(text, where, at)
        yield RawRow(where, value)
        at = space.match(text, at).end()  # type: ignore[union-attr]
        if text[at : at + 1] == ",":
            at = space.match(text, at + 1).end()  # type: ignore[union-attr]
        elif text[at : at + 1] != "]":
            raise UserError(
                f"{name}:{line + text.count(chr(10), counted, at)}",
                "the list is cut off or lacks a comma",
                "mend the line",
            )


def _paragraphs(text: str, name: str) -> Iterator[RawRow]:
    line = 1
    for block, gap in itertools.zip_longest(*[iter(re.split(r"(\n[ \t]*\n\s*)", text))] * 2, fillvalue=""):
        if block.strip():
            yield RawRow(f"{name}:{line}", {"text": block.strip()})
        line += (block + gap).count("\n")


def _datasets_rows(name: str, *, split: str, parquet: Path | None = None) -> Iterator[RawRow]:
    """Yield the rows of a Parquet file or a hub data set through the `datasets` library."""
    import datasets

    where, fix = f"data source {name}", "write the file again" if parquet else "check its name and split"
    silence = "" if parquet else hub_silence()
    if silence and not constants.HF_HUB_OFFLINE:  # the library would ask again for half a minute
        raise UserError(where, silence, f"{CONNECT}, or set HF_HUB_OFFLINE=1 to use what is in the local cache")
    try:
        if parquet is not None:
            rows = datasets.load_dataset("parquet", data_files=str(parquet), split="train")
        else:
            rows = datasets.load_dataset(name, split=split)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).partition("\n")[0]
        if silence:
            raise UserError(where, f"{silence}, and it is not in the local cache", CONNECT) from error
        raise UserError(where, f"cannot be loaded ({reason})", fix) from error
    for number, row in enumerate(rows, start=1):
        yield RawRow(f"{name}:row {number}", {key: value for key, value in row.items() if value is not None})


def _file_rows(path: Path, name: str) -> Iterator[RawRow]:
    if path.suffix == ".parquet":
        yield from _datasets_rows(name, split="train", parquet=path)
        return
    text = read_text(path, CHECK_NAME)
    if not text.strip():
        raise UserError(name, "the file is empty", "a data file holds at least one row")
    if path.suffix == ".txt":
        yield from _paragraphs(text, name)
    elif text.lstrip().startswith("["):
        yield from _json_array(text, name)
    else:
        yield from _json_lines(text, name)


def read_rows(source: str, *, root: Path | None = None) -> Iterator[RawRow]:
    """Yield the rows of a source.

    Args:
        source: Path or glob of `.json` (a list, or one object a line), `.jsonl`, `.parquet` or `.txt` (paragraphs)
            files, or `hub:owner/name[:split]`; each with an optional row slice such as `train.json[611:]`.
        root: Folder that a relative path starts from; see `data_root`.

    Raises:
        UserError: Nothing matches, or a file is malformed; names file and line.
    """
    name, rows = parse_source(source)
    if name.startswith(HUB):
        hub, _, split = name.removeprefix(HUB).partition(":")
        found = _datasets_rows(hub, split=split or "train")
    else:
        base = data_root(root)
        files = find_files(name, base)
        names = [str(file.relative_to(base)) if file.is_relative_to(base) else str(file) for file in files]
        found = itertools.chain.from_iterable(map(_file_rows, files, names))
    negative = (rows.start or 0) < 0 or (rows.stop or 0) < 0
    yield from list(found)[rows] if negative else itertools.islice(found, rows.start, rows.stop)
