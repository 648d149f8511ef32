"""The command line: `toolken COMMAND [--key value ...]`.

A command's last line on stdout is one JSON object; everything else goes to stderr. Bad input ends with one line and
status 2. Ctrl-C and SIGTERM end with status 130 and 143, and one line that says what is kept and which command goes on,
also while libraries are still being loaded: a command's module is imported when it is asked for.
"""

from __future__ import annotations

import errno
import json
import logging
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

from toolken.errors import UserError, did_you_mean
from toolken.files import FULL, is_unicode

if TYPE_CHECKING:
    from toolken.commands.command import Command

DISK = (*FULL, errno.EROFS)


class Ending(NamedTuple):
    """How a signal is called, and the exit status of a process that it ended."""

    name: str
    status: int


IMPATIENCE = 1.0
"""Seconds in which more of the same signals are the same request."""
STATUS = {int(signal.SIGINT): Ending("Ctrl-C", 130), int(signal.SIGTERM): Ending("SIGTERM", 143)}
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
    "bench train": "bench.TRAIN",
    "bench infer": "bench.INFER",
    "bench scale": "bench.SCALE",
}


class Stopped(KeyboardInterrupt):
    """Ctrl-C, or a polite request to end (SIGTERM), on its way up; notes on it say what is kept."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__()
        self.number = number
        self.at = time.monotonic()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING, stream=sys.stderr)
    logging.addLevelName(logging.WARNING, "warning")
    warnings.showwarning = _show_warning
    with _stoppable() as received:
        try:
            return _run(arguments)
        except (Exception, KeyboardInterrupt) as error:
            if isinstance(error, KeyboardInterrupt) or received:  # libraries turn it into errors of their own
                return _say_stopped(received[0] if received else Stopped(), error, arguments)
            problem = _expected(error)
            if problem is None:
                raise
            print(f"error: {problem}", file=sys.stderr)
            return 2


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_help(), file=sys.stderr)
        return 0 if arguments else 2
    _check_unicode(arguments)
    name, rest = _find(arguments)
    result = _command(name)(rest, prog=f"toolken {name}")
    if result is not None:
        print(json.dumps(result, ensure_ascii=False), flush=True)
    return 0


@contextmanager
def _stoppable() -> Iterator[list[Stopped]]:
    """Let both signals that ask a process to end unwind it, so that all it has open is closed; list those that came."""
    received: list[Stopped] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def stop(number: int, frame: object) -> None:
        if received and time.monotonic() - received[-1].at < IMPATIENCE:
            return
        received.append(Stopped(number))
        raise received[-1]

    before = {number: signal.getsignal(number) for number in STATUS}
    for number, handler in before.items():
        if handler not in (signal.SIG_IGN, None):  # a job in the background of a shell ignores Ctrl-C
            signal.signal(number, stop)
    try:
        yield received
    finally:
        for number, handler in before.items():
            if received:
                signal.signal(number, signal.SIG_IGN)  # the process ends, and more of the same must not make it noisy
            elif handler is not None:
                signal.signal(number, handler)


def _say_stopped(stop: Stopped, error: BaseException, arguments: list[str]) -> int:
    """Say in one line what is kept and which command goes on; return the exit status."""
    notes = [*getattr(stop, "__notes__", []), *getattr(error, "__notes__", [])]
    kept = "; ".join(dict.fromkeys(notes)) or "what was complete is kept"
    print(f"stopped by {STATUS[stop.number].name}; {kept}; to go on: {_command_line(arguments)}", file=sys.stderr)
    return STATUS[stop.number].status


def _command_line(arguments: list[str]) -> str:
    """Return what was typed."""
    if Path(sys.argv[0]).suffix == ".py" and sys.argv[1:] == arguments[1:]:
        return shlex.join(["python", *sys.argv])
    return shlex.join(["toolken", *arguments])


def _check_unicode(arguments: list[str]) -> None:
    """Refuse bytes of a terminal that are no UTF-8: neither a tokenizer nor a file takes them."""
    for place, argument in enumerate(arguments, start=1):
        if not is_unicode(argument):
            raise UserError(f"argument {place}", f"{argument!a} is not UTF-8 text", "set the terminal to UTF-8")


def _expected(error: BaseException) -> UserError | None:
    """Return bad input, or which file, or that the disk, let a command down; None for a bug."""
    if isinstance(error, UserError):
        return error
    if not isinstance(error, OSError) or (error.filename is None and error.errno not in DISK):
        return None
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
