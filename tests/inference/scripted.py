"""A backend whose rankings a test writes down: tokens are any bytes, so machines run without a model."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from toolken.config import InferenceSection
from toolken.errors import UserError
from toolken.inference.backend import Candidate, Request
from toolken.inference.events import Event
from toolken.inference.filling import Context, Failure, Splice
from toolken.inference.machine import Machine, Mode
from toolken.inference.written import WrittenCalls
from toolken.tools.rule import Rule
from toolken.tools.tool import Outcome, Tool, tool
from toolken.tools.toolset import ToolSet

EOS = b"</s>"
Move = str | bytes | int  # a word token, or the row of a toolken


@tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


@tool
def look(name: str) -> str:
    """Look up a name."""
    return name


class ScriptedBackend:
    """Gives each request the next ranking of the script; what the script leaves out comes after."""

    def __init__(self, moves: Sequence[Move | list[Move]], *, max_length: int | None = None) -> None:
        self.moves = [move if isinstance(move, list) else [move] for move in moves]
        self.requests: list[Request] = []
        self.max_length = max_length
        self.released: list[int] = []
        self._tokens: list[bytes] = [EOS]

    @property
    def eos_ids(self) -> frozenset[int]:
        return frozenset({0})

    def id_of(self, token: str | bytes) -> int:
        raw = token.encode() if isinstance(token, str) else token
        if raw not in self._tokens:
            self._tokens.append(raw)
        return self._tokens.index(raw)

    def ids_of(self, text: str) -> list[int]:
        return [self.id_of(character) for character in text]

    def token_text(self, ids: Sequence[int]) -> str:
        return b"".join(self._tokens[token] for token in ids).decode("utf-8", errors="replace")

    def rank(self, requests: Sequence[Request]) -> list[Iterator[Candidate]]:
        self.requests += requests
        return [self._candidates(request, self.moves.pop(0) if self.moves else [EOS]) for request in requests]

    def _candidates(self, request: Request, ranking: list[Move]) -> Iterator[Candidate]:
        for move in [*ranking, *"~)123", EOS]:
            if isinstance(move, int):
                if move in request.toolkens:
                    yield Candidate(-1, move, 0.0)
            else:
                yield Candidate(self.id_of(move), -1, 0.0)

    def release(self, slot: int) -> int:
        self.released.append(slot)
        return 0


class PlainScript:
    """`Q: question` and `A:` around an answer, demonstrations of one line; results without a space of their own."""

    def __init__(
        self, backend: ScriptedBackend, question: str = "q", *, stop: Sequence[str] = (), lead: str = " "
    ) -> None:
        self.question = question
        prefix = tuple(backend.ids_of("Q: "))
        self.start = Context(prefix, [*prefix, *backend.ids_of(f"{question}\nA:")])
        self.lead = lead
        self.stop = tuple(stop)
        self.unwritable: set[str] = set()
        self._backend = backend

    def fill(self, tool: Tool, answer: Sequence[int], failures: Sequence[Failure]) -> Context:
        prefix = tuple(self._backend.ids_of(f"demo {tool.name}\nQ: "))
        ids = [
            *prefix,
            *self._backend.ids_of(f"{self.question}\nA:"),
            *answer,
            *self._backend.ids_of(f"<{tool.name}>("),
        ]
        for failure in failures:
            ids += self._backend.ids_of(f"{failure.raw_arguments}) failed: {failure.error}. Corrected: <{tool.name}>(")
        return Context(prefix, ids)

    def splice(self, before: str, result: str) -> Splice:
        if result in self.unwritable:
            raise UserError("result", "the tokenizer cannot write it")
        return Splice(self._backend.ids_of(result), result)

    def write(self, text: str, follows: str) -> Splice:
        return Splice(self._backend.ids_of(text), text)


def play(
    moves: Sequence[Move | list[Move]],
    *,
    tools: dict[int, Tool] | None = None,
    outcomes: Sequence[Outcome] = (),
    config: InferenceSection | None = None,
    stop: Sequence[str] = (),
    max_length: int | None = None,
    rule: Rule | None = None,
    written: ToolSet | None = None,
) -> tuple[Machine, list[Event], ScriptedBackend]:
    """Run one machine to its end; calls run by Python's own addition where no outcomes are given."""
    backend = ScriptedBackend(moves, max_length=max_length)
    script = PlainScript(backend, stop=stop)
    known = {0: add, 1: look} if tools is None else tools
    calls = WrittenCalls(written) if written is not None else None
    machine = Machine(script, backend, tools=known, config=config or InferenceSection(), rule=rule, written=calls)
    events: list[Event] = []
    waiting = list(outcomes)
    while machine.mode is not Mode.DONE:
        if machine.mode is Mode.EXECUTING:
            execution = machine.execution()
            values = list(execution.arguments.values())
            result = sum(values, Fraction(0)) if execution.tool is add else (values or [execution.tool()])[0]
            machine.finish_call(waiting.pop(0) if waiting else Outcome("ok", result=result))
        else:
            machine.choose(backend.rank([machine.request()])[0])
        events += machine.take_events()
    events += machine.take_events()
    return machine, events, backend
