"""Tools that return or raise objects which misbehave when they are looked at."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from toolken.tools.tool import Outcome, tool


def boom(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError("looked at")


def loop(*_: object, **__: object) -> NoReturn:
    while True:
        pass


class Trap:
    """Raises at every look."""

    __repr__ = __str__ = __eq__ = __hash__ = __bool__ = __len__ = __iter__ = __reduce__ = boom  # type: ignore[assignment]
    __index__ = __float__ = __getattr__ = boom

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        boom()


class Maze:
    """Never comes back from a look."""

    __index__ = __float__ = __str__ = __repr__ = __eq__ = loop  # type: ignore[assignment]


class Text(str):
    """A text that claims to be empty."""

    __len__ = lambda self: 0  # noqa: E731
    encode = lambda self, *_: self  # type: ignore[assignment, override]  # noqa: E731
    decode = lambda self: Trap()  # noqa: E731
    split = lambda self, *_: [Trap()]  # type: ignore[assignment, override]  # noqa: E731


class Whole(int):
    """A number that claims to be short."""

    bit_length = lambda self: 1  # type: ignore[assignment, override]  # noqa: E731


class Real(float):
    __float__ = lambda self: float("nan")  # type: ignore[assignment, return-value]  # noqa: E731


class Endless(Mapping[str, int]):
    __getitem__ = lambda self, key: 1  # type: ignore[assignment]  # noqa: E731
    __len__ = lambda self: 1  # noqa: E731

    def __iter__(self) -> Iterator[str]:
        while True:
            yield ""

    def items(self) -> Any:
        while True:
            yield "", 0


class Unspeakable(Exception):
    __str__ = __repr__ = loop


class Bare(BaseException):
    pass


class Agreeable(str):
    """Equal to everything."""

    __eq__ = lambda self, other: True  # type: ignore[assignment]  # noqa: E731
    __hash__ = str.__hash__


def returning(name: str, value: object) -> Any:
    """Make a tool of a returned object; a fork runs it."""

    @tool(name=name)
    def made() -> str:
        return value  # type: ignore[return-value]

    return made


def raising(name: str, error: BaseException) -> Any:
    @tool(name=name)
    def made() -> str:
        raise error

    return made


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


@tool
def recurses() -> int:
    return recurses()


@tool
def recurses_without_limit() -> object:
    sys.setrecursionlimit(10**9)

    def down(x: object) -> object:
        return [down(repr([x])) for _ in range(2)]

    return down(1)


@tool
def takes_gigabytes() -> int:
    return len(bytearray(2**40))


RETURNED = [
    returning("trap", Trap()),
    returning("trap_in_list", [Trap()]),
    returning("trap_as_key", {Agreeable("a"): Trap()}),
    returning("text", Text("x" * 10**6)),
    returning("whole", Whole(1 << 10**6)),
    returning("real", Real(1.0)),
    returning("generator", (x for x in iter(int, 1))),
    returning("module", sys),
    returning("kind", Trap),
    returning("outcome_status", Outcome(Agreeable("owned"))),  # type: ignore[arg-type]
    returning("outcome_detail", Outcome("ok", detail=Text("x"), result=1)),
    returning("outcome_result", Outcome("ok", result=Trap())),
    returning("surrogate", "\ud800"),
    returning("bytes", b"x"),
    returning("deep", nested(80)),
    raising("bare", Bare()),
    raising("closing", GeneratorExit()),
    raising("stopping", StopIteration(Trap())),
    raising("leaving", SystemExit(Trap())),
    raising("group", BaseExceptionGroup("g", [Bare(), KeyboardInterrupt()])),
    raising("wrong_refusal", UnicodeDecodeError("utf-8", b"x", 0, 1, "\ud800\n\x1b[2J")),
]
LOOPING = [
    returning("maze", Maze()),
    returning("endless", Endless()),
    raising("unspeakable", Unspeakable()),
]
