"""Features extracted by several processes: every shard by one of them, with the bytes of one process alone.

Shards are planned from the inputs alone and stored by name, so it does not matter who computes which: the next one
goes to whoever is free, the longest first. Bytes are those of one process with as many threads as each of these has.
The processes must be given the same examples and base, and see one cache folder: several machines need a shared one.
What differs or cannot be seen is refused before any work.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

from toolken.config import FeaturesSection
from toolken.data.align import Encoded
from toolken.errors import UserError
from toolken.files import TEMPORARY
from toolken.model.base import BaseLM
from toolken.training.features import Plan, compute, meter, plan, rows_of
from toolken.training.forward import Forward
from toolken.training.processes import Processes

PATIENCE = 60.0
"""Seconds after which a shared folder surely shows what another machine wrote to it."""
SHARE = "set features.cache to a folder that all processes share"


class Task(NamedTuple):
    """A shard that is missing: of which split, its number there, and its tokens."""

    label: str
    number: int
    tokens: int


def fill_together(
    base: BaseLM,
    splits: Mapping[str, Sequence[Encoded]],
    *,
    section: FeaturesSection,
    processes: Processes,
) -> None:
    """Store what the cache lacks of all splits, and return when all of it is there; every process calls this.

    Args:
        base: The frozen base.
        splits: Examples, by what they are called in messages.
        section: Cache folder, token budget and block sizes.
        processes: Who shares the work.

    Raises:
        UserError: As for `extract`; or the processes differ in what they are given, do not see the same folder, or one
            of them failed.
    """
    if not any(splits.values()):
        return
    plans = {label: plan(base, encoded, section) for label, encoded in splits.items() if encoded}
    tasks = _agree(plans, _tasks(plans, splits), processes)
    shown = processes.first and bool(tasks)
    if shown:
        print(f"features: {len(tasks)} shards, computed by {processes.world} processes", file=sys.stderr)
    forward = Forward(base, section)
    with ExitStack() as stack:
        for label, each in plans.items():
            stack.enter_context(each.cache.kept(len(each.shards), label))
        read = stack.enter_context(meter("of all rows", sum(task.tokens for task in tasks), shown=shown))
        told = _read_by_all(read, processes)
        for at in processes.deal(len(tasks)):
            label, number, _ = tasks[at]
            shard = plans[label].shards[number]
            columns = compute(base, forward, splits[label], shard=shard, read=told)
            plans[label].cache.write(number, columns)
        processes.exchange()
        if processes.first:
            told(0)
            _require_all(tasks, plans, splits)


def _tasks(plans: Mapping[str, Plan], splits: Mapping[str, Sequence[Encoded]]) -> list[Task]:
    """Return the missing shards, longest first, so that the processes end at about the same time."""
    tasks = [
        Task(label, number, sum(len(splits[label][i].ids) for i in each.shards[number]))
        for label, each in plans.items()
        for number in each.missing
    ]
    return sorted(tasks, key=lambda task: -task.tokens)


def _agree(plans: Mapping[str, Plan], tasks: list[Task], processes: Processes) -> list[Task]:
    """Return the tasks of process 0 in all processes, when they have the same plans and see one folder."""
    keys = processes.exchange(" ".join(each.cache.key for each in plans.values()))
    for rank, key in enumerate(keys):
        if key != keys[0]:
            problem = "has another base or other examples than process 0"
            raise UserError(f"process {rank} of {processes.world}", problem, "give all of them the same files")
    folder = next(iter(plans.values())).cache.directory
    probe = folder / f"{TEMPORARY}{secrets.token_hex(8)}"
    try:
        if processes.first:
            _reserve(plans)
            probe.touch()
        name, listed = json.loads(processes.exchange(json.dumps([probe.name, tasks]))[0])
        seen = processes.exchange("seen" if _patiently((folder / name).exists) else "")
    finally:
        probe.unlink(missing_ok=True)
    if not all(seen):
        problem = f"process {seen.index('')} does not see what process 0 writes there"
        raise UserError(str(folder), problem, SHARE)
    return [Task(*task) for task in listed]


def _reserve(plans: Mapping[str, Plan]) -> None:
    size = sum(each.size * len(each.missing) // len(each.shards) for each in plans.values())
    next(iter(plans.values())).cache.reserve(size)


def _read_by_all(read: Callable[[int], None], processes: Processes) -> Callable[[int], None]:
    """Return a function that is told of tokens read here, and tells `read` of those read by all processes."""
    add, before = processes.adder(), 0

    def told(count: int) -> None:
        nonlocal before
        total = add(count)
        read(total - before)
        before = total

    return told


def _require_all(tasks: list[Task], plans: Mapping[str, Plan], splits: Mapping[str, Sequence[Encoded]]) -> None:
    """Refuse to go on without a shard that another process says it has written."""
    for label, number, _ in tasks:
        cache, shards = plans[label].cache, plans[label].shards
        if not _patiently(partial(cache.has, number, rows_of(splits[label], shards[number]))):
            raise UserError(str(cache.path(number)), "another process wrote it, but it is not here", SHARE)


def _patiently(there: Callable[[], bool]) -> bool:
    """Look until something is there, as long as a shared folder may hide it."""
    deadline = time.monotonic() + PATIENCE
    while not (found := there()) and time.monotonic() < deadline:
        time.sleep(1.0)
    return found
