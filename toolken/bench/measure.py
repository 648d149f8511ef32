"""Clocks, memory, samples and machine facts that every benchmark shares.

What is compared is run in turns in one process, so that a disturbance of the machine meets both sides. Memory is the
resident size of this process, read while the measured code runs (on CUDA, what the allocator gave out); where the
system does not tell it, it is None, never a guess.
"""

from __future__ import annotations

import gc
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Generic, NamedTuple, TypeVar

import torch
import transformers

from toolken.model.base import BaseLM

T = TypeVar("T")

MEBIBYTE = 2**20
SAMPLE_SECONDS = 0.002
"""Time between two looks at the memory."""


def say(line: str) -> None:
    """Tell what is measured now, on stderr."""
    print(f"bench: {line}", file=sys.stderr)


class Timed(NamedTuple, Generic[T]):
    """What a call returned, and the seconds that it took."""

    value: T
    seconds: float


def timed(function: Callable[[], T]) -> Timed[T]:
    """Run once and take the time, work that a GPU still has to do included."""
    _finish_device()
    start = time.perf_counter()
    value = function()
    _finish_device()
    return Timed(value, time.perf_counter() - start)


def in_turns(functions: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Run every function once a round, each round from the next one on; return the seconds of all rounds by name."""
    names = list(functions)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in [*names[first:], *names[:first]]:
            seconds[name].append(timed(functions[name]).seconds)
    return seconds


def _finish_device() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def spread_sample(sizes: Sequence[int], count: int, *, seed: int) -> list[int]:
    """Return `count` places (all of them, if there are no more), evenly spread over the sizes in order.

    A systematic sample: from a seeded start, every n-th of the sorted sizes. Every place has the same chance, and the
    mean of what is measured on the sample estimates the mean over all.
    """
    if count >= len(sizes):
        return list(range(len(sizes)))
    order = sorted(range(len(sizes)), key=lambda place: (sizes[place], place))
    step = len(sizes) / count
    start = Random(seed).random() * step
    return sorted(order[int(start + number * step)] for number in range(count))


def scaled(seconds: float, *, measured: int, of: int) -> float:
    """Return the time that all rows take, from that of a sample of them."""
    return seconds * of / measured


def memory_mb() -> float | None:
    """Return what this process holds now, in MiB; None where the system does not tell."""
    if torch.cuda.is_available() and torch.cuda.memory_allocated():
        return torch.cuda.memory_allocated() / MEBIBYTE
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / MEBIBYTE


class PeakMemory:
    """Watches this process in a thread: `with PeakMemory(level) as watch: ...`, then `watch.extra_mb`.

    Args:
        level: What `memory_mb` said before: the loaded base. Memory that is freed and kept by the allocator counts,
            as it does for everybody else on the machine.
    """

    def __init__(self, level: float | None) -> None:
        self._level = level
        self._peak = level or 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def extra_mb(self) -> float | None:
        """Largest size seen, above the level."""
        return None if self._level is None else self._peak - self._level

    def __enter__(self) -> PeakMemory:
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._look()
        if torch.cuda.is_available():
            self._peak = max(self._peak, torch.cuda.max_memory_allocated() / MEBIBYTE)

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self._look()

    def _look(self) -> None:
        self._peak = max(self._peak, memory_mb() or 0.0)


def level_after_warm_up(base: BaseLM) -> float | None:
    """Run one small pass, so that what the first pass of a process sets up is paid for, and return the memory held."""
    ids = torch.zeros((1, 8), dtype=torch.int64)
    base.word_logits(base.hidden(ids, cache=base.new_cache()))
    gc.collect()
    return memory_mb()


def machine_facts(base: BaseLM) -> dict[str, object]:
    """Return what a time depends on and the reader cannot see."""
    return {
        "base": base.name,
        "dtype": str(base.dtype).removeprefix("torch."),
        "device": str(base.device),
        "vocabulary": base.vocab_size,
        "threads": torch.get_num_threads(),
        "cpu": _cpu_name(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
