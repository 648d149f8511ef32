"""Runs tools in a worker process of their own, under limits, and always comes back with an outcome.

Covered: wall time and processor time, memory of the process (Linux), printed output and result size, crashes, exits
and signals, endless loops in C code, threads and child processes that are left behind or detach themselves (Linux),
tools that swallow exceptions or ignore signals, replies that are none; no inherited descriptors, standard input or
secrets from the environment. After a timeout or a crash the next call gets a fresh process.

NOT covered: a tool reads and writes the files that its user can, opens network connections, sends signals to other
processes of its user, forges its own outcome, changes the process for the tools that run in it next, and can lift its
own limits if it sets out to. Each process that it starts has a memory limit of its own; one that is detached right
before the tool ends its own process stays. This guards against mistakes and against what models write into arguments,
not against a tool that means harm: run only tools that you trust.

A tool that can be imported (a module's, or FILE:NAME) runs in a fresh interpreter; so does a `functools.partial` of
one that fixes arguments by name, which go along with each call. One that cannot be (defined in a script, a notebook
or inside a function) runs in a fork of this process, where the tool must not use a GPU or what other threads of the
parent hold.
"""

from __future__ import annotations

import contextlib
import functools
import json
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, get_args

from toolken.errors import ToolError
from toolken.tools.process import WorkerProcess, fork, spawn
from toolken.tools.results import decode, encode
from toolken.tools.tool import Outcome, Status, Tool
from toolken.tools.values import check_arguments

_START_SECONDS = 30.0
_MAX_ARGUMENTS = 100_000
Function = Callable[..., object]


