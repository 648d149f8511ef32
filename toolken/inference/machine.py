"""The mode machine of one question: what is ranked next, and what a picked token, toolken or outcome leads to.

Reasoning mode: words and toolkens. A picked toolken opens argument mode (its tool's demonstrations, toolkens masked);
written arguments wait in executing mode for an outcome. A tool without arguments has no argument mode: it runs at
once. A result is spliced into the text and reasoning goes on, as the rule of the tools allows; a failed call is asked
for again with its error, then its toolken is banned at this position and the next best token is taken. Pure Python: no
torch, no clock, no process.
"""

from __future__ import annotations

import enum
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from toolken.config import InferenceSection
from toolken.errors import ToolError, UserError
from toolken.inference.backend import Backend, Candidate, Request, noise_seed
from toolken.inference.events import Call, CallRecord, Event, Execution, Result, Stop, StopReason, Text, json_value
from toolken.inference.filling import Context, Failure, Filling, Script
from toolken.inference.text import AnswerText, Decoder
from toolken.inference.written import WrittenCalls
from toolken.tools.arguments import parse_arguments
from toolken.tools.results import format_result
from toolken.tools.rule import Rule
from toolken.tools.tool import Outcome, Tool

WRITTEN = -1
"""Row of a call that stands in the text in words."""


class Mode(enum.Enum):
    """What the machine waits for: candidates in the first two, an outcome in the third."""

    REASONING = "reasoning"
    ARGUMENTS = "arguments"
    EXECUTING = "executing"
    DONE = "done"


