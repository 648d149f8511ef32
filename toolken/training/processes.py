"""The processes of one run, where a launcher (`accelerate launch`, `torchrun`, `mpirun`) started several of them.

Process 0 owns the run; the others help it and end. They tell each other short texts through the launcher's key-value
store; no tensor passes between them. One that fails leaves its line for the others, a gloo barrier notices one that
was killed, and nobody waits longer than `LIMIT`: whoever waits in vain ends with one line, too. A process that was
started by itself is process 0 of 1, and joins nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import TracebackType

import torch
from accelerate.utils import get_cpu_distributed_information
from torch.distributed import HashStore  # type: ignore[attr-defined]
from torch.distributed.distributed_c10d import PrefixStore, Store, barrier, destroy_process_group, init_process_group
from torch.distributed.rendezvous import rendezvous

from toolken.config import BaseSection
from toolken.errors import UserError

JOIN = timedelta(minutes=5)
"""How long a process waits for the last one to start."""
LIMIT = timedelta(minutes=30)
"""How long a process waits for the others to come to the same step; they are about one shard apart."""
PAUSE = 0.05
"""Seconds between two looks at whether the others are there."""
FAILED = "failed"
GO_ON = "the same command goes on where this one stopped"

_JOINED = itertools.count()


class Processes:
    """The processes that work on one run; use them in a `with` statement, so that a failure reaches the others.

    Attributes:
        rank: Which of them this is.
        world: How many there are.
        local: Which of those on this machine this is.
    """

    def __init__(self, rank: int = 0, world: int = 1, *, local: int = 0, store: Store | None = None) -> None:
        self.rank = rank
        self.world = world
        self.local = local
        self._store = store or HashStore()
        self._steps = itertools.count()

    @classmethod
    def join(cls) -> Processes:
        """Return the processes that the environment speaks of, when all of them have started.

        Raises:
            UserError: They do not find each other.
        """
        place = get_cpu_distributed_information()
        if place.world_size == 1:
            _notice_a_lonely_start()
            return cls()
        try:
            found = next(rendezvous("env://", place.rank, place.world_size, timeout=JOIN))
            store = PrefixStore(f"toolken/{next(_JOINED)}", found[0])
            init_process_group("gloo", store=store, rank=place.rank, world_size=place.world_size, timeout=LIMIT)
        except (RuntimeError, ValueError) as error:
            raise UserError(
                f"process {place.rank} of {place.world_size}",
                f"does not reach the others: {_first_line(error)}",
                "start all of them with one `accelerate launch`, on a port that is free",
            ) from error
        return cls(place.rank, place.world_size, local=place.local_rank, store=store)

    @property
    def first(self) -> bool:
        """Whether this process owns the run."""
        return self.rank == 0

    def on_own_device(self, section: BaseSection) -> BaseSection:
        """Return the settings of the base with a GPU for every process of a machine, where GPUs are used.

        Raises:
            UserError: One base is to be spread over GPUs that all processes would use.
        """
        if self.world == 1:
            return section
        if section.device_map is not None:
            raise UserError("base.device_map", "spreads the base over the GPUs of all processes", "start one process")
        if section.device not in ("auto", "cuda") or not torch.cuda.is_available():
            return section
        return section.model_copy(update={"device": f"cuda:{self.local % torch.cuda.device_count()}"})

    def exchange(self, text: str = "") -> list[str]:
        """Return what every process says at this step, when all have come to it; all must take the same steps.

        Raises:
            UserError: Another process failed, ended or does not come.
        """
        step = next(self._steps)
        with self._reaching():
            self._store.set(f"{step}/{self.rank}", text)
            self._meet()
            said = [self._store.get(f"{step}/{rank}").decode() for rank in range(self.world)]
            self._meet()  # the store may end with its owner: nobody leaves while another one reads
        return said

    def adder(self) -> Callable[[int], int]:
        """Return a function that adds to a sum that all processes share, and returns the sum.

        All processes must ask for it at the same step. It raises a UserError where another process failed or ended.
        """
        step = next(self._steps)

        def add(value: int) -> int:
            with self._reaching():
                self._stop_with_others()
                return self._store.add(f"{step}/sum", value)

        return add

    def deal(self, count: int) -> Iterator[int]:
        """Hand out the numbers below `count`, each to one process: the next to whoever asks for it."""
        add = self.adder()
        while (number := add(1) - 1) < count:
            yield number

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.world == 1:
            return
        if error is not None:
            if not isinstance(error, UserError):
                error.add_note(f"this was process {self.rank} of {self.world}")
            with contextlib.suppress(RuntimeError):
                if not self._store.check([FAILED]):
                    self._store.set(FAILED, f"process {self.rank} of {self.world}: {_first_line(error)}")
        destroy_process_group()

    def _meet(self) -> None:
        """Wait until every process has come here, in steps that signals can interrupt."""
        if self.world == 1:
            return
        work = barrier(async_op=True)
        while not work.is_completed():
            self._stop_with_others()
            time.sleep(PAUSE)
        work.wait()

    def _stop_with_others(self) -> None:
        if self._store.check([FAILED]):
            raise UserError("stopped", f"another process failed ({self._store.get(FAILED).decode()})", GO_ON)

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        """Say in one line that another process cannot be reached, or what it failed with."""
        try:
            yield
        except RuntimeError as error:
            with contextlib.suppress(RuntimeError):
                self._stop_with_others()
            problem = f"another process ended, or did not come within {LIMIT} ({_first_line(error)})"
            raise UserError(f"process {self.rank} of {self.world}", problem, GO_ON) from error


def _notice_a_lonely_start() -> None:
    """Say so where `accelerate launch` was asked for several processes and started one, as it does on CPUs."""
    if "ACCELERATE_MIXED_PRECISION" in os.environ and "MASTER_ADDR" in os.environ and "RANK" not in os.environ:
        print(
            "accelerate started one process; for several, on CPUs too: accelerate launch --multi_gpu --num_processes N",
            file=sys.stderr,
        )


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]
