"""One process at a time: a lock file that the operating system releases with its holder, however that one dies.

The file says who holds it (process, host, since when), so that whoever is refused knows whom to wait for. It is removed
by its holder; one that a killed process left behind locks nothing and is taken over. Not covered: file systems whose
locks do not reach other hosts.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from toolken.errors import UserError
from toolken.files import room_for


class Lock:
    """A held lock file; `release` it, or use it in a `with` statement.

    Args:
        path: The lock file; its folder must exist.
        where: What it protects, as the message names it.
        fix: What whoever is refused can do besides waiting.

    Raises:
        UserError: Another process (or another part of this one) holds it, or the disk is full.
        OSError: The file cannot be made for another reason.
    """

    def __init__(self, path: Path, *, where: Path, fix: str) -> None:
        self.path = path
        with room_for(path):
            self._descriptor = self._open(where, fix)
        try:
            with room_for(path):
                holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
                os.truncate(self._descriptor, 0)
                os.pwrite(self._descriptor, json.dumps(holder).encode() + b"\n", 0)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Remove the file and let go; a second time does nothing."""
        if self._descriptor < 0:
            return
        # Removed while it is held, so that nobody's file but our own can go.
        with suppress(OSError):
            self.path.unlink()
        os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _open(self, where: Path, fix: str) -> int:
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A holder that let go in between has removed the file that was opened: then there is a new one.
                if os.path.samestat(os.fstat(descriptor), os.stat(self.path)):
                    return descriptor
            except BlockingIOError:
                known = _holder(descriptor)
                os.close(descriptor)
                raise UserError(str(where), f"{known} is at work on it", f"wait for it, stop it, or {fix}") from None
            except FileNotFoundError:
                pass
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)


def _holder(descriptor: int) -> str:
    try:
        found = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {found['pid']} on {found['host']}, since {found['since']},"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"  # it has just begun, and not said who it is
