"""Tools that misuse processes, signals and the socket to their parent; importable, for a fresh interpreter."""

from __future__ import annotations

import builtins
import json
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

from toolken.tools.tool import tool


def note_and_sleep(place: str) -> None:
    """Leave one's number in a folder, and stay."""
    Path(place, str(os.getpid())).touch()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1000)
    os._exit(0)


def detach(place: str) -> None:
    """Start a process as services do: two forks and a session of its own."""
    first = os.fork()
    if first == 0:
        os.setsid()
        if os.fork() == 0:
            note_and_sleep(place)
        os._exit(0)
    os.waitpid(first, 0)


def wait_for(place: str, count: int) -> None:
    while len(os.listdir(place)) < count:
        time.sleep(0.005)


@tool
def leaves_a_service(place: str) -> str:
    detach(place)
    wait_for(place, 1)
    return "left"


@tool
def leaves_a_service_and_hangs(place: str) -> None:
    detach(place)
    wait_for(place, 1)
    while True:
        pass


@tool
def forks_and_forks(place: str) -> None:
    """A fork bomb of 81 processes, each in a session of its own."""
    for _ in range(4):
        for _ in range(2):
            if os.fork() == 0:
                os.setsid()
                break
    note_and_sleep(place)


@tool
def forks_and_answers(place: str) -> str:
    for _ in range(20):
        if os.fork() == 0:
            note_and_sleep(place)
    wait_for(place, 20)
    return "forked"


@tool
def many_threads(place: str) -> str:
    for _ in range(50):
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    return place


@tool
def stops_itself(place: str) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


@tool
def terminates_itself(place: str) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)


@tool
def aborts(place: str) -> None:
    os.abort()


@tool
def never_gets_through(place: str) -> str:
    try:
        return "through"
    finally:
        while True:
            pass


def write_to_parent(text: str) -> None:
    for descriptor in range(3, 40):
        try:
            os.write(descriptor, text.encode())
        except OSError:
            pass


def forged(**fields: object) -> None:
    """Answer in the worker's place, for whichever request this is, and leave."""
    for number in range(60):
        write_to_parent(json.dumps({"id": number, "status": "ok", "detail": "", "result": 1, **fields}) + "\n")
    os._exit(0)


@tool
def writes_noise(place: str) -> None:
    write_to_parent("\x00\xff garbage\n" * 100)


@tool
def writes_half_a_line(place: str) -> None:
    write_to_parent('{"id": ')
    time.sleep(1000)


@tool
def writes_without_end(place: str) -> None:
    while True:
        write_to_parent("x" * 4096)


@tool
def writes_slowly(place: str) -> None:
    while True:
        write_to_parent(" ")
        time.sleep(0.01)


@tool
def writes_brackets(place: str) -> None:
    write_to_parent("[" * 60_000 + "\n")
    time.sleep(1000)


@tool
def spoils_the_worker(place: str) -> str:
    json.dumps = lambda *_, **__: "[" * 10  # type: ignore[assignment]
    return "spoiled"


@tool
def takes_builtins_away(place: str) -> str:
    builtins.isinstance = None  # type: ignore[assignment]
    return "gone"


@tool
def clears_modules(place: str) -> str:
    sys.modules.clear()
    return "cleared"


@tool
def takes_descriptors_away(place: str) -> str:
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    return "none left"


@tool
def leaves_its_folder(place: str) -> str:
    folder = Path(place, "gone")
    folder.mkdir()
    os.chdir(folder)
    folder.rmdir()
    return "nowhere"
