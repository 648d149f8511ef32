"""Processes that work together hear of each other's failures, and none waits for ever."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import distributed

from toolken.config import BaseSection
from toolken.errors import UserError
from toolken.training.processes import Processes

ROOT = Path(__file__).parents[2]

MEMBER = """
import os, signal, sys
from datetime import timedelta
from toolken.errors import UserError
from toolken.training import processes
processes.LIMIT = timedelta(seconds=float(sys.argv[2]))
mode = sys.argv[1]
def work(crew):
    said = crew.exchange(f"I am {crew.rank}")
    dealt = list(crew.deal(5))
    print(said, sorted(int(n) for part in crew.exchange(" ".join(map(str, dealt))) for n in part.split()))
    if crew.rank == 1 and mode == "fail":
        raise UserError("data.jsonl:7", "no such tool")
    if crew.rank == 1 and mode in ("SIGKILL", "SIGSTOP"):
        os.kill(os.getpid(), signal.Signals[mode])
    crew.exchange()
try:
    for _ in range(2):  # a program may have several runs
        with processes.Processes.join() as crew:
            work(crew)
except UserError as error:
    print(error)
    sys.exit(2)
"""


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@contextmanager
def members(mode: str, limit: float = 60.0) -> Iterator[list[subprocess.Popen[str]]]:
    """Start two processes with the variables of a launcher; nothing of them is left behind."""
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "PYTHONPATH": str(ROOT)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", MEMBER, mode, str(limit)],
            env={**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        yield started
    finally:
        for member in started:
            member.kill()
            member.communicate()


def test_what_one_says_all_hear_and_every_number_is_dealt_once() -> None:
    with members("well") as started:
        for member in started:
            said, _ = member.communicate(timeout=120)
            assert said == "['I am 0', 'I am 1'] [0, 1, 2, 3, 4]\n" * 2
            assert member.returncode == 0


def test_a_failure_ends_the_others_with_its_line() -> None:
    with members("fail") as (first, second):
        said, shown = first.communicate(timeout=120)
        assert "another process failed (process 1 of 2: data.jsonl:7: no such tool)" in said
        assert first.returncode == 2 and "Traceback" not in shown
        assert second.communicate(timeout=60)[0].endswith("data.jsonl:7: no such tool\n")


@pytest.mark.parametrize(("mode", "limit"), [("SIGKILL", 100.0), ("SIGSTOP", 4.0)])
def test_one_that_is_killed_or_does_not_come_ends_the_others_in_limited_time(mode: str, limit: float) -> None:
    with members(mode, limit) as (first, _):
        said, shown = first.communicate(timeout=90)  # less than the limit of the killed one, which is noticed at once
        assert "process 0 of 2: another process ended, or did not come within" in said
        assert "the same command goes on" in said
        assert first.returncode == 2 and "Traceback" not in shown


def test_a_process_alone_joins_nothing_and_does_all_itself() -> None:
    with Processes.join() as alone:
        assert (alone.rank, alone.world, alone.first) == (0, 1, True)
        assert alone.exchange("x") == ["x"]
        assert list(alone.deal(3)) == [0, 1, 2]
        assert not distributed.is_initialized()


def test_processes_that_cannot_join_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(UserError, match=r"process 1 of 2: does not reach the others: .*MASTER_ADDR.*accelerate launch"):
        Processes.join()


def test_every_process_of_a_machine_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    auto = BaseSection()
    crew = [Processes(rank, 4, local=rank % 2) for rank in range(4)]
    assert [each.on_own_device(auto).device for each in crew] == ["auto"] * 4
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [each.on_own_device(auto).device for each in crew] == ["cuda:0", "cuda:1"] * 2
    assert crew[1].on_own_device(BaseSection(device="cpu")).device == "cpu"
    assert Processes().on_own_device(auto) is auto
    with pytest.raises(UserError, match="device_map"):
        crew[0].on_own_device(BaseSection(device_map="auto"))


def test_a_launcher_that_started_one_process_where_several_were_asked_for_is_told_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "ACCELERATE_MIXED_PRECISION"):
        monkeypatch.delenv(name, raising=False)
    Processes.join()
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "no")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    Processes.join()
    assert "accelerate launch --multi_gpu --num_processes N" in capsys.readouterr().err
