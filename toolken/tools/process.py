"""The parent's side of a worker process: start it, ask it within a deadline, kill it with all it has started.

Invariant: `ask` and `kill` return within their time whatever the process does, and `kill` leaves nothing running that
the process started: its session, and on Linux also what has detached itself from it. Two ways to start one: a fresh
interpreter, which shares nothing with the parent but the import path, and a fork, for functions that exist nowhere
else.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolken.tools.strict_json import parse_json
from toolken.tools.worker import bare_environment, forked

_BOOTSTRAP = (
    "import json, sys; path, descriptor, limits = json.loads(sys.argv[1]); sys.path[:] = path; "
    "from toolken.tools.worker import spawned; spawned(descriptor, limits)"
)


class WorkerProcess:
    """The parent's side of one worker process."""

    def __init__(self, channel: socket.socket, pid: int, popen: subprocess.Popen[bytes] | None) -> None:
        self.channel = channel
        self.pid = pid
        self.popen = popen
        self.owner = os.getpid()
        self.loaded: set[str] = set()
        self.asked = 0

    def ask(self, request: dict[str, Any], seconds: float, limit: int) -> dict[str, Any]:
        """Send a request and wait for its reply.

        Raises:
            TimeoutError: There is none in time.
            OSError, ValueError: The process ended, or what it sent is no reply.
        """
        self.asked += 1
        deadline = time.monotonic() + seconds
        self.channel.settimeout(seconds)
        self.channel.sendall(json.dumps({"id": self.asked, **request}).encode() + b"\n")
        data = b""
        while not data.endswith(b"\n"):
            self.channel.settimeout(max(1e-3, deadline - time.monotonic()))
            chunk = self.channel.recv(65536)
            data += chunk
            if not chunk or len(data) > limit:
                raise ConnectionError
            if time.monotonic() > deadline and not data.endswith(b"\n"):
                raise TimeoutError
        reply = parse_json(data.decode())
        if not isinstance(reply, dict) or reply.get("id") != self.asked:
            raise ValueError
        return reply

    def idle(self) -> bool:
        """Whether the process waits for a request: nothing to read, and not the end of the stream either."""
        self.channel.setblocking(False)
        try:
            self.channel.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def kill(self) -> int:
        """Kill the process with everything it started, and return its exit status (negative: a signal)."""
        if self.owner == os.getpid() and self._has_hung_up():
            self._linger(0.05)
        self.channel.close()
        if self.owner != os.getpid():
            return 0
        # before the process is reaped, so that its number cannot have passed to another one
        self._kill_below(0.5)
        for end in (os.killpg, os.kill):
            _send(end, self.pid, signal.SIGKILL)
        return self._reap(1.0)

    def _kill_below(self, seconds: float) -> None:
        """Kill what the process started; it is stopped for that, so that orphans have it as their parent meanwhile."""
        _send(os.kill, self.pid, signal.SIGSTOP)
        deadline = time.monotonic() + seconds
        while (below := descendants(self.pid)) and time.monotonic() < deadline:
            for pid in below:
                _send(os.kill, pid, signal.SIGKILL)

    def _has_hung_up(self) -> bool:
        """Whether the process has closed its end of the socket, as one that is ending does."""
        self.channel.setblocking(False)
        try:
            return any(not self.channel.recv(2**16) for _ in range(16))
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _linger(self, seconds: float) -> None:
        """Give a process that is ending the time to do so, that its own exit status can be told."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                    return
            time.sleep(0.002)

    def _reap(self, seconds: float) -> int:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.popen is not None:
                status = self.popen.poll()
                if status is not None:
                    return status
            else:
                try:
                    pid, code = os.waitpid(self.pid, os.WNOHANG)
                except ChildProcessError:
                    return 0
                if pid:
                    return os.waitstatus_to_exitcode(code)
            time.sleep(0.002)
        return 0


def descendants(pid: int) -> list[int]:
    """Return the processes that run below a process, zombies aside; none where the system does not list them."""
    found: list[int] = []
    todo = [pid]
    while todo:
        parent = todo.pop()
        for listed in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                children = [int(child) for child in listed.read_text().split()]
                todo += children
                found += [child for child in children if _runs(child)]
    return found


def _runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:1] != [b"Z"]
    return False


def _send(end: Callable[[int, int], None], pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        end(pid, number)


def spawn(limits: Mapping[str, float]) -> WorkerProcess:
    """Start a fresh interpreter, with this one's import path and nothing else of it."""
    ours, theirs = socket.socketpair()
    path = [entry or os.getcwd() for entry in sys.path]
    with theirs:
        popen = subprocess.Popen(
            [sys.executable, "-I", "-c", _BOOTSTRAP, json.dumps([path, theirs.fileno(), limits])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=bare_environment(),
            start_new_session=True,
        )
    return WorkerProcess(ours, popen.pid, popen)


def fork(functions: Sequence[Callable[..., object]], limits: Mapping[str, float]) -> WorkerProcess:
    """Copy this process, for functions that exist nowhere else."""
    ours, theirs = socket.socketpair()
    with theirs, warnings.catch_warnings():
        # the child runs the tool alone, on this thread, and is killed if a lock of another thread blocks it
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
        if pid == 0:
            forked(theirs, tuple(functions), limits)
    return WorkerProcess(ours, pid, None)
