"""The process that runs tools: one JSON line in, one out, over a socket that only the two processes hold.

Whatever a tool prints is caught, capped, and never part of the protocol; its standard input is empty. Memory is
limited to what the process had after loading the tool, plus the allowance; processor time and wall time are limited
by the kernel too, so that no worker outlives a parent that was killed. Every exception of a tool, `SystemExit`
included, becomes a reply.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, get_args

from toolken.errors import ToolError, UserError
from toolken.tools.loading import load_tools
from toolken.tools.results import decode, encode
from toolken.tools.signature import call_function
from toolken.tools.tool import Outcome, Status, Tool

Function = Callable[..., object]

_ENVIRONMENT = {"LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_KEPT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "HOME", "TMPDIR")
_DETAIL = 500
_SET_CHILD_SUBREAPER = 36


class OutputLimit(BaseException):
    """A tool printed too much; not an `Exception`, so that a tool's own handlers let it pass."""


class Capture(io.TextIOBase):
    """Stands in for standard output: keeps a limited text, and cannot be closed."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.text = ""

    def write(self, text: str) -> int:
        """Keep the text, or stop the tool."""
        if len(self.text) + len(text) > self.limit:
            raise OutputLimit
        self.text += text
        return len(text)

    def writable(self) -> bool:
        """Whether it takes text: always."""
        return True

    def close(self) -> None:
        """Stay open: the next call prints too."""


class Worker:
    """The worker's side of the protocol.

    Args:
        channel: Socket to the parent.
        functions: Functions that exist in this process because it was forked; empty in a fresh interpreter.
        limits: `timeout` in seconds, `memory_mb`, `max_output` in characters.
    """

    def __init__(self, channel: socket.socket, functions: Sequence[Function], limits: Mapping[str, float]) -> None:
        self.channel = channel
        self.functions = functions
        self.timeout = limits["timeout"]
        self.memory = int(limits["memory_mb"]) * 2**20
        self.max_output = int(limits["max_output"])
        self.loaded: dict[str, Function] = {}
        self.threads = threading.active_count()

    def serve(self) -> None:
        """Answer requests until the parent closes the socket."""
        with self.channel.makefile("rb") as requests:
            for line in requests:
                request = json.loads(line)
                target = request["target"]
                key = json.dumps(target)
                if key in self.loaded and "arguments" in request:
                    reply = self.run(self.loaded[key], decode(request["arguments"]))
                else:
                    reply = self.load(target, key)
                self.channel.sendall(json.dumps({"id": request["id"], **reply}).encode() + b"\n")

    def load(self, target: Sequence[Any], key: str) -> dict[str, Any]:
        """Find the function, import its file if need be, and set the memory limit from here on."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.getrlimit(resource.RLIMIT_AS)[1]))
        printed = Capture(2**20)
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                self.loaded[key] = find(target, self.functions)
        except BaseException as error:
            return {"status": "crash", "detail": describe(error)}
        self.threads = max(self.threads, threading.active_count())
        limit_memory(self.memory)
        return {"status": "ok"}

    def run(self, function: Function, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a function; whatever it does short of killing the process becomes a reply."""
        signal.setitimer(signal.ITIMER_REAL, self.timeout + 0.5)
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime + self.timeout) + 2
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        printed = Capture(self.max_output)
        retire = False
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                reply = self.reply(call_function(function, arguments), printed)
        except OutputLimit:
            reply = {"status": "tool_error", "detail": f"the tool printed more than {self.max_output} characters"}
        except MemoryError:
            reply = {"status": "tool_error", "detail": f"the tool used more than {self.memory >> 20} MB of memory"}
            retire = True
        except ToolError as error:
            reply = {"status": "refused", "detail": message(error)}
        except BaseException as error:
            reply = {"status": "tool_error", "detail": describe(error)}
        signal.setitimer(signal.ITIMER_REAL, 0)
        return {**reply, "retire": retire or self.leftovers()}

    def reply(self, value: object, printed: Capture) -> dict[str, Any]:
        """Return the reply that carries a result; a tool that knows more returns an `Outcome` itself."""
        if not isinstance(value, Outcome):
            return {"status": "ok", "detail": short(printed.text), "result": encode(value, self.max_output)}
        if value.status not in get_args(Status):
            return {"status": "tool_error", "detail": short(f"the tool's outcome has the status {value.status!r}")}
        fields = {key: None if text is None else short(str(text)) for key, text in value.as_dict().items()}
        return {**fields, "result": encode(value.result, self.max_output)}

    def leftovers(self) -> bool:
        """Whether the tool left threads or child processes behind, so that this process should be replaced."""
        if threading.active_count() > self.threads:
            return True
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        return True


def find(target: Sequence[Any], functions: Sequence[Function]) -> Function:
    """Return the function that a target names: one of this process, of a module, or of a user's file."""
    kind, *place = target
    if kind == "forked":
        return functions[int(place[0])]
    if kind == "file":
        path, name, tool = place
        found: object = load_tools(f"{path}:{name}")[tool]
    else:
        module, qualified = place
        found = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    function: object = found.function if isinstance(found, Tool) else found
    if not callable(function):
        raise UserError("tools", f"{place} is not a function")
    return cast(Function, function)


def limit_memory(allowance: int) -> None:
    """Let the address space grow by so many bytes from now on; without /proc it is not limited."""
    try:
        with open("/proc/self/statm", "rb") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (size + allowance, resource.getrlimit(resource.RLIMIT_AS)[1]))


def short(text: str) -> str:
    """Return a text on one line, capped."""
    line = " ".join(text.split()).encode("utf-8", "replace").decode()
    return line if len(line) <= _DETAIL else line[: _DETAIL - 3] + "..."


def message(error: BaseException) -> str:
    """Return an exception's text, also where asking for it raises."""
    try:
        return short(str(error))
    except BaseException:
        return "an exception without a readable message"


def describe(error: BaseException) -> str:
    """Return an exception's type and text."""
    return f"{type(error).__name__}: {message(error)}".rstrip(": ")


def bare_environment() -> dict[str, str]:
    """Return the environment that a tool sees: search paths, and no secrets."""
    return {**{key: os.environ[key] for key in _KEPT if key in os.environ}, **_ENVIRONMENT}


def adopt_orphans() -> None:
    """Become the parent of what detaches itself from a tool's processes, so that it is found; on Linux alone."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def spawned(descriptor: int, limits: Mapping[str, float]) -> None:
    """Serve in a fresh interpreter."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    adopt_orphans()
    Worker(socket.socket(fileno=descriptor), (), limits).serve()


def forked(channel: socket.socket, functions: Sequence[Function], limits: Mapping[str, float]) -> None:
    """Serve in a copy of the parent: own session, no descriptor but the socket, no clean-up."""
    try:
        os.setsid()
        gc.freeze()
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD):
            signal.signal(name, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        keep = channel.fileno()
        os.closerange(3, keep)
        os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
        environment = bare_environment()
        os.environ.clear()
        os.environ.update(environment)
        sys.settrace(None)
        sys.stdin = io.StringIO()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        adopt_orphans()
        Worker(channel, functions, limits).serve()
    finally:
        os._exit(0)
