"""Wall time and peak memory of the stages of a run.

The peak is that of the whole process up to the end of the stage (the operating system keeps one high-water mark), on
CUDA that of the allocator during the stage.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch


class StageTime(NamedTuple):
    """One finished stage: seconds, and peak memory in MiB."""

    name: str
    seconds: float
    peak_mb: float


class Stages:
    """Collects finished stages in order; `with stages("solve"): ...` times one.

    Args:
        shown: Say on stderr how long a stage took.
    """

    def __init__(self, *, shown: bool = True) -> None:
        self.done: list[StageTime] = []
        self._shown = shown

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time the block under `name`, and keep it even when the block fails."""
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        try:
            yield
        finally:
            self.done.append(StageTime(name, time.perf_counter() - start, peak_memory_mb()))
            if self._shown:
                print(f"{name}: {self.done[-1].seconds:.1f} s", file=sys.stderr)

    @property
    def seconds(self) -> float:
        """Sum over the stages."""
        return sum(stage.seconds for stage in self.done)


def peak_memory_mb() -> float:
    """Peak memory in MiB: of CUDA where it is in use, else of the process."""
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        return torch.cuda.max_memory_allocated() / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
