"""A setting of two tools and a few training rows, for methods that show them in a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.inference.scripted import add, look
from tests.tiny import TokenizerKind, tiny_base
from toolken.config import Config
from toolken.data.example import CallSpan, Example
from toolken.evaluation.benchmarks.benchmark import Item
from toolken.evaluation.methods.method import Setting
from toolken.tools.toolset import ToolSet

TOOLS = ToolSet([add, look])


def row(question: str, answer: str, *calls: tuple[str, str, str]) -> Example:
    """Return a training row; a call is its tool, its arguments and its result, which stands in the answer once."""
    found = [(answer.index(result), result, tool, arguments) for tool, arguments, result in calls]
    return Example(question, answer, tuple(CallSpan(at, at + len(r), tool, given) for at, r, tool, given in found))


def item(question: str) -> Item:
    return Item(0, question, None)


ROWS = [
    row("What is 1 and 2?", "It is 3.", ("add", "1, 2", "3")),
    row("Whose is the desk?", "It belongs to Ada.", ("look", '"desk"', "Ada")),
    row("What are 4 and 5 together?", "4+5=9 in all. The answer is 9.", ("add", "4, 5", "9")),
]


def toy_setting(
    examples: Sequence[Example] = ROWS,
    *,
    tools: ToolSet = TOOLS,
    tokenizer: TokenizerKind = "split",
    prompt: dict[str, Any] | None = None,
    **evaluation: object,
) -> Setting:
    """Return a setting on a tiny base, whose context has 512 tokens; `evaluation` are settings of that section."""
    config = Config.model_validate(
        {
            "inference": {"max_new_tokens": 8},
            "prompt": {"template": "builtin:plain", "conclusion": " The answer is [RESULT].", **(prompt or {})},
            "evaluation": evaluation,
        }
    )
    benchmark: Any = SimpleNamespace(name="toy")
    return Setting(config, tiny_base("llama", tokenizer), benchmark, tools, Path(), examples, None)
