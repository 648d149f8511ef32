"""Rules about which tools may follow which: a grammar over the calls of one answer.

A `ToolSet` may carry a rule. Decoding asks it before the first call and after each one that worked; what it forbids is
masked, so that an answer cannot break it. A rule sees the question and the calls alone: no scores, no tokens, no
model. A set without a rule leaves every tool and every word open at all times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Turn(NamedTuple):
    """What may come next in an answer.

    Attributes:
        names: Tools that may be called.
        words: Whether the base may write words.
        text: What is written first, by the rule itself.
        follows: A result as the tools in `names` give it. A tokenizer may glue a space to its start; then the space at
            the end of `text` is left to the result, as it is in training texts.
    """

    names: frozenset[str]
    words: bool = False
    text: str = ""
    follows: str = ""


Rule = Callable[[str, tuple[str, ...]], Turn | None]
"""The question and the names of the calls that worked, to what may come next; None: the answer is complete."""
