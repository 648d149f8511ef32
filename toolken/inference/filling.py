"""Argument mode: one attempt to write the arguments of one call, token by token.

Toolkens are masked by the request itself. Tokens of numeric tools are the best ones that can still become arguments;
the attempt ends at the bracket that matches, wherever in a token it stands. An end-of-sequence token, a new line or
too many tokens leave the arguments unfinished. What a question's contexts are is a protocol here: `Script`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from toolken.config import InferenceSection
from toolken.inference.backend import Candidate
from toolken.inference.text import Decoder
from toolken.tools.arguments import takes_text
from toolken.tools.constrain import may_continue
from toolken.tools.splitting import closing_bracket
from toolken.tools.tool import Tool


class Failure(NamedTuple):
    """A failed attempt, as the next one is shown it."""

    raw_arguments: str
    error: str


class Context(NamedTuple):
    """The ids of a context and how many of them, from the start, it shares with others."""

    prefix: tuple[int, ...]
    ids: list[int]


class Splice(NamedTuple):
    """An inserted result: the ids that are fed, and their text, with a space in front where the result has one."""

    ids: list[int]
    text: str


class Script(Protocol):
    """How a question looks to the base; the ids are those that training saw."""

    question: str
    start: Context
    lead: str
    stop: tuple[str, ...]

    def fill(self, tool: Tool, answer: Sequence[int], failures: Sequence[Failure]) -> Context:
        """Return the context of argument mode, up to and including `<name>(`."""

    def splice(self, before: str, result: str) -> Splice:
        """Return what puts a result behind the text; UserError if the tokenizer changes the result."""

    def write(self, text: str, follows: str) -> Splice:
        """Return what puts a rule's text behind the text; its last space is left to a result that brings it."""


class Filling:
    """The arguments of one call as they are written.

    Attributes:
        tool: The tool that was picked.
        row: Its toolken.
        raw: The argument text so far, without brackets.
        closed: The matching bracket is reached.
        problem: Why the attempt ended without it; empty while it goes on.
    """

    def __init__(self, tool: Tool, row: int, *, context: Context, decode: Callable[[Sequence[int]], str]) -> None:
        self.tool = tool
        self.row = row
        self.raw = ""
        self.closed = False
        self.problem = ""
        self._context = context
        self._written: list[int] = []
        self._decoder = Decoder(decode, context.ids)

    @property
    def context(self) -> Context:
        """The whole context that the next token follows."""
        return Context(self._context.prefix, [*self._context.ids, *self._written])

    def choose(self, ranked: Iterator[Candidate], *, eos_ids: frozenset[int], config: InferenceSection) -> None:
        """Take the best candidate that can be part of the arguments."""
        constrained = config.constrain_arguments and self.tool.numeric
        for candidate in ranked:
            piece = "" if candidate.token in eos_ids else self._decoder.peek([candidate.token])
            if constrained and not (piece and may_continue(self.raw, piece, minimum=self.tool.arity[0])):
                continue
            self._take(candidate.token, ended=candidate.token in eos_ids)
            break
        else:
            self.problem = "no token can continue the arguments"
        if not self.closed and not self.problem and len(self._written) >= config.max_argument_tokens:
            self.problem = f"the arguments are longer than {config.max_argument_tokens} tokens"

    def _take(self, token: int, *, ended: bool) -> None:
        if ended:
            self.problem = "the text ends before the arguments do"
            return
        self._written.append(token)
        text = self.raw + self._decoder.push([token])
        end = closing_bracket(text, quotes=takes_text(self.tool))
        self.raw = text if end is None else text[:end]
        self.closed = end is not None
        if "\n" in self.raw:
            self.problem, self.closed = "the line ends before the arguments do", False
            self.raw = self.raw.partition("\n")[0]
