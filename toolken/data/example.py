"""What training reads: text with calls at character spans.

Invariant: `answer[start:end]` of every call is the result that the tool puts there; spans are sorted and do not
overlap. An `Example` that breaks this cannot be made. Character spans belong to no tokenizer: `align` turns them into
token positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from toolken.errors import UserError


class CallSpan(NamedTuple):
    """One call: `answer[start:end]` is the result, `arguments` the text between the brackets as the data has it."""

    start: int
    end: int
    tool: str
    arguments: str


@dataclass(frozen=True)
class Example:
    """A question and its answer, with the calls of the answer.

    Attributes:
        question: What the prompt's placeholder is filled with; empty for plain text.
        answer: The text that is supervised, results in place, without call syntax.
        calls: Calls at character spans of `answer`, in order.
        origin: `file:line` (or another place) that messages name.
    """

    question: str
    answer: str
    calls: tuple[CallSpan, ...] = ()
    origin: str = ""

    def __post_init__(self) -> None:
        end = 0
        for call in self.calls:
            if not 0 <= call.start < call.end <= len(self.answer):
                raise UserError(
                    self.origin,
                    f"the span {call.start}:{call.end} of <{call.tool}> lies outside the text of "
                    f"{len(self.answer)} characters",
                    "spans count characters of the answer, end exclusive",
                )
            if call.start < end:
                raise UserError(
                    self.origin,
                    f"the span {call.start}:{call.end} of <{call.tool}> overlaps the one before or is out of order",
                    "sort the calls by start and keep them apart",
                )
            end = call.end

    def result(self, call: CallSpan) -> str:
        """Return the text that the call's result covers."""
        return self.answer[call.start : call.end]
