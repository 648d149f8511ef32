"""Questions in, answers out: a base, its toolkens and the user's tools behind one object.

`answer` returns when all are done, `stream` and `events` yield what happens as it happens. The engine decides nothing
about decoding (the machine does) and knows no architecture (the backend does); it binds tools, encodes questions, and
owns the worker that runs calls.
"""

from __future__ import annotations

import itertools
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

from toolken.config import InferenceSection, PromptSection
from toolken.data.answers import extract_answer
from toolken.data.demonstrations import show_examples
from toolken.data.frame import split_frame
from toolken.data.prompts import Demonstrations, Prompt, load_prompt
from toolken.errors import UserError
from toolken.files import is_unicode
from toolken.inference.backend import Backend
from toolken.inference.binding import bind
from toolken.inference.events import CallRecord, Event, Execution, StopReason
from toolken.inference.hf import HFBackend
from toolken.inference.machine import Machine
from toolken.inference.schedule import Step, Usage, drive
from toolken.inference.script import QuestionScript
from toolken.inference.written import WrittenCalls
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.model.memory import out_of_memory
from toolken.tools.executor import Executor
from toolken.tools.tool import Outcome, Tool
from toolken.tools.toolset import ToolSet

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """What a question led to.

    Attributes:
        question: As it was asked.
        text: The answer; `text[start:end]` of a call that worked is its result.
        answer: The final value that `prompt.answer_pattern` announces, None if there is none.
        calls: Every attempt at a call, in order.
        finish_reason: `eos`, `stop` (a text of `prompt.stop`), `length` (`max_new_tokens`) or `context` (full).
        usage: Tokens, calls and seconds.
        token_ids: The answer's ids, without the end-of-sequence token.
    """

    question: str
    text: str
    answer: str | None
    calls: tuple[CallRecord, ...]
    finish_reason: StopReason
    usage: Usage
    token_ids: tuple[int, ...]

    def as_dict(self, id: str | int | None = None) -> dict[str, object]:
        """Return one line of the output file as JSON values."""
        return {
            "id": id,
            "question": self.question,
            "text": self.text,
            "answer": self.answer,
            "calls": [call.as_dict() for call in self.calls],
            "finish_reason": self.finish_reason,
            "usage": self.usage.as_dict(),
        }


