"""The published decoding loop (Hao et al., NeurIPS 2023, arXiv 2305.11554, section 3.2), written anew to be timed.

One question at a time, greedy over words and toolkens together. A cache lives inside one stretch of generation; every
switch (into argument mode, back behind a result, and behind the one word that may not continue its digits) reads its
whole context again. A call that fails is taken back: its toolken is not considered at that place any more.

It shares the base, the rows, the prompts, the argument parser and the executor with the engine, and no code that
decides. What the engine adds is not here: grammar for arguments, a second try with the error shown, a limit on equal
calls, and numbers kept whole over more than one word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from toolken.config import InferenceSection
from toolken.data.answers import extract_answer
from toolken.data.encode import decode_piece, splice_ids
from toolken.data.prompts import Demonstrations, Prompt
from toolken.errors import ToolError
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.tools.arguments import parse_arguments, takes_text
from toolken.tools.executor import Executor
from toolken.tools.results import format_result
from toolken.tools.splitting import closing_bracket
from toolken.tools.tool import Tool


class ReferenceAnswer(NamedTuple):
    """What a question led to.

    Attributes:
        text: The answer.
        answer: The final value that the prompt's pattern announces, None if there is none.
        token_ids: Without the end-of-sequence token.
        calls: Toolkens that were picked; `failed`: those that were taken back.
        prefills: Contexts that were read from their start.
        fed_tokens: Tokens that passed through the base.
    """

    text: str
    answer: str | None
    token_ids: tuple[int, ...]
    calls: int
    failed: int
    prefills: int
    fed_tokens: int


class Generation:
    """One stretch of generation: a context that is read from its start, and a cache that lives until it ends."""

    def __init__(self, base: BaseLM, context: Sequence[int]) -> None:
        self.length = 0
        self._base, self._cache = base, base.new_cache()
        self.hidden = self.feed(context)

    def feed(self, ids: Sequence[int]) -> Tensor:
        """Append ids and return the head input behind the last of them (1, d)."""
        past, self.length = self.length, self.length + len(ids)
        self.hidden = self._base.hidden(
            torch.tensor([list(ids)]),
            mask=torch.ones((1, self.length), dtype=torch.long),
            positions=torch.arange(past, self.length)[None],
            cache=self._cache,
        )[:, -1]
        return self.hidden


@dataclass
class _State:
    """A question on its way: the context before the answer, the answer so far, and what it took."""

    question: str
    start: list[int]
    ids: list[int] = field(default_factory=list)
    calls: int = 0
    failed: int = 0
    prefills: int = 0
    fed: int = 0


class ReferenceDecoder:
    """Answers one question after the other.

    Args:
        base: The frozen base.
        head: Its toolkens.
        tools: Row -> tool, for those that may be called.
        demonstrations: By the name of the tool.
        prompt: The reasoning prompt.
        config: Limits, the shift of the bias and the format of results; decoding is greedy whatever it says.
        executor: Runs the calls.
    """

    def __init__(
        self,
        base: BaseLM,
        head: ToolkenHead,
        *,
        tools: Mapping[int, Tool],
        demonstrations: Mapping[str, Demonstrations],
        prompt: Prompt,
        config: InferenceSection,
        executor: Executor,
    ) -> None:
        self._base, self._head, self._tools = base, head, tools
        self._demonstrations, self._prompt = demonstrations, prompt
        self._config, self._executor = config, executor

    def answer(self, question: str) -> ReferenceAnswer:
        """Answer a question to its end."""
        words, state = self._base.tokenizer, self._question(question)
        refused: set[int] = set()
        while (row := self._reason(state, refused)) is not None:
            state.calls += 1
            result = self._call(state, self._tools[row])
            if result is None:
                state.failed += 1
                refused.add(row)
                continue
            refused.clear()
            state.ids += splice_ids(words, self._prompt.after + self._text(state), result)
            if self._ended(state) or not self._word_behind(state, result):
                break
        text = self._text(state)
        at = min((at for stop in self._prompt.stop if stop and (at := text.find(stop)) >= 0), default=len(text))
        visible = text[:at].removeprefix(self._prompt.lead)
        found = extract_answer(visible, self._prompt.answer_pattern)
        counts = (state.calls, state.failed, state.prefills, state.fed)
        return ReferenceAnswer(visible, found, tuple(state.ids), *counts)

    def _question(self, question: str) -> _State:
        words = self._base.tokenizer
        return _State(question, [*self._prompt.prefix_ids(words), *self._prompt.question_ids(words, question)])

    def _reason(self, state: _State, refused: set[int]) -> int | None:
        """Write words until a toolken wins, whose row is returned, or the answer is complete.

        Rows that were taken back are out of the running for the first pick, which is the one that they failed at.
        """
        generation = self._read(state, [*state.start, *state.ids])
        open_rows = set(self._tools) - refused if state.calls < self._config.max_calls else set()
        while True:
            scores = self._scores(generation.hidden, open_rows)
            best = int(scores.argmax())
            if best >= self._base.vocab_size:
                return best - self._base.vocab_size
            if not self._write(state, best):
                return None
            self._feed(state, generation, best)
            open_rows = set(self._tools) if state.calls < self._config.max_calls else set()

    def _word_behind(self, state: _State, result: str) -> bool:
        """Write one word that is no digit behind a result, in a pass of its own; False if the answer is complete."""
        hidden = self._read(state, [*state.start, *state.ids]).hidden
        ranked = self._scores(hidden, set()).argsort(descending=True, stable=True).tolist()
        digits = result[-1:].isnumeric()
        return self._write(
            state, next(token for token in ranked if not (digits and self._piece(token)[:1].isnumeric()))
        )

    def _call(self, state: _State, tool: Tool) -> str | None:
        """Fill the arguments of a call, run it, and return its result as text; None where anything fails."""
        words = self._base.tokenizer
        context = self._demonstrations[tool.name].context_ids(words, state.question, state.ids, tool.name)
        generation = self._read(state, context)
        written: list[int] = []
        while len(written) < self._config.max_argument_tokens:
            token = int(self._scores(generation.hidden, set()).argmax())
            if token in self._base.eos_ids:
                return None
            written.append(token)
            raw = decode_piece(words, written)
            end = closing_bracket(raw, quotes=takes_text(tool))
            if "\n" in raw[:end]:
                return None
            if end is not None:
                return self._run(tool, raw[:end])
            self._feed(state, generation, token)
        return None

    def _run(self, tool: Tool, raw: str) -> str | None:
        try:
            outcome = self._executor.run(tool, parse_arguments(f"({raw})", tool))
            return format_result(outcome.result, self._config.result_format) or None if outcome.ok else None
        except ToolError:
            return None

    def _read(self, state: _State, context: Sequence[int]) -> Generation:
        """Read a context from its start."""
        state.prefills += 1
        state.fed += len(context)
        return Generation(self._base, context)

    def _feed(self, state: _State, generation: Generation, token: int) -> None:
        state.fed += 1
        generation.feed([token])

    def _scores(self, hidden: Tensor, rows: set[int]) -> Tensor:
        """Return the logits of all words and all toolkens (V + K,), those of other rows at minus infinity."""
        with torch.no_grad():
            toolkens = (self._head.logits(hidden, self._base) + self._config.bias)[0]
        closed = [row for row in range(len(toolkens)) if row not in rows]
        toolkens[closed] = -torch.inf
        words = self._base.word_logits(hidden)[0]
        return torch.cat([words, toolkens.to(words.device)])

    def _write(self, state: _State, token: int) -> bool:
        """Append a word; False if it ends the answer."""
        if token in self._base.eos_ids:
            return False
        state.ids.append(token)
        return not self._ended(state)

    def _ended(self, state: _State) -> bool:
        text = self._text(state)
        length = len(state.start) + len(state.ids)
        full = self._base.max_length is not None and length > self._base.max_length
        return full or len(state.ids) >= self._config.max_new_tokens or any(s and s in text for s in self._prompt.stop)

    def _text(self, state: _State) -> str:
        return decode_piece(self._base.tokenizer, state.ids)

    def _piece(self, token: int) -> str:
        return decode_piece(self._base.tokenizer, [token])
