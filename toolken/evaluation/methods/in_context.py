"""Tools and worked calls as the text before a question: what the in-context methods show a base without toolkens.

Descriptions come first, `<gcd>(a, b, ...): ...`, then worked answers in the frame of the settings' prompt, their calls
written out as `<gcd>(12, 18)=6` at the places of their results. Invariant: the text takes no more tokens than it was
given, and says how much of what there is it shows. A worked answer is one block whose lines the row cannot add to,
whose calls the engine would find again, and in which nothing is read as a special token or ends an answer; a row that
cannot be shown so is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from toolken.data.align import concluded
from toolken.data.demonstrations import call_form
from toolken.data.encode import encode_piece
from toolken.data.example import CallSpan, Example
from toolken.data.frame import lead
from toolken.data.inline import cuts_number, write_inline
from toolken.data.prompts import Prompt, load_prompt
from toolken.errors import UserError
from toolken.evaluation.benchmarks.benchmark import Item
from toolken.evaluation.methods.method import Setting
from toolken.inference.written import WrittenCalls
from toolken.tools.tool import Tool
from toolken.tools.toolset import ToolSet

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

INSTRUCTION = "These tools help to answer. A call is written <name>(arguments)= and its result follows."

GAP = "\n\n"
CONTEXT = 8192
"""Tokens of a context where the base has no limit."""

RESERVED = 4
"""Worked answers that keep their room, up to half of it, where the descriptions of all tools would take it."""


class Worked(NamedTuple):
    """A worked answer as a block of text, and the tools that it calls."""

    text: str
    tools: tuple[str, ...]


@dataclass(frozen=True)
class Shown:
    """A prompt that shows tools, and what it shows.

    Attributes:
        prompt: The prompt.
        tools: Names of the tools that are described.
        worked: The worked answers.
        tokens: Tokens before the question.
    """

    prompt: Prompt
    tools: tuple[str, ...]
    worked: tuple[Worked, ...]
    tokens: int


class Page:
    """Puts tools and worked answers before the questions of a setting.

    Attributes:
        prompt: The settings' own prompt, whose frame is kept.
        room: Tokens that may stand before a question.

    Raises:
        UserError: No tool takes arguments, so that calls are words and the settings' training rows show none; or
            nothing fits before the longest question.
    """

    def __init__(self, setting: Setting, items: Sequence[Item]) -> None:
        config = setting.config
        if not any(tool.order for tool in setting.tools):
            problem = (
                f"is unset, and the tools of {setting.benchmark.name} take no arguments: there are no calls to show"
            )
            raise UserError("evaluation.icl_template", problem, "name a text file with worked answers for `icl`")
        self.tools = setting.tools
        self._tokenizer = setting.base.tokenizer
        self.prompt = load_prompt(config.prompt, root=setting.root, tokenizer=self._tokenizer)
        longest = max((len(self.prompt.question_ids(self._tokenizer, item.question)) for item in items), default=0)
        self.room = (setting.base.max_length or CONTEXT) - config.inference.max_new_tokens - longest
        self.room = min(self.room, config.evaluation.icl_tokens or self.room)
        if self._size(self._show((), ())) > self.room:
            problem = f"{self.room} tokens are left beside {longest} of the longest question and max_new_tokens"
            raise UserError("evaluation.icl_tokens", problem, "raise it, or lower inference.max_new_tokens")

    def work(self, example: Example) -> Worked | None:
        """Return a training row as a block of text; None where it cannot be shown."""
        return worked_answer(example, self.prompt, tools=self.tools, tokenizer=self._tokenizer)

    def fill(self, tools: Sequence[Tool], worked: Sequence[Worked]) -> Shown:
        """Show as many of some tools as there is room for, then as many of the worked answers that call no others.

        Args:
            tools: In the order in which they are described.
            worked: The most wanted first, which is shown first.
        """
        left = self.room - self._size(self._show((), ()))
        reserved = min(left // 2, sum(self.cost(GAP + block.text) for block in worked[:RESERVED]))
        lines: list[str] = []
        for tool in tools:
            line = self.describe(tool)
            size = self.cost("\n" + line)
            if size > left - reserved:
                break
            left -= size
            lines.append(line)
        names = {tool.name for tool in tools[: len(lines)]}
        blocks: list[Worked] = []
        for block in worked:
            size = self.cost(GAP + block.text)
            if size <= left and names.issuperset(block.tools):
                left -= size
                blocks.append(block)
        return self._fitted(tools, lines, blocks)

    def compose(self, tools: Sequence[Tool], worked: Sequence[Worked]) -> Shown:
        """Show exactly these, whether or not there is room."""
        prompt = self._show([self.describe(tool) for tool in tools], [block.text for block in worked])
        return Shown(prompt, tuple(tool.name for tool in tools), tuple(worked), self._size(prompt))

    def cost(self, text: str) -> int:
        """Return how many tokens a block takes, apart from what stands around it."""
        return len(encode_piece(self._tokenizer, text))

    def describe(self, tool: Tool) -> str:
        """Return one line: how a tool is called, and what it does unless that would be read as special tokens."""
        line = " ".join(f"{call_form(tool)}: {tool.description}".split())
        return line if is_plain(line, self._tokenizer) else call_form(tool)

    def _fitted(self, tools: Sequence[Tool], lines: Sequence[str], worked: Sequence[Worked]) -> Shown:
        # Blocks were measured apart; in a row they may take a token more.
        count, blocks = len(lines), list(worked)
        shown = self.compose(tools[:count], blocks)
        while shown.tokens > self.room and (blocks or count):
            if blocks:
                blocks.pop()
            else:
                count -= 1
            shown = self.compose(tools[:count], blocks)
        return shown

    def _size(self, prompt: Prompt) -> int:
        return len(prompt.prefix_ids(self._tokenizer))

    def _show(self, lines: Sequence[str], blocks: Sequence[str]) -> Prompt:
        head = ["\n".join([INSTRUCTION, *lines]), *blocks]
        opening = self.prompt.before if self.prompt.chat else ""
        return replace(self.prompt, before=opening + GAP.join([*head, label(self.prompt)]))


def label(prompt: Prompt) -> str:
    """Return what stands before a question in worked answers: `Q: `; a chat frame has none of its own."""
    return "Q: " if prompt.chat else prompt.before.rpartition(GAP)[2]


def is_plain(text: str, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether a tokenizer finds no special token in a text."""
    return encode_piece(tokenizer, text, special=True) == encode_piece(tokenizer, text)


