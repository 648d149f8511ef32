"""Whether a text that follows an inserted number would extend it: `37` must not become `37.7`, `115` not `115000`.

The decision is taken on the decoded text behind the result, so that it holds over several tokens (`.` and then `7`)
and for tokens of several characters (`.7`, `00 apples`) alike. A model that is kept from `.75` tries `. 75`, so one
space behind the point changes nothing. Units and signs that start something new (`%`, ` 000`, `-5`, `/3`, `. Then 7`)
are no extensions.
"""

from __future__ import annotations

import re

# A separator that groups digits or starts decimals, then a digit; or an exponent.
SEPARATED = re.compile(r"(?:\. ?|[,'’_·٫٬\u00a0\u2009\u202f])\d")
EXPONENT = re.compile(r"\.?[eE][+\-−]?\d")
WINDOW = 4


def extends_number(result: str, tail: str) -> bool:
    """Return whether `tail`, the text right behind `result`, makes the result's number another number.

    Args:
        result: The inserted text; only one that ends in a digit can be extended.
        tail: What has been decoded behind it so far.
    """
    if not tail or not result[-1:].isnumeric():
        return False
    return tail[0].isnumeric() or bool(SEPARATED.match(tail) or EXPONENT.match(tail))


def may_extend(result: str, tail: str) -> bool:
    """Return whether a digit written behind `tail` would extend the result: no call may put its result there."""
    return len(tail) < WINDOW and extends_number(result, tail + "0")