class Engine:
    """Answers questions with toolkens.

    Args:
        base: The frozen base.
        head: Its toolkens; None decodes words alone.
        tools: The user's own tools, and their rule; built-in ones bind by themselves.
        written: Tools that the base may call in words, as a prompt with worked calls `<name>(...)=` teaches it.
        prompt: The reasoning prompt, or a function from a question to its own; by default the one that the toolkens
            were trained in.
        config: Limits, sampling, choice of tools.
        notes: What whoever opens it has to say about it; kept in `notes` with the engine's own, and logged.

    Raises:
        UserError: A tool or a name in `allow` or `deny` that does not fit the artefact, or a prompt that leaves no
            room for a question.
    """

    def __init__(
        self,
        base: BaseLM,
        head: ToolkenHead | None = None,
        *,
        tools: ToolSet | None = None,
        written: ToolSet | None = None,
        prompt: Prompt | Callable[[str], Prompt] | None = None,
        config: InferenceSection | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.base = base
        self.config = config or InferenceSection()
        self.prompt_of = prompt if callable(prompt) else _always(_check_room(_choose_prompt(prompt, head, base), base))
        self._written = written
        records = head.info.tools if head is not None else []
        binding = bind(records, tools, allow=self.config.allow, deny=self.config.deny)
        self.notes = (*notes, *binding.notes, *_unused_settings(base))
        for note in self.notes:
            LOG.warning(note)
        self.tools: dict[int, Tool] = binding.tools
        # Without a toolken that may be picked there is nothing to rule.
        self._rule = tools.rule if tools is not None and binding.tools else None
        self.demonstrations = {
            tool.name: _demonstrations(records[row].demonstrations, tool) for row, tool in binding.tools.items()
        }
        try:
            self.backend: Backend = HFBackend(
                base, head, bias=self.config.bias, temperature=self.config.temperature, top_p=self.config.top_p
            )
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            raise _too_much(1) from error
        self._slots = itertools.count()
        self._executor = Executor(
            timeout=self.config.timeout, memory_mb=self.config.memory_mb, max_output=self.config.max_output
        )

    def answer(self, questions: Sequence[str]) -> list[Answer]:
        """Answer all questions, batched; the answers come in the order of the questions."""
        answers: dict[int, Answer] = {}
        for index, answer in self.completed(questions):
            answers[index] = answer
        return [answers[index] for index in range(len(questions))]

    def completed(
        self, questions: Sequence[str], *, watch: Callable[[Event], None] | None = None
    ) -> Iterator[tuple[int, Answer]]:
        """Yield index and answer of each question as soon as it is complete; `watch` sees every event before."""
        for step in self._run(questions):
            if watch is not None:
                for event in step.events:
                    watch(event)
            if step.usage is not None:
                yield step.place, self._answer(questions[step.place], step.machine, step.usage)

    def events(self, questions: Sequence[str]) -> Iterator[tuple[int, Event]]:
        """Yield the index of a question and what happened to it, as it happens."""
        for step in self._run(questions):
            for event in step.events:
                yield step.place, event

    def stream(self, question: str) -> Iterator[Event]:
        """Yield the events of one question."""
        for _, event in self.events([question]):
            yield event

    def close(self) -> None:
        """End the worker process that runs calls; a later call starts another."""
        self._executor.close()

    def __enter__(self) -> Engine:
        """Return the engine."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the engine."""
        self.close()

    def _run(self, questions: Sequence[str]) -> Iterator[Step]:
        _check_questions(questions)
        machines = ((index, self._machine(question)) for index, question in enumerate(questions))
        try:
            yield from drive(machines, self.backend, execute=self._execute, batch_size=self.config.batch_size)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            raise _too_much(min(len(questions), self.config.batch_size)) from error

    def _machine(self, question: str) -> Machine:
        script = QuestionScript(
            question, prompt=self.prompt_of(question), demonstrations=self.demonstrations, tokenizer=self.base.tokenizer
        )
        written = WrittenCalls(self._written) if self._written is not None else None
        return Machine(
            script,
            self.backend,
            tools=self.tools,
            config=self.config,
            rule=self._rule,
            written=written,
            slot=next(self._slots),
        )

    def _answer(self, question: str, machine: Machine, usage: Usage) -> Answer:
        if machine.finish_reason is None:
            raise RuntimeError("the machine has not finished")
        text = machine.answer.visible
        return Answer(
            question=question,
            text=text,
            answer=extract_answer(text, self.prompt_of(question).answer_pattern),
            calls=tuple(machine.calls),
            finish_reason=machine.finish_reason,
            usage=usage,
            token_ids=tuple(machine.answer.ids),
        )

    def _execute(self, execution: Execution) -> Outcome:
        return self._executor.run(execution.tool, execution.arguments)


def _check_questions(questions: Sequence[str]) -> None:
    """Refuse, before any question is answered, what cannot be one."""
    if isinstance(questions, str):
        raise UserError("questions", "a single text was given", "pass a list of questions")
    for index, question in enumerate(questions):
        if not isinstance(question, str):
            raise UserError(f"question {index}", f"it is {type(question).__name__}, not text", "pass texts")
        if not is_unicode(question):
            raise UserError(f"question {index}", "it holds half of a surrogate pair", "write whole characters")


def _too_much(together: int) -> UserError:
    """Say which setting makes a pass smaller."""
    if together > 1:
        problem = f"out of memory while {together} questions were answered together"
        return UserError("inference.batch_size", problem, f"set it below {together}; finished answers are not lost")
    fix = "shorten the question or the prompt, or use a smaller base or base.dtype"
    return UserError("inference", "out of memory while a single question was answered", fix)


def _unused_settings(base: BaseLM) -> list[str]:
    """Return a note on settings by which `generate` of this base would change the logits; they are not applied here."""
    settings = base.model.generation_config
    neutral = {"repetition_penalty": 1.0, "no_repeat_ngram_size": 0, "num_beams": 1, "suppress_tokens": None}
    found = [name for name, value in neutral.items() if getattr(settings, name, None) not in (None, value)]
    return [f"the base's generation settings are not applied: {', '.join(found)}"] if found else []


def _always(prompt: Prompt) -> Callable[[str], Prompt]:
    return lambda question: prompt


def _choose_prompt(prompt: Prompt | None, head: ToolkenHead | None, base: BaseLM) -> Prompt:
    """Return the prompt to use; one that the toolkens were not trained in is a warning."""
    trained = head.info.prompt.prompt() if head is not None else None
    if prompt is None:
        return trained or load_prompt(PromptSection(), tokenizer=base.tokenizer)
    if trained is not None and trained.hash != prompt.hash:
        pair = f"{prompt.hash[:12]} is not the one that the toolkens were trained in, {trained.hash[:12]}"
        warnings.warn(f"the prompt {pair}: calls may be missed, or too many", stacklevel=3)
    return prompt


def _check_room(prompt: Prompt, base: BaseLM) -> Prompt:
    size = len(prompt.prefix_ids(base.tokenizer))
    if base.max_length is not None and size >= base.max_length:
        problem = f"it has {size} tokens before the question, and the context of `{base.name}` {base.max_length}"
        raise UserError("prompt", problem, "use a shorter prompt.template, or a base with a longer context")
    return prompt


def _demonstrations(text: str, tool: Tool) -> Demonstrations:
    """Return the artefact's demonstrations of a tool; without any, its name and description are shown."""
    shown = text or show_examples(tool, (), count=0)
    split_frame(shown, f"demonstrations of <{tool.name}>")
    return Demonstrations(shown)
