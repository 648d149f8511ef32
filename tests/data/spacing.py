"""How well the rule that spaces an inserted result agrees with texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from toolken.data.encode import space_follows
from toolken.data.example import Example


class SpaceAgreement(NamedTuple):
    """How many calls have the space in front of their result that `space_follows` would give it."""

    agree: int
    calls: int

    @property
    def share(self) -> float:
        """Share of calls that agree; 1 without calls."""
        return self.agree / self.calls if self.calls else 1.0


def space_agreement(examples: Sequence[Example], *, ending: str = "\nA:") -> SpaceAgreement:
    """Compare the rule that spaces an inserted result with the texts themselves.

    Args:
        examples: Texts with calls.
        ending: What the prompt ends in; it stands before an answer that starts with its result.
    """
    agree = calls = 0
    for example in examples:
        for call in example.calls:
            before = ending + " " + example.answer[: call.start].lstrip()
            spaced = before.endswith(" ")
            agree += space_follows(before.removesuffix(" ")) == spaced
            calls += 1
    return SpaceAgreement(agree, calls)
