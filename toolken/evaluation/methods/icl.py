"""`icl`: all tools described and demonstrated in the prompt, as many as the context holds; the base writes the calls.

Tools are described in row order, then every tool in turn shows one more of its training rows. What does not fit is
left out and counted in a note. With `evaluation.icl_template` a text file is shown as it is: tools without arguments
have no calls that could be written, and their answers are words (VirtualHome).
Source: in-context learning as a baseline of Hao et al., "ToolkenGPT", arXiv 2305.11554, section 4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from toolken.data.demonstrations import choose_examples
from toolken.data.example import Example
from toolken.data.prompts import load_prompt
from toolken.errors import UserError
from toolken.evaluation.benchmarks.benchmark import Item
from toolken.evaluation.methods.in_context import Page, Shown, Worked
from toolken.evaluation.methods.method import HeadKind, Setting
from toolken.inference.engine import Engine
from toolken.tools.toolset import ToolSet

SHORTEST = 16
"""Tokens that a worked answer takes at least: so many are chosen as might fit."""


class Icl:
    """The base with all tools in its prompt."""

    name = "icl"
    head: HeadKind = "none"

    def open(self, setting: Setting, items: Sequence[Item]) -> Engine:
        """Return an engine that runs written calls, in a prompt that is the same for all questions.

        Raises:
            UserError: The tools take no arguments and there is no template, or no tool fits into the prompt.
        """
        config = setting.config
        template = config.evaluation.icl_template
        if template is not None:
            section = config.prompt.model_copy(update={"template": template})
            prompt = load_prompt(section, root=setting.root, tokenizer=setting.base.tokenizer)
            return Engine(setting.base, written=setting.tools, prompt=prompt, config=config.inference)
        page = Page(setting, items)
        rounds = max(1, page.room // (SHORTEST * len(setting.tools)))
        shown = page.fill(setting.tools, list(in_turn(page, setting.examples, rounds=rounds)))
        if not shown.tools:
            problem = f"the {page.room} tokens before a question hold no tool"
            raise UserError("evaluation.icl_tokens", problem, "raise it, or take a base with a longer context")
        return Engine(
            setting.base,
            written=setting.tools,
            prompt=shown.prompt,
            config=config.inference,
            notes=[say(shown, setting.tools)],
        )


def in_turn(page: Page, examples: Sequence[Example], *, rounds: int) -> Iterator[Worked]:
    """Yield worked answers round by round: one of every tool, in row order, then the next of every tool."""
    blocks: dict[Example, Worked] = {}
    calling: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        if example not in blocks and (block := page.work(example)) is not None:
            blocks[example] = block
            for name in block.tools:
                calling[name].append(example)
    chosen = [choose_examples(calling[tool.name], tool.name, rounds) for tool in page.tools if calling[tool.name]]
    in_order = dict.fromkeys(row for turn in zip_longest(*chosen) for row in turn if row is not None)
    for example in in_order:
        yield blocks[example]


def say(shown: Shown, tools: ToolSet) -> str:
    """Return how much of what there is a prompt shows."""
    worked = {name for block in shown.worked for name in block.tools}
    return (
        f"the prompt describes {len(shown.tools)} of {len(tools)} tools and has {len(shown.worked)} worked answers, "
        f"with calls of {len(worked)} tools, in {shown.tokens} tokens"
    )
