"""Continuous batching: a bounded number of machines step together, a finished one makes room for the next.

Reasoning and argument contexts of all live machines are ranked in one call to the backend. The order of questions,
and who shares a step, changes nothing about what any of them does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import NamedTuple

from toolken.inference.backend import Backend
from toolken.inference.events import Event, Execution
from toolken.inference.machine import Machine, Mode
from toolken.tools.tool import Outcome


@dataclass(frozen=True)
class Usage:
    """What an answer took.

    Attributes:
        prompt_tokens: The prompt with the question.
        new_tokens: The answer, inserted results included.
        fed_tokens: Tokens that passed through the base for this question: with arguments, without shared prefixes.
        calls: Attempts at calls.
        seconds: From its start to its end, in the company of its batch.
    """

    prompt_tokens: int
    new_tokens: int
    fed_tokens: int
    calls: int
    seconds: float

    def as_dict(self) -> dict[str, int | float]:
        """Return the usage as JSON values."""
        return {**asdict(self), "seconds": round(self.seconds, 3)}


class Step(NamedTuple):
    """New events of one question, named by its place; `usage` is there once it is done."""

    place: int
    machine: Machine
    events: list[Event]
    usage: Usage | None


@dataclass
class _Live:
    index: int
    machine: Machine
    began: float


def drive(
    waiting: Iterator[tuple[int, Machine]],
    backend: Backend,
    *,
    execute: Callable[[Execution], Outcome],
    batch_size: int,
) -> Iterator[Step]:
    """Run machines to their ends, at most `batch_size` at a time, and yield what happens as it happens.

    Args:
        waiting: Index and machine of every question; taken one by one as room is made.
        backend: Ranks the contexts of all live machines together.
        execute: Runs a call and returns its outcome; does not raise for a failing tool.
        batch_size: Live machines at most.
    """
    live: list[_Live] = []
    try:
        while True:
            while len(live) < batch_size and (new := next(waiting, None)) is not None:
                live.append(_Live(*new, began=time.perf_counter()))
            if not live:
                return
            for one in live:
                if one.machine.mode is Mode.EXECUTING:
                    one.machine.finish_call(execute(one.machine.execution()))
            yield from _steps(live, backend)
            _rank(live, backend)
            yield from _steps(live, backend)
    finally:
        for one in live:
            _release(one.machine, backend)


def _rank(live: list[_Live], backend: Backend) -> None:
    ready = [one.machine for one in live if one.machine.mode in (Mode.REASONING, Mode.ARGUMENTS)]
    if ready:
        ranked = backend.rank([machine.request() for machine in ready])
        for machine, candidates in zip(ready, ranked, strict=True):
            machine.choose(candidates)


def _steps(live: list[_Live], backend: Backend) -> Iterator[Step]:
    """Yield what is new, and take finished machines out of `live`."""
    for one in list(live):
        done = one.machine.mode is Mode.DONE
        events = one.machine.take_events()
        if done:
            live.remove(one)
            usage = _usage(one, _release(one.machine, backend))
            yield Step(one.index, one.machine, events, usage)
        elif events:
            yield Step(one.index, one.machine, events, None)


def _release(machine: Machine, backend: Backend) -> int:
    return sum(backend.release(slot) for slot in machine.slots)


def _usage(one: _Live, fed: int) -> Usage:
    machine = one.machine
    return Usage(
        prompt_tokens=machine.prompt_tokens,
        new_tokens=len(machine.answer.ids),
        fed_tokens=fed,
        calls=len(machine.calls),
        seconds=time.perf_counter() - one.began,
    )
