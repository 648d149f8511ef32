"""Atomic writes and strict JSON.

A file that this module writes is either the old one or the complete new one, whatever kills the process: the bytes go
to a temporary name in the same folder, are flushed to the disk, and are then renamed. JSON written here never holds
`NaN` or `Infinity`, which other readers refuse.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

TEMPORARY = ".partial-"
"""Prefix of half-written files; what a killed process leaves behind may be deleted."""


def write_bytes(path: Path, content: bytes) -> None:
    """Replace `path` by `content`, all or nothing."""
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
