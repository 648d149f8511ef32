"""Worked calls of one tool, chosen from training examples and written as the text that argument mode continues.

Invariant: the choice depends on the examples alone (no seed), and spreads over the shapes of the arguments. A call is
written where its result stands: `76+18=<add>(76, 18)=94 cups`; calls of other tools show their results only. Texts
without a question are shown only for a tool that no question calls.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from toolken.data.example import Example
from toolken.data.frame import QUESTION
from toolken.data.inline import write_inline
from toolken.tools.tool import Tool

PROSE = "The answer is"
"""Words between a question and its call, among worked texts without a question."""


def _shape(example: Example, tool: str) -> tuple[int, bool, int]:
    """Number of arguments, any decimal point among them, calls in the answer: what demonstrations should vary."""
    arguments = next(call.arguments for call in example.calls if call.tool == tool)
    return arguments.count(",") + 1, "." in arguments, len(example.calls)


def _text(example: Example) -> str:
    """Return what an example is told by: its question, or its text where there is none."""
    return example.question or example.answer


def _usual_first(rows: Sequence[Example]) -> list[Example]:
    """Sort by how far the length of the question is from the median."""
    usual = statistics.median_low(len(_text(row)) for row in rows)
    return sorted(rows, key=lambda row: (abs(len(_text(row)) - usual), _text(row)))


def _opening(example: Example) -> tuple[str, ...]:
    return tuple(_text(example).lower().split()[:2])


def choose_examples(examples: Sequence[Example], tool: str, count: int) -> list[Example]:
    """Choose up to `count` examples that call the tool: one of each argument shape in turn.

    Frequent shapes come first, texts of usual length before others, and questions that open in a new way before
    those that open like one that is chosen already.
    """
    calling = [example for example in examples if any(call.tool == tool for call in example.calls)]
    asked = [example for example in calling if example.question]
    shapes: dict[tuple[int, bool, int], list[Example]] = defaultdict(list)
    seen: set[str] = set()
    for example in asked or calling:
        if _text(example) not in seen:
            seen.add(_text(example))
            shapes[_shape(example, tool)].append(example)
    order = sorted(shapes, key=lambda shape: (-len(shapes[shape]), shape))
    shapes.update({shape: _usual_first(rows) for shape, rows in shapes.items()})
    chosen: list[Example] = []
    opened: set[tuple[str, ...]] = set()
    while len(chosen) < count and any(shapes.values()):
        for shape in order:
            rows = shapes[shape]
            if rows:
                row = next((row for row in rows if _opening(row) not in opened), rows[0])
                rows.remove(row)
                chosen.append(row)
                opened.add(_opening(row))
    return chosen[:count]


def call_form(tool: Tool) -> str:
    """Return how a tool is called: `<add>(a, b, ...)`."""
    names = [*(name for name in tool.order if name != tool.variadic), *(["..."] if tool.variadic else [])]
    return f"<{tool.name}>({', '.join(names)})"


def show_examples(tool: Tool, examples: Sequence[Example], *, count: int, chat: bool = False) -> str:
    """Return the demonstrations of a tool as a template with `[QUESTION]`.

    Args:
        tool: Its name, arguments and description head the text.
        examples: Where worked calls are taken from.
        count: Worked calls at most; with 0 the head alone is shown.
        chat: Answers start on a line of their own, as they do after a chat frame.
    """
    head = f"The tool <{tool.name}> is called as {call_form(tool)}=result. {tool.description}"
    gap = "\n" if chat else " "
    blocks = [" ".join(head.split())]
    chosen = choose_examples(examples, tool.name, count)
    for example in chosen:
        own = [call for call in example.calls if call.tool == tool.name]
        answer = write_inline(example.answer, own, end="").strip()
        blocks.append(f"Q: {example.question.strip()}\nA:{gap}{answer}" if example.question else answer)
    # After texts without a question a new one stands as they do: a line that runs into its call.
    prose = bool(chosen) and not any(example.question for example in chosen)
    last = f"{QUESTION} {PROSE}" if prose and not chat else f"Q: {QUESTION}\nA:{gap.strip(' ')}"
    return "\n\n".join([*blocks, last])
