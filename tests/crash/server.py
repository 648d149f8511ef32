"""A process with every library loaded; each command that it is sent runs in a child of its own.

Forking costs a hundredth of a fresh start, so that a test can kill dozens. A child is a process like any other: it has
its own files, gets its own signals, and dies alone. A request is one line of JSON, and so is its answer.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from toolken.cli import COMMANDS, main
from toolken.evaluation.plots import draw
from toolken.evaluation.run_report import LossPoint, RunReport

OPERATIONS = {"os.rename", "os.remove", "os.truncate", "os.mkdir", "os.link"}


class Operations:
    """Counts what is done to files below a folder, and ends the process right before one of them.

    Args:
        folder: Only files in it count.
        last: The operation that is not reached; 0: all are.
    """

    def __init__(self, folder: str, last: int) -> None:
        self.folder = folder
        self.last = last
        self.done: list[str] = []
        self.lock = threading.RLock()

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            counts = isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        else:
            counts = event in OPERATIONS
        if not counts or not any(str(part).startswith(self.folder) for part in arguments):
            return
        with self.lock:
            self.done.append(f"{event} {arguments[0]}")
            if len(self.done) == self.last:
                os.kill(os.getpid(), signal.SIGKILL)


def child(request: dict[str, Any]) -> None:
    """Run one command with its own output, limits and signals, and end."""
    status = 70
    try:
        null, log = os.open(os.devnull, os.O_RDONLY), os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        out = os.open(request["log"] + ".out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for descriptor, wanted in ((null, 0), (out, 1), (log, 2)):
            os.dup2(descriptor, wanted)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # tests may run where Ctrl-C is ignored
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if request.get("largest"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest"], resource.RLIM_INFINITY))
        operations = Operations(request.get("folder", "/nowhere"), request.get("last", 0))
        if "folder" in request:
            sys.addaudithook(operations)
        status = main(request["argv"])
        sys.stdout.flush()
        if "folder" in request:
            Path(request["log"] + ".operations").write_text("\n".join(operations.done), encoding="utf-8")
    except BaseException:  # what a fresh interpreter would end with
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def serve() -> None:
    """Answer `{"argv", "log", ...}` with the child's number, and `{"poll": number}` with its status or null."""
    for place in COMMANDS.values():
        import_module(f"toolken.commands.{place.partition('.')[0]}")
    points = [LossPoint(step=0, train=1), LossPoint(step=1, train=0)]
    draw(RunReport(title="fonts are looked up once", loss_curve=points))
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "poll" in request:
            pid, status = os.waitpid(request["poll"], os.WNOHANG)
            print(json.dumps(os.waitstatus_to_exitcode(status) if pid else None), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            child(request)
        print(json.dumps(pid), flush=True)


if __name__ == "__main__":
    serve()