def worked_answer(
    example: Example, prompt: Prompt, *, tools: ToolSet, tokenizer: PreTrainedTokenizerBase
) -> Worked | None:
    """Return a training row as a block in the frame of a prompt, its calls written out.

    Args:
        example: A row with calls; without a question its text is shown by itself.
        prompt: Its last question is the frame; a conclusion is added as in training.
        tools: Those that may be shown.
        tokenizer: The base's tokenizer.

    Returns:
        The block; None for a row without calls or with calls of other tools, and for one that would not be read as
        what it is: a result inside a number, calls that are not found again, special tokens, a text that ends answers.
    """
    inside = any(cuts_number(example.answer, call.start, call.end) for call in example.calls)
    if inside or not example.calls or not {call.tool for call in example.calls} <= set(tools.names):
        return None
    asked = " ".join(example.question.split())
    text, calls = concluded(example, prompt) if asked else (example.answer, example.calls)
    answer = " ".join(write_inline(text, calls, end="").split())
    after = "\nA:" if prompt.chat else prompt.after
    block = f"{label(prompt)}{asked}{after}{lead(after)}{answer}" if asked else answer
    ends = any(stop in answer for stop in prompt.stop)
    if ends or not is_plain(block, tokenizer) or not _found_again(answer, calls, tools):
        return None
    return Worked(block, tuple(dict.fromkeys(call.tool for call in calls)))


def _found_again(answer: str, calls: Sequence[CallSpan], tools: ToolSet) -> bool:
    written, found = WrittenCalls(tools), []
    while (call := written.find(answer)) is not None:
        found.append((call.tool.name, call.raw_arguments))
    return found == [(call.tool, " ".join(call.arguments.split())) for call in calls]
