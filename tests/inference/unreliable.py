"""A tool that fails in every way it can, by its argument alone; importable, so that it runs in a fresh interpreter."""

from __future__ import annotations

import os
import time
import zlib

from toolken.errors import ToolError
from toolken.tools.tool import tool

WAYS = 16


@tool
def moody(a: float) -> float:
    """Work, most of the time."""
    way = zlib.crc32(repr(float(a)).encode()) % WAYS
    if way == 1:
        raise ToolError("not today")
    if way == 2:
        raise ValueError("a bug of the tool")
    if way == 3:
        os._exit(3)
    if way == 4:
        time.sleep(600)
    return a + 0.5