class Executor:
    """Runs tools one at a time; a context manager, and safe to use from several threads.

    Args:
        timeout: Seconds that one call may take. Starting a process and importing a tool's file have 30 s of their own.
        memory_mb: Memory that a call may add to the process.
        max_output: Characters that a tool may print, and that its result may have.
    """

    def __init__(self, timeout: float = 5.0, memory_mb: int = 512, max_output: int = 4096) -> None:
        self.timeout = timeout
        self.memory_mb = memory_mb
        self._limits = {"timeout": timeout, "memory_mb": memory_mb, "max_output": max_output}
        self._reply_bytes = 16 * max_output + 2**16
        self._lock = threading.Lock()
        self._workers: dict[str, WorkerProcess] = {}
        self._functions: list[Function] = []
        self._unimportable: set[str] = set()
        weakref.finalize(self, _kill_all, self._workers)

    def __enter__(self) -> Executor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker processes; a later call starts them again."""
        with self._lock:
            _kill_all(self._workers)

    def run(self, tool: Tool, arguments: Mapping[str, object]) -> Outcome:
        """Check the arguments by the tool's schema, and run it.

        Returns:
            An outcome, within `timeout` and about a second; never raises for what a tool or its arguments do.
        """
        if tool.function is None:
            return Outcome("refused", f"<{tool.name}> is only described: no function is bound to it")
        try:
            checked = _complete(tool, check_arguments(tool, arguments))
            function, fixed = _unbound(tool.function)
            payload = encode({**checked, **fixed}, _MAX_ARGUMENTS)
        except ToolError as error:
            return Outcome("refused", str(error))
        with self._lock:
            try:
                target = self._load(function, tool)
                return target if isinstance(target, Outcome) else self._call(target, payload)
            except OSError as error:
                return Outcome("crash", f"no process could be started for the tool ({error.strerror})")

    def _load(self, function: Function, tool: Tool) -> list[Any] | Outcome:
        """Have the function ready in a worker: in a fresh interpreter if it can be imported there, else in a fork."""
        target = _target(function, tool)
        key = json.dumps(target)
        if target and key not in self._unimportable:
            outcome = self._ready("spawned", target)
            if outcome is None:
                return target
            if tool.origin is not None:
                return outcome
            self._unimportable.add(key)
        if not any(known is function for known in self._functions):
            self._functions.append(function)
            self._retire("forked")
        target = ["forked", next(row for row, known in enumerate(self._functions) if known is function)]
        return self._ready("forked", target) or target

    def _ready(self, kind: str, target: list[Any]) -> Outcome | None:
        """Load a target once in each process; None when it is there."""
        worker = self._worker(kind)
        key = json.dumps(target)
        if key in worker.loaded:
            return None
        outcome = self._ask(kind, {"target": target}, _START_SECONDS)
        if not outcome.ok and worker.loaded:
            # what an earlier tool did to the process must not be held against this one
            self._retire(kind)
            worker = self._worker(kind)
            outcome = self._ask(kind, {"target": target}, _START_SECONDS)
        if not outcome.ok:
            return Outcome("crash", f"the tool cannot be loaded in its process: {outcome.detail}")
        worker.loaded.add(key)
        return None

    def _call(self, target: list[Any], payload: Any) -> Outcome:
        kind = "forked" if target[0] == "forked" else "spawned"
        return self._ask(kind, {"target": target, "arguments": payload}, self.timeout)

    def _ask(self, kind: str, request: dict[str, Any], seconds: float) -> Outcome:
        worker = self._worker(kind)
        try:
            reply = worker.ask(request, seconds, self._reply_bytes)
            outcome = _outcome(reply)
        except TimeoutError:
            self._retire(kind)
            return Outcome("timeout", f"no result after {seconds:g} s")
        except (OSError, ValueError, TypeError, KeyError, AttributeError, ZeroDivisionError):
            status = self._retire(kind)
            if status == -signal.SIGXCPU:
                return Outcome("timeout", f"more than {seconds:g} s of processor time")
            return Outcome("crash", f"the tool's process ended ({_ending(status)})")
        if reply.get("retire"):
            self._retire(kind)
        return outcome

    def _worker(self, kind: str) -> WorkerProcess:
        worker = self._workers.get(kind)
        if worker is not None and not worker.idle():
            self._retire(kind)
            worker = None
        if worker is None:
            worker = fork(self._functions, self._limits) if kind == "forked" else spawn(self._limits)
            self._workers[kind] = worker
        return worker

    def _retire(self, kind: str) -> int:
        worker = self._workers.pop(kind, None)
        return worker.kill() if worker else 0


def _target(function: Function, tool: Tool) -> list[Any]:
    """Return where a fresh interpreter finds the function; empty if nowhere."""
    if tool.origin is not None:
        return ["file", *tool.origin, tool.name]
    module, qualified = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not module or module == "__main__" or "<" in qualified:
        return []
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    same = found is function or (isinstance(found, Tool) and found.function is function)
    return ["module", module, qualified] if same else []


def _unbound(function: Function) -> tuple[Function, Mapping[str, object]]:
    """Return what a partial stands for: the function, and the arguments that it fixes by name."""
    if isinstance(function, functools.partial) and not function.args:
        return function.func, function.keywords
    return function, {}


def _complete(tool: Tool, arguments: dict[str, object]) -> dict[str, object]:
    """Leave out an empty variadic argument, as a call without further values does."""
    return {name: value for name, value in arguments.items() if name != tool.variadic or value}


def _outcome(reply: Mapping[str, Any]) -> Outcome:
    """Return the outcome that a reply carries.

    Raises:
        ValueError, TypeError, KeyError, AttributeError, ZeroDivisionError: The reply is not one of our worker's: the
            tool wrote it, or damaged what writes it.
    """
    status: Any = reply.get("status")
    texts = [reply.get(key) for key in ("detail", "transport", "business", "data")]
    if status not in get_args(Status) or not all(text is None or isinstance(text, str) for text in texts):
        raise ValueError
    detail, transport, business, data = texts
    result = decode(reply.get("result")) if status == "ok" else None
    return Outcome(status, detail or "", transport, business, data, result)


def _ending(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-status).name}"
    return f"signal {-status}"


def _kill_all(workers: dict[str, WorkerProcess]) -> None:
    while workers:
        workers.popitem()[1].kill()
