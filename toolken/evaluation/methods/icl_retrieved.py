"""`icl-retrieved`: before every question the training rows nearest to it, and the tools that they call.

Nearness is the cosine of sentence embeddings (see `toolken.evaluation.retrieval`); the nearest row stands last, next
to the question. Invariant: a question's prompt depends on the question, the training rows and the settings alone, and
a row that asks the very question is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolken.data.example import Example
from toolken.data.prompts import Prompt
from toolken.errors import UserError
from toolken.evaluation.benchmarks.benchmark import Item
from toolken.evaluation.methods.in_context import Page, Shown, Worked
from toolken.evaluation.methods.method import HeadKind, Setting
from toolken.evaluation.retrieval import Embed, Neighbours, load_embedder
from toolken.inference.engine import Engine
from toolken.tools.toolset import ToolSet

LOOKED = 4
"""Neighbours that are looked at for every worked answer that is wanted: some do not fit, or cannot be shown."""


class IclRetrieved:
    """The base with what is nearest to the question in its prompt."""

    name = "icl-retrieved"
    head: HeadKind = "none"

    def open(self, setting: Setting, items: Sequence[Item]) -> Engine:
        """Return an engine that runs written calls, in a prompt of its own for every question.

        Raises:
            UserError: The embedding model is not installed, the tools take no arguments, or there is no training row.
        """
        page = Page(setting, items)
        chosen = Retrieval(
            page, setting.examples, wanted=setting.config.evaluation.icl_retrieved, embed=load_embedder()
        )
        shown = chosen.show([item.question for item in items])

        def prompt_of(question: str) -> Prompt:
            found = shown.get(question) or chosen.show([question])[question]
            return found.prompt

        return Engine(
            setting.base,
            written=setting.tools,
            prompt=prompt_of,
            config=setting.config.inference,
            notes=[say(list(shown.values()), setting.tools)],
        )


class Retrieval:
    """Training rows by their nearness to a question.

    Args:
        page: Where they are shown.
        examples: Training rows; those that cannot be shown are passed over.
        wanted: Worked answers before a question.
        embed: Texts to unit vectors.

    Raises:
        UserError: No row calls one of the tools.
    """

    def __init__(self, page: Page, examples: Sequence[Example], *, wanted: int, embed: Embed) -> None:
        self._page, self._wanted = page, wanted
        known = set(page.tools.names)
        first: dict[str, Example] = {}
        for row in examples:
            if any(call.tool in known for call in row.calls):
                first.setdefault(_text(row), row)
        self._rows = list(first.values())
        if not self._rows:
            raise UserError("data.train", "no row calls a tool of the benchmark", "name rows that do")
        self._blocks: dict[int, Worked | None] = {}
        self._neighbours = Neighbours([_text(row) for row in self._rows], embed)

    def show(self, questions: Sequence[str]) -> Mapping[str, Shown]:
        """Return what is shown before each of some questions."""
        asked = list(dict.fromkeys(questions))
        near = self._neighbours.nearest(asked, self._wanted * LOOKED)
        return {question: self._show(question, rows) for question, rows in zip(asked, near, strict=True)}

    def _show(self, question: str, rows: Sequence[int]) -> Shown:
        tools: ToolSet = self._page.tools
        shown = self._page.compose((), ())
        for row in rows:
            block = self._block(row)
            if block is None or _same(question, self._rows[row]):
                continue
            names = {*shown.tools, *block.tools}
            more = self._page.compose([tool for tool in tools if tool.name in names], (block, *shown.worked))
            if more.tokens <= self._page.room:
                shown = more
            if len(shown.worked) == self._wanted:
                break
        return shown

    def _block(self, row: int) -> Worked | None:
        if row not in self._blocks:
            self._blocks[row] = self._page.work(self._rows[row])
        return self._blocks[row]


def say(shown: Sequence[Shown], tools: ToolSet) -> str:
    """Return how much the prompts of some questions show."""
    described, worked = [len(one.tools) for one in shown], [len(one.worked) for one in shown]
    tokens = [one.tokens for one in shown]
    return (
        f"the prompts describe {_range(described)} of {len(tools)} tools and have {_range(worked)} worked answers, "
        f"in {_range(tokens)} tokens"
    )


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts, default=0), max(counts, default=0)
    return f"{low}" if low == high else f"{low} to {high}"


def _text(row: Example) -> str:
    """Return what a row is found by: its question, or its text where there is none."""
    return " ".join((row.question or row.answer).split())


def _same(question: str, row: Example) -> bool:
    return " ".join(question.split()).casefold() == _text(row).casefold()
