"""Tools that misbehave, importable so that they run in a fresh interpreter."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from fractions import Fraction

from toolken.errors import ToolError
from toolken.tools.tool import Outcome, tool
from toolken.tools.toolset import ToolSet

print("printing while the module is imported must not break anything")


class Nasty(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no message")


@tool
def echo(x: float) -> float:
    return x


@tool
def endless() -> None:
    while True:
        pass


@tool
def stubborn() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass


@tool
def prints_forever() -> None:
    while True:
        print("x" * 100)


@tool
def prints_and_swallows() -> None:
    while True:
        try:
            print("x" * 100)
        except Exception:
            pass


@tool
def writes_forever() -> None:
    while True:
        os.write(1, b"x" * 10000)


@tool
def dies() -> None:
    os._exit(3)


@tool
def segfaults() -> None:
    ctypes.string_at(0)


@tool
def exits() -> None:
    sys.exit(4)


@tool
def raises_nasty() -> None:
    raise Nasty


@tool
def interrupts() -> None:
    raise KeyboardInterrupt


@tool
def says_no() -> None:
    raise ToolError("not today")


@tool
def returns_huge() -> str:
    return "x" * 10**7


@tool
def returns_huge_number() -> int:
    return 1 << 10**6


@tool
def returns_object() -> object:
    return object()


@tool
def returns_nan() -> float:
    return float("nan")


@tool
def returns_self() -> list[object]:  # type: ignore[type-arg]
    loop: list[object] = []
    loop.append(loop)
    return loop


@tool
def eats_memory() -> int:
    kept = []
    while True:
        kept.append(bytearray(10**7))


@tool
def leaves_thread() -> str:
    threading.Thread(target=time.sleep, args=(1000,)).start()
    return "left"


@tool
def leaves_child() -> int:
    return subprocess.Popen(["sleep", "1000"]).pid


@tool
def closes_stdout() -> str:
    sys.stdout.close()
    os.close(1)
    return "closed"


@tool
def closes_everything() -> None:
    os.closerange(0, 1000)


@tool
def reads_stdin() -> str:
    return input()


@tool
def process_number() -> int:
    return os.getpid()


@tool
def secret() -> str:
    return os.environ.get("TOOLKEN_TEST_SECRET", "none")


@tool
def talks() -> int:
    print("working on it")
    return 1


@tool
def knows_more() -> Outcome:
    return Outcome("ok", transport="200", business="found", data="complete", result=7)


@tool
def kinds(whole: int, decimal: float, exact: Fraction, names: list[str], flag: bool = False) -> str:
    return " ".join(type(value).__name__ for value in (whole, decimal, exact, names, flag))


TOOLS = ToolSet([echo, endless])
