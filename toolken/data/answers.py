"""The final answer in a generated text: what announces it, and the value that follows.

The last match of the pattern counts, and the first value after it. A value is given as a plain decimal or an exact
fraction, whatever notation the model chose; where a person could read two values, or none, there is none. Text is
only ever read, never evaluated. The pattern may come with an artefact, so its search has a limit on time.
"""

from __future__ import annotations

import re
from fractions import Fraction

from toolken.data.values import read_value
from toolken.errors import UserError
from toolken.tools.patterns import compile_pattern

_TEXT_LIMIT = 200
_SECONDS = 1.0
_DECIMALS = 40


def extract_answer(text: str, pattern: str) -> str | None:
    """Return the final answer as text: `1234` for `$1,234.`, `55/8` for `6 7/8`, the words where it is no number.

    `read_value` of what is returned equals `read_value` of what was announced. None where nothing announces an answer,
    or nothing follows.

    Args:
        text: What the model wrote.
        pattern: Regular expression that announces the answer, such as `PromptSection.answer_pattern`.

    Raises:
        UserError: The pattern is not a regular expression.
    """
    tail = announced(text, pattern)
    if tail is None:
        return None
    value = read_value(tail)
    if value is not None:
        return format_value(value)
    lines = tail.strip().splitlines()
    words = re.split(r"[.!?](?=\s|$)", lines[0], maxsplit=1)[0] if lines else ""
    return words.strip(" \t:*`")[:_TEXT_LIMIT] or None


def announced(text: str, pattern: str) -> str | None:
    """Return what follows the last match of `pattern`, None without a match.

    Raises:
        UserError: The pattern is not a regular expression, or takes more than a second.
    """
    end: int | None = None
    try:
        for match in compile_pattern(pattern, "prompt.answer_pattern").finditer(text, timeout=_SECONDS):
            end = match.end()
    except (TimeoutError, MemoryError):
        problem = f"{pattern!r} took more than {_SECONDS:g} s, or too much memory, on {len(text)} characters"
        raise UserError("prompt.answer_pattern", problem, "write one without nested repetition") from None
    return None if end is None else text[end:]


def format_value(value: Fraction) -> str:
    """Return a whole number or a decimal where one is exact and short enough, else `numerator/denominator`."""
    if value.denominator == 1:
        return str(value.numerator)
    rest = value.denominator
    decimals = 0
    while rest % 2 == 0 or rest % 5 == 0:
        rest //= 10 if rest % 10 == 0 else 2 if rest % 2 == 0 else 5
        decimals += 1
    if rest != 1 or decimals > _DECIMALS:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**decimals // value.denominator).rjust(decimals + 1, "0")
    return f"{'-' * (value < 0)}{digits[:-decimals]}.{digits[-decimals:]}"
