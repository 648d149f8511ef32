"""What happens while a question is answered, as values: terminal, evaluation and tests read one stream of these.

Invariant: the texts of `Text` and `Result` events, put together in order, are the answer's text. Nothing here imports
torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

from toolken.tools.tool import Outcome, Tool

StopReason = Literal["eos", "stop", "length", "context"]
"""An end-of-sequence token; a text of `prompt.stop`; `max_new_tokens`; the base's longest context."""


class Text(NamedTuple):
    """Words of the answer that the base wrote."""

    text: str


class Call(NamedTuple):
    """A tool was picked and its arguments are written; `arguments` is None where they could not be read."""

    tool: str
    raw_arguments: str
    arguments: Mapping[str, object] | None
    attempt: int


class Result(NamedTuple):
    """How a call ended: `text` is what went into the answer, a space in front included; empty where nothing did."""

    tool: str
    outcome: Outcome
    text: str
    start: int | None
    end: int | None


class Stop(NamedTuple):
    """The answer is complete."""

    reason: StopReason


Event = Text | Call | Result | Stop


def json_value(value: object) -> object:
    """Return a typed argument as a JSON value: a fraction becomes a whole number, the nearest float, or `p/q`."""
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return int(value)
        try:
            return float(value)
        except OverflowError:
            return str(value)
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    return value


class Execution(NamedTuple):
    """A call that waits for its outcome."""

    tool: Tool
    arguments: Mapping[str, object]


@dataclass(frozen=True)
class CallRecord:
    """One attempt at a call; `answer[start:end]` is the inserted result, both None where nothing was inserted."""

    tool: str
    arguments: Mapping[str, object] | None
    raw_arguments: str
    outcome: Outcome
    start: int | None = None
    end: int | None = None

    def as_dict(self) -> dict[str, object]:
        """Return the record as JSON values."""
        return {
            "tool": self.tool,
            "arguments": None if self.arguments is None else json_value(self.arguments),
            "raw_arguments": self.raw_arguments,
            "outcome": self.outcome.as_dict(),
            "start": self.start,
            "end": self.end,
        }
