"""Whatever a tool does to its process, its results or its parent's socket: an outcome in time, and nothing stays."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from tests.tools import hostile_objects as objects
from tests.tools import hostile_processes as processes
from tests.tools import hostile_tools
from tests.tools.test_executor import local_copy
from toolken.errors import ToolError
from toolken.tools.executor import Executor
from toolken.tools.process import WorkerProcess
from toolken.tools.results import format_result
from toolken.tools.tool import Outcome, Status, Tool

LIMIT = 1.0
PATIENCE = 8.0
"""Seconds for calls that end by themselves: on a busy machine a fork alone may take one."""
SLACK = 2.0
"""Seconds on top of the limit: for killing, on a machine that others use too."""


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with Executor(timeout=LIMIT, memory_mb=128) as made:
        made.run(hostile_tools.echo, {"x": 1})
        yield made


@pytest.fixture(scope="module")
def patient() -> Iterator[Executor]:
    with Executor(timeout=PATIENCE, memory_mb=128) as made:
        yield made


def timed(executor: Executor, tool: Tool, arguments: dict[str, object], *, limit: float = LIMIT) -> Outcome:
    """Run a tool; the outcome comes in time, is one that answers can carry, and the next call works."""
    start = time.monotonic()
    outcome = executor.run(tool, arguments)
    assert time.monotonic() - start < limit + SLACK
    assert outcome.status in get_args(Status)
    assert "\n" not in json.dumps(outcome.as_dict())
    assert outcome.ok or (outcome.result is None and outcome.detail)
    if outcome.ok:
        try:
            assert "\n" not in format_result(outcome.result)
        except ToolError:
            pass
    assert executor.run(hostile_tools.echo, {"x": 5}).result == 5
    return outcome


def alive(place: Path) -> list[str]:
    """The processes that left their number and still run."""
    states = {
        entry.name: Path("/proc", entry.name, "stat").read_text().rpartition(")")[2].split()[0]
        for entry in place.iterdir()
        if Path("/proc", entry.name).exists()
    }
    return [name for name, state in states.items() if state != "Z"]


PROCESSES = [
    (processes.leaves_a_service, "ok", ""),
    (processes.leaves_a_service_and_hangs, "timeout", "1 s"),
    (processes.forks_and_forks, "timeout", "1 s"),
    (processes.forks_and_answers, "ok", ""),
    (processes.many_threads, "tool_error", "thread"),
    (processes.stops_itself, "timeout", "1 s"),
    (processes.terminates_itself, "crash", "SIGTERM"),
    (processes.aborts, "crash", "SIGABRT"),
    (processes.never_gets_through, "timeout", "1 s"),
    (processes.writes_noise, "crash", "ended"),
    (processes.writes_half_a_line, "timeout", "1 s"),
    (processes.writes_without_end, "crash", "ended"),
    (processes.writes_slowly, "timeout", "1 s"),
    (processes.writes_brackets, "crash", "ended"),
    (processes.spoils_the_worker, "crash", "ended"),
    (processes.takes_builtins_away, "crash", ""),
    (processes.clears_modules, "ok", ""),
    (processes.takes_descriptors_away, "ok", ""),
    (processes.leaves_its_folder, "ok", ""),
]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are counted by /proc")
@pytest.mark.parametrize("forked", [False, True], ids=["spawned", "forked"])
@pytest.mark.parametrize(("bad", "status", "detail"), PROCESSES, ids=[case[0].name for case in PROCESSES])
def test_law_12_misused_processes_end_in_time_and_leave_nothing_running(
    executor: Executor, patient: Executor, tmp_path: Path, bad: Tool, status: str, detail: str, forked: bool
) -> None:
    chosen, limit = (executor, LIMIT) if status == "timeout" else (patient, PATIENCE)
    before = {path.name for path in Path("/proc/self/fd").iterdir()}
    outcome = timed(chosen, local_copy(bad) if forked else bad, {"place": str(tmp_path)}, limit=limit)
    assert (outcome.status, detail in outcome.detail) == (status, True), outcome
    deadline = time.monotonic() + SLACK
    while time.monotonic() < deadline and alive(tmp_path):
        time.sleep(0.01)
    assert not alive(tmp_path)
    assert len({path.name for path in Path("/proc/self/fd").iterdir()} - before) <= 2


@pytest.mark.parametrize("bad", objects.RETURNED, ids=lambda bad: bad.name)
def test_law_12_hostile_objects_become_outcomes(executor: Executor, bad: Tool) -> None:
    assert timed(executor, bad, {}).status != "timeout"


@pytest.mark.parametrize("bad", objects.LOOPING, ids=lambda bad: bad.name)
def test_law_12_objects_that_never_answer_time_out_or_are_refused(executor: Executor, bad: Tool) -> None:
    assert timed(executor, bad, {}).status in ("timeout", "refused")


@pytest.mark.parametrize(
    ("bad", "status", "detail"),
    [
        (objects.recurses, "tool_error", "RecursionError"),
        (objects.takes_gigabytes, "tool_error", "128 MB"),
        (objects.recurses_without_limit, None, ""),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_law_12_depth_and_memory_are_bounded(executor: Executor, bad: Tool, status: str | None, detail: str) -> None:
    outcome = timed(executor, bad, {})
    assert outcome.status == status if status else not outcome.ok
    assert detail in outcome.detail


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "great"},
        {"status": ["ok"]},
        {"status": None},
        {"detail": {"a": 1}},
        {"transport": 5},
        {"result": {"fraction": ["0x1", "0x0"]}},
        {"result": {"fraction": 5}},
        {"result": {"integer": "zz"}},
        {"result": {"mapping": 5}},
        {"result": {}},
        {"result": float("nan")},
        {"id": None},
        {"id": [1]},
    ],
    ids=str,
)
def test_a_forged_reply_is_a_crash_and_never_an_exception(executor: Executor, fields: dict[str, object]) -> None:
    def forges() -> None:
        processes.forged(**fields)

    forges.__annotations__ = {"return": None}
    forges.__qualname__ = "somewhere.<locals>.forges"
    bad = Tool("forges", "", {"type": "object", "properties": {}}, (), None, forges)
    assert timed(executor, bad, {}).status == "crash"


def test_a_tool_that_spoiled_the_process_does_not_fail_the_next_one(executor: Executor, tmp_path: Path) -> None:
    """The next tool is loaded anew where the old process cannot load it."""
    executor.close()
    assert executor.run(processes.takes_descriptors_away, {"place": str(tmp_path)}).ok
    assert executor.run(hostile_tools.talks, {}).result == 1


def test_a_process_that_cannot_be_started_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> WorkerProcess:
        raise BlockingIOError(11, os.strerror(11))

    monkeypatch.setattr("toolken.tools.executor.spawn", full)
    with Executor(timeout=LIMIT) as fresh:
        outcome = fresh.run(hostile_tools.echo, {"x": 1})
    assert (outcome.status, "no process could be started" in outcome.detail) == ("crash", True)
