"""Files read and digested, replaced all or nothing, and strict JSON; only ordinary files are ever replaced.

A file that this module writes is either the old one or the complete new one, whatever kills the process: the bytes go
to a temporary name in the same folder, are flushed to the disk, and are then renamed. JSON written here never holds
`NaN` or `Infinity`, which other readers refuse.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from toolken.errors import UserError

TEMPORARY = ".partial-"
"""Prefix of half-written files; what a killed process leaves behind may be deleted."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a disk, a quota or a limit on file sizes says when there is no room."""
ELSEWHERE = "free some space, or name a place on another disk"


def check_output(path: Path) -> None:
    """Refuse, before any work is done for it, a file that could not be written at the end; its folder is made.

    Raises:
        UserError: It is a folder or a device, or its folder cannot be made or written to.
    """
    try:
        _refuse_special(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.NamedTemporaryFile(prefix=f"{path.name}.", suffix=TEMPORARY, dir=path.parent).close()
    except OSError as error:
        fix = "name a file in a folder that you can write to"
        raise UserError(str(path), f"cannot be written: {error.strerror}", fix) from error


def check_input(path: Path, limit: int) -> None:
    """Refuse a device or a pipe, which could be read without end, and a file larger than what belongs there.

    Raises:
        UserError: It is there and no ordinary file, or holds more than `limit` bytes.
    """
    try:
        status = path.stat()
    except OSError:
        return  # reading it says why
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise UserError(str(path), "it is no ordinary file", "copy the file itself there")
    if stat.S_ISREG(status.st_mode) and status.st_size > limit:
        problem = f"{status.st_size:,} bytes are more than the {limit:,} that belong there"
        raise UserError(str(path), problem, "copy it again, or make it again")


def _refuse_special(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))


def is_unicode(value: object) -> bool:
    """Return whether every text in a JSON value can be written: half a surrogate pair cannot."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def read_text(path: Path, fix: str) -> str:
    """Read a UTF-8 file; a byte order mark is dropped.

    Raises:
        UserError: It is no file, cannot be read (then with this fix), or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise UserError(f"{path}:{line}", f"not UTF-8 text (byte {error.start})", "save the file as UTF-8") from error
    except OSError as error:
        raise UserError(str(path), f"cannot be read ({error.strerror})", fix) from error


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


@contextmanager
def room_for(path: Path, size: int | None = None, *, fix: str = ELSEWHERE) -> Iterator[None]:
    """Say in one line which place has no room left, when that happens in the block.

    Args:
        path: The file that is written.
        size: Bytes that it takes, where that is known.
        fix: What to do about it.

    Raises:
        UserError: The disk or a quota is full.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        need = f"{size:,} bytes are to be written" if size is not None else "more is to be written"
        free = shutil.disk_usage(path.parent).free
        raise UserError(str(path), f"{error.strerror}: {need}, {free:,} are free", fix) from error


def write_bytes(path: Path, content: bytes, *, fix: str = ELSEWHERE) -> None:
    """Replace `path` by `content`, all or nothing.

    Raises:
        UserError: There is no room for it; `fix` is what the message advises.
        OSError: It cannot be written for another reason.
    """
    with room_for(path, len(content), fix=fix):
        _replace(path, content)


def _replace(path: Path, content: bytes) -> None:
    _refuse_special(path)
    descriptor, name = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        # mkstemp makes files private; results are meant to be shared as the user's umask says.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def sweep(folder: Path) -> None:
    """Delete what killed processes left half-written in a folder that nobody else writes to now."""
    for left in folder.glob(f"{TEMPORARY}*"):
        left.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Replace `path` by UTF-8 `text`, all or nothing."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: object) -> None:
    """Replace `path` by indented JSON of `value` (see `jsonable`)."""
    write_text(path, json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def jsonable(value: object) -> object:
    """Return `value` as plain JSON types.

    Numbers without a JSON form become null, mappings and sequences are copied, anything with `as_dict()` (rates,
    detections, outcomes) or `item()` (scalars of torch and numpy) is unpacked, and whatever is left is shown as text.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    for unpack in ("as_dict", "item"):
        method = getattr(value, unpack, None)
        if callable(method):
            return jsonable(method())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [jsonable(item) for item in value]
    return str(value)


def user_path(name: str | os.PathLike[str]) -> Path:
    """Return a path as a shell would read it; `~` of a user who is not there stays text, and so names no file."""
    return Path(os.path.expanduser(name))
