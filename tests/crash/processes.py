"""Commands as processes that tests start, watch, kill and start again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
"""Seconds that anything here may take."""
COMMAND = """import signal, sys; from toolken.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests may run where Ctrl-C is ignored
sys.exit(main(sys.argv[1:]))"""


@dataclass
class Job:
    """A running command; `log` is its standard error, `log` + ".out" its standard output."""

    pid: int
    log: Path
    poll: Callable[[], int | None]

    @property
    def said(self) -> str:
        """What is on its standard error by now."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    @property
    def result(self) -> str:
        """What is on its standard output by now."""
        return Path(f"{self.log}.out").read_text(encoding="utf-8")

    def until(self, seen: Callable[[Job], bool]) -> bool:
        """Wait until something is seen; False if it ended before."""
        deadline = time.monotonic() + PATIENCE
        while not seen(self):
            if self.poll() is not None:
                return seen(self)
            assert time.monotonic() < deadline, self.said
            time.sleep(0.001)
        return True

    def end(self, number: int | None = None) -> int:
        """Send a signal, if any, and return the exit status."""
        if number is not None and self.poll() is None:
            os.kill(self.pid, number)
        deadline = time.monotonic() + PATIENCE
        while (status := self.poll()) is None:
            assert time.monotonic() < deadline, self.said
            time.sleep(0.001)
        return status


class Starter(Protocol):
    """Starts a command; `limits` are those of `tests.crash.server`."""

    def __call__(self, argv: Sequence[str], log: Path, **limits: object) -> Job:
        """Return the running command."""


@contextmanager
def forks() -> Iterator[Starter]:
    """Start commands as forks of a process that has loaded everything."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.crash.server"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes) as server:  # type: ignore[call-overload]

        def ask(request: dict[str, object]) -> int | None:
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            assert answer is None or isinstance(answer, int)
            return answer

        def start(argv: Sequence[str], log: Path, **limits: object) -> Job:
            log.unlink(missing_ok=True)
            pid = ask({"argv": list(argv), "log": str(log), **limits})
            assert pid is not None
            ended: list[int] = []

            def poll() -> int | None:
                if not ended and (status := ask({"poll": pid})) is not None:
                    ended.append(status)
                return ended[0] if ended else None

            return Job(pid, log, poll)

        assert json.loads(server.stdout.readline()) == "ready"
        try:
            yield start
        finally:
            server.stdin.close()
            server.wait(PATIENCE)


def fresh(argv: Sequence[str], log: Path, **limits: object) -> Job:
    """Start a command in a fresh interpreter."""
    assert not limits
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with log.open("w") as said, Path(f"{log}.out").open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *argv], env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=said
        )
    return Job(process.pid, log, process.poll)


@dataclass
class Phase:
    """A stretch of a command: from the moment `begun` is seen until `over` is."""

    begun: Callable[[Job], bool]
    over: Callable[[Job], bool]

    def seconds(self, job: Job) -> float:
        """Watch a command that is left alone; return how long its phase takes."""
        assert job.until(self.begun), job.said
        start = time.monotonic()
        job.until(self.over)
        return time.monotonic() - start


def said(text: str) -> Callable[[Job], bool]:
    """Return the moment when a text is on standard error."""
    return lambda job: text in job.said


def ended(job: Job) -> bool:
    """Whether the command is over."""
    return job.poll() is not None


@dataclass
class Storm:
    """Kills a command again and again, at random moments of a phase, each time going on in the same folder.

    Args:
        start: Starts the command in a folder.
        phase: The moments.
        seconds: How long after the beginning of the phase at most.
        look: Called with the folder after every kill: what holds at any time.
        seed: Of the moments.
    """

    start: Callable[[Path], Job]
    phase: Phase
    seconds: float
    look: Callable[[Path], None]
    seed: int = 0

    def rage(self, folder: Path, kills: int) -> list[Path]:
        """Kill so many times; return the folders that saw a run to its end, the last one without a kill."""
        draw, finished, hits = random.Random(self.seed), [], 0
        current = folder / "0"
        for number in range(kills):
            current.mkdir(parents=True, exist_ok=True)
            job = self.start(current)
            job.until(self.phase.begun)
            time.sleep(draw.uniform(0, self.seconds))
            hits += not self.phase.over(job)
            status = job.end(signal.SIGKILL)
            assert status in (0, -signal.SIGKILL), job.said
            self.look(current)
            if status == 0:  # it was faster: the next kills need a run to kill
                finished.append(current)
                current = folder / str(number + 1)
        current.mkdir(parents=True, exist_ok=True)
        job = self.start(current)
        assert job.end() == 0, job.said
        assert hits >= kills // 4, f"only {hits} of {kills} kills fell into the phase"
        return [*finished, current]


def descendants(pid: int) -> set[int]:
    """Return the processes that a process has started, and those that they have."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def gone(pids: set[int], seconds: float = 10.0) -> bool:
    """Whether processes end in time."""
    deadline = time.monotonic() + seconds
    while any(_runs(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
