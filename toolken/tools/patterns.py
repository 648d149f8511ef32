"""Regular expressions that come from elsewhere: compiled where they are short and do not blow up.

Nested counts such as `(a{1000}){1000}` and recursion would take gigabytes, so they are refused. A search of what is
returned still needs a `timeout`.
"""

from __future__ import annotations

import functools
import math
import re

import regex

from toolken.errors import UserError

_LENGTH = 1000
_REPEATS = 10_000
_COUNT = re.compile(r"\{\s*([0-9]+)")
_RECURSION = re.compile(r"\(\?(?:R|[0-9]|&|P>)")


@functools.lru_cache(maxsize=32)
def compile_pattern(pattern: str, where: str) -> regex.Pattern[str]:
    """Compile a pattern.

    Raises:
        UserError: At `where` is no regular expression, or one that may take too much memory.
    """
    counts = [count[:9] for count in _COUNT.findall(pattern[:_LENGTH])]
    if len(pattern) > _LENGTH or math.prod(max(1, int(count)) for count in counts) > _REPEATS:
        problem = f"{pattern!r} is longer than {_LENGTH} characters or repeats more than {_REPEATS} times"
        raise UserError(where, problem, "write a short one")
    if _RECURSION.search(pattern):
        raise UserError(where, f"{pattern!r} refers to itself", "write the pattern out")
    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        problem = f"{pattern!r} is no regular expression ({error})"
        raise UserError(where, problem, "escape what is meant as it stands, as in `\\(`") from None
