"""The command line: `toolken COMMAND [--key value ...]`.

A command's last line on stdout is one JSON object; everything else goes to stderr. Bad input ends with one line and
status 2, Ctrl-C with status 130 and a word on how to go on, also while libraries are still being loaded: a command's
module is imported when it is asked for.
"""

from __future__ import annotations

import errno
import json
import logging
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

from toolken.errors import UserError, did_you_mean
from toolken.files import is_unicode

if TYPE_CHECKING:
    from toolken.commands.command import Command

DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
COMMANDS = {
    "train": "runs.TRAIN",
    "infer": "runs.INFER",
    "eval": "evaluation.EVAL",
    "calibrate": "artefacts.CALIBRATE",
    "report": "artefacts.REPORT",
    "tools list": "artefacts.LIST",
    "tools remove": "artefacts.REMOVE",
    "tools merge": "artefacts.MERGE",
    "data validate": "data.VALIDATE",
    "data convert": "data.CONVERT",
    "data generate": "data.GENERATE",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING, stream=sys.stderr)
    logging.addLevelName(logging.WARNING, "warning")
    warnings.showwarning = _show_warning
    try:
        if not arguments or arguments[0] in ("-h", "--help"):
            print(_help(), file=sys.stderr)
            return 0 if arguments else 2
        _check_unicode(arguments)
        name, rest = _find(arguments)
        result = _command(name)(rest, prog=f"toolken {name}")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if error.filename is None and error.errno not in DISK:
            raise
        print(f"error: {_file_problem(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where this one stopped", file=sys.stderr)
        return 130
    print(json.dumps(result, ensure_ascii=False), flush=True)
    return 0


def _check_unicode(arguments: list[str]) -> None:
    """Refuse bytes of a terminal that are no UTF-8: neither a tokenizer nor a file takes them."""
    for place, argument in enumerate(arguments, start=1):
        if not is_unicode(argument):
            raise UserError(f"argument {place}", f"{argument!a} is not UTF-8 text", "set the terminal to UTF-8")


def _file_problem(error: OSError) -> UserError:
    """Say which file, or that the disk, let a command down."""
    place = error.filename2 or error.filename or "disk"
    return UserError(str(place), error.strerror or str(error), "check the path, its rights and the space that is left")


def _command(name: str) -> Command:  # type: ignore[type-arg]
    module, _, attribute = COMMANDS[name].partition(".")
    command: Command = getattr(import_module(f"toolken.commands.{module}"), attribute)  # type: ignore[type-arg]
    return command


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as one line, without the source line that Python adds."""
    print(f"warning: {' '.join(str(message).split())}", file=sys.stderr)


def _find(arguments: list[str]) -> tuple[str, list[str]]:
    for words in (2, 1):
        name = " ".join(arguments[:words])
        if name in COMMANDS:
            return name, arguments[words:]
    known = [name for name in COMMANDS if name.split()[0] == arguments[0]]
    if known:
        raise UserError(arguments[0], "names no command by itself", f"use {' or '.join(f'`{name}`' for name in known)}")
    raise UserError(arguments[0], "no such command", did_you_mean(arguments[0], COMMANDS))


def _help() -> str:
    lines = [f"  {name:<15}{_command(name).summary}" for name in COMMANDS]
    return "\n".join(["usage: toolken COMMAND [--key value ...]; `toolken COMMAND --help` shows the keys", "", *lines])
