"""One row of the tables of bad input: files that are there, a command, and the one line that comes back."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from toolken.cli import main

TRAIN = "train --base.name {base} --base.dtype float32 --tracking.mode disabled --out o --data.generate.per_tool 2"
INFER = "infer --toolkens {run}/toolkens"


class Refusal(NamedTuple):
    """Bad input: `{here}`, `{base}` and `{run}` in texts stand for folders, `[...]` for a library's words."""

    name: str
    files: Mapping[str, str | bytes]
    command: str
    line: str


def rows(*values: object) -> str:
    """JSON lines; a text is a line as it stands."""
    return "".join((value if isinstance(value, str) else json.dumps(value)) + "\n" for value in values)


def contents(folder: Path) -> dict[Path, bytes | None]:
    """Every file under a folder with its bytes, every folder without."""
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


class Bench:
    """A folder to be in, and what commands need; `refuse` runs one and returns its line."""

    def __init__(self, here: Path, base: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.here, self.base, self.run, self._capsys = here, base, run, capsys

    def fill(self, text: str) -> str:
        """Put the folders into a text."""
        for name, folder in (("{here}", self.here), ("{base}", self.base), ("{run}", self.run)):
            text = text.replace(name, str(folder))
        return text

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files, and folders where a name ends in a slash."""
        for name, content in files.items():
            path = self.here / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith("/"):
                path.mkdir()
            else:
                path.write_bytes(content if isinstance(content, bytes) else self.fill(content).encode())

    def refuse(self, *argv: str) -> str:
        """Run a command that must be refused: status 2, one line, nothing on stdout, every file as it was."""
        before = [contents(folder) for folder in (self.here, self.base, self.run)]
        assert main(argv) == 2
        captured = self._capsys.readouterr()
        assert captured.out == ""
        assert "Traceback" not in captured.err
        (line,) = [line for line in captured.err.splitlines() if line.startswith("error: ")]
        assert captured.err.splitlines()[-1] == line
        assert [contents(folder) for folder in (self.here, self.base, self.run)] == before
        return line.removeprefix("error: ").replace(str(self.here), "{here}")

    def check(self, refusal: Refusal) -> None:
        """Write the files, run the command, compare the line."""
        self.write(refusal.files)
        line = self.refuse(*shlex.split(self.fill(refusal.command)))
        wanted = [re.escape(part) for part in self.fill(refusal.line).replace(str(self.here), "{here}").split("[...]")]
        assert re.fullmatch(".+".join(wanted), line), line