class Machine:
    """One question on its way to an answer.

    Args:
        script: The question's contexts.
        backend: Read for its facts and for `token_text`; the caller ranks.
        tools: Row -> tool, for those that may be called.
        config: Limits, sampling, result format.
        rule: Which tools may follow which.
        written: Finds calls that the base writes out in words, whose results follow their `=`; of this question alone.
        slot: The machine uses the slots `2 * slot` and `2 * slot + 1`.
    """

    def __init__(
        self,
        script: Script,
        backend: Backend,
        *,
        tools: Mapping[int, Tool],
        config: InferenceSection,
        rule: Rule | None = None,
        written: WrittenCalls | None = None,
        slot: int = 0,
    ) -> None:
        self.mode = Mode.REASONING
        self.calls: list[CallRecord] = []
        self.finish_reason: StopReason | None = None
        self.slots = (2 * slot, 2 * slot + 1)
        self._script, self._backend, self._tools, self._config = script, backend, tools, config
        self.answer = AnswerText(Decoder(backend.token_text, script.start.ids), stop=script.stop, lead=script.lead)
        self._events: list[Event] = []
        self._rule, self._rows, self._words = rule, frozenset(tools), True
        self._written = written
        self._banned: set[int] = set()
        self._begun = 0
        self._runs: Counter[str] = Counter()
        self._failures: list[Failure] = []
        self._filling: Filling | None = None
        self._arguments: Mapping[str, object] | None = None
        if self._too_long(script.start.ids):
            self._stop("context")
        else:
            self._take_turn()

    @property
    def prompt_tokens(self) -> int:
        """Tokens before the answer."""
        return len(self._script.start.ids)

    def request(self) -> Request:
        """Return what is to be ranked, in reasoning and argument mode."""
        if self._filling is not None:
            prefix, ids = self._filling.context
            return Request(self.slots[1], ids, prefix, frozenset(), self._noise())
        prefix, ids = self._script.start
        return Request(self.slots[0], [*ids, *self.answer.ids], prefix, self._toolkens(), self._noise())

    def execution(self) -> Execution:
        """Return the call to run, in executing mode."""
        if self._arguments is None:
            raise RuntimeError("no call is waiting")
        return Execution(self._in_call().tool, self._arguments)

    def take_events(self) -> list[Event]:
        """Return the events since the last time."""
        events, self._events = self._events, []
        return events

    def _toolkens(self) -> frozenset[int]:
        if self._begun >= self._config.max_calls or not self.answer.takes_result():
            return frozenset()
        # The same object from step to step: with very many tools a new set would cost more than the step.
        return self._rows - self._banned if self._banned else self._rows

    def _noise(self) -> int | None:
        """Seed this decision by the question and the place in it, so that company in the batch changes nothing."""
        if self._config.temperature == 0:
            return None
        call = (self._begun, len(self._failures), len(self._filling.context.ids)) if self._filling else ()
        return noise_seed(self._config.seed, self._script.question, len(self.answer.ids), call)

    def _too_long(self, ids: Sequence[int]) -> bool:
        limit = self._backend.max_length
        return limit is not None and len(ids) > limit

    def choose(self, ranked: Iterator[Candidate]) -> None:
        """Take the best candidate that the rules let through, for the request that was handed out."""
        if self._filling is None:
            self._choose_word_or_tool(ranked)
            return
        self._filling.choose(ranked, eos_ids=self._backend.eos_ids, config=self._config)
        if self._filling.closed or self._filling.problem:
            self._read_arguments(self._filling)
        elif self._too_long(self._filling.context.ids):
            self._refuse("the context has no room for the arguments", again=False)

    def finish_call(self, outcome: Outcome) -> None:
        """Take the outcome of the call that was waiting."""
        if not outcome.ok:
            self._fail(outcome)
            return
        try:
            if outcome.result is None:
                raise ToolError("the tool returned nothing")
            result = format_result(outcome.result, self._config.result_format)
            if not result:
                raise ToolError("the result is empty")
            splice = self._script.splice(self.answer.text, result)
        except (ToolError, UserError) as error:
            self._fail(Outcome("tool_error", str(error), outcome.transport, outcome.business, outcome.data))
            return
        self._say(self.answer.flush())
        text, start, end = self.answer.insert(splice.ids, splice.text, result)
        self._log(outcome, text, start=start, end=end)
        self._failures.clear()
        self._banned.clear()
        self._resume()
        self._check_length()
        if self.mode is Mode.REASONING:
            self._take_turn()

    # Reasoning mode

    def _take_turn(self) -> None:
        """Ask the rule what may come next, and write what it writes."""
        if self._rule is None:
            return
        turn = self._rule(self._script.question, tuple(call.tool for call in self.calls if call.outcome.ok))
        if turn is None:
            self._stop("stop")
            return
        self._words = turn.words
        self._rows = frozenset(row for row, tool in self._tools.items() if tool.name in turn.names)
        splice = self._script.write(turn.text, turn.follows)
        if splice.ids:
            self._say(self.answer.flush())
            self._say(self.answer.insert(splice.ids, splice.text, "")[0])
            self._check_length()

    def _choose_word_or_tool(self, ranked: Iterator[Candidate]) -> None:
        for candidate in ranked:
            if candidate.toolken >= 0:
                self._begun += 1
                self._failures.clear()
                self._fill(candidate.toolken)
                return
            if not self._words:
                continue
            if candidate.token in self._backend.eos_ids:
                self._stop("eos")
                return
            if self.answer.lets_through(candidate.token):
                self._write(candidate.token)
                return
        if self._words:
            raise RuntimeError("the backend ranked no word that may follow")
        self._stop("length")  # the rule wants a call, and there may be no more of them

    def _write(self, token: int) -> None:
        self._banned.clear()
        if self.answer.append(token):
            self._stop("stop")
            return
        self._say(self.answer.take())
        self._check_length()
        if self._written is not None and self.mode is Mode.REASONING:
            self._run_written(self._written)

    def _run_written(self, calls: WrittenCalls) -> None:
        call = calls.find(self.answer.text)
        if call is not None and self._begun < self._config.max_calls:
            self._begun += 1
            self._failures.clear()
            self._read(call.tool, WRITTEN, call.raw_arguments)

    def _check_length(self) -> None:
        if len(self.answer.ids) >= self._config.max_new_tokens:
            self._stop("length")
        elif self._too_long([*self._script.start.ids, *self.answer.ids]):
            self._stop("context")

    def _say(self, text: str) -> None:
        if text:
            self._events.append(Text(text))

    def _stop(self, reason: StopReason) -> None:
        self._say(self.answer.take(final=True) if reason == "stop" else self.answer.flush())
        self.mode, self.finish_reason = Mode.DONE, reason
        self._events.append(Stop(reason))

    # Argument mode

    def _fill(self, row: int) -> None:
        tool = self._tools[row]
        if not tool.order:
            self._read(tool, row, "")
            return
        context = self._script.fill(tool, self.answer.ids, self._failures)
        self._filling = Filling(tool, row, context=context, decode=self._backend.token_text)
        self._arguments = None
        self.mode = Mode.ARGUMENTS
        if self._too_long(context.ids):
            self._refuse("the context has no room for the arguments", again=False)

    def _read(self, tool: Tool, row: int, raw: str) -> None:
        """Take an argument text that is there without an argument mode."""
        self._filling = Filling(tool, row, context=Context((), []), decode=self._backend.token_text)
        self._filling.raw = raw
        self._read_arguments(self._filling)

    def _read_arguments(self, filling: Filling) -> None:
        """Parse what was written and let it run, unless the same call ran too often."""
        try:
            if filling.problem:
                raise ToolError(filling.problem)
            self._arguments = parse_arguments(f"({filling.raw})", filling.tool)
        except ToolError as error:
            self._refuse(str(error))
            return
        key = f"{filling.tool.name} {json.dumps(json_value(self._arguments), sort_keys=True)}"
        if self._runs[key] >= self._config.max_repeats:
            self._refuse(f"ran {self._runs[key]} times with these arguments already", again=False)
            return
        self._announce()
        self._runs[key] += 1
        self.mode = Mode.EXECUTING

    def _refuse(self, problem: str, *, again: bool = True) -> None:
        self._announce()
        self._fail(Outcome("refused", problem), again=again)

    def _fail(self, outcome: Outcome, *, again: bool = True) -> None:
        """Log a failed attempt; ask again with the error shown, or ban the toolken here and take the next best."""
        filling = self._in_call()
        self._log(outcome, "")
        self._failures.append(Failure(filling.raw, outcome.detail))
        fillable = filling.row != WRITTEN and filling.tool.order
        if again and fillable and len(self._failures) <= self._config.retries:
            self._fill(filling.row)
            return
        self._banned.add(filling.row)
        self._resume()

    def _resume(self) -> None:
        self._filling, self._arguments, self.mode = None, None, Mode.REASONING

    def _in_call(self) -> Filling:
        if self._filling is None:
            raise RuntimeError("no call is under way")
        return self._filling

    def _announce(self) -> None:
        filling = self._in_call()
        self._events.append(Call(filling.tool.name, filling.raw, self._arguments, len(self._failures) + 1))

    def _log(self, outcome: Outcome, text: str, *, start: int | None = None, end: int | None = None) -> None:
        filling = self._in_call()
        self.calls.append(CallRecord(filling.tool.name, self._arguments, filling.raw, outcome, start, end))
        self._events.append(Result(filling.tool.name, outcome, text, start, end))
