"""What every fuzzer asserts: bounded time for one input, and memory that stays where it was."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 0.5
"""Processor time that one input may take."""


@contextmanager
def in_time(seconds: float = SECONDS) -> Iterator[None]:
    """Fail if the block takes more processor time; waiting for other processes does not count."""
    start = time.process_time()
    yield
    assert time.process_time() - start < seconds


def resident_mb() -> float:
    """Memory of this process in MB, 0 where the system does not say."""
    file = Path("/proc/self/statm")
    return int(file.read_text().split()[1]) * 4096 / 1e6 if file.exists() else 0.0
