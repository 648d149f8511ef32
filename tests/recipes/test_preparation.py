"""What a run starts from."""

from __future__ import annotations

import pytest

from toolken.config import DataSection, GenerateSection
from toolken.data.example import CallSpan, Example
from toolken.errors import UserError
from toolken.recipes.preparation import UNSEEN_SEED, first_per_tool, load_splits, load_tool_set
from toolken.tools.arithmetic import ARITHMETIC


def test_law_13_unseen_text_is_never_trained_on() -> None:
    generate = GenerateSection(per_tool=2, plain=200, seed=UNSEEN_SEED)  # the very texts that are to be unseen
    splits = load_splits(DataSection(generate=generate, negatives=["generated"]), ["add"])
    trained = {(row.question, row.answer) for row in splits.train + splits.negatives}
    assert trained and not any((row.question, row.answer) in trained for row in splits.unseen)
    calm = load_splits(DataSection(generate=GenerateSection(per_tool=2, plain=200), negatives=["generated"]), ["add"])
    assert len(calm.unseen) > 190


def row(*tools: str) -> Example:
    """Return a row that calls these tools."""
    return Example("Q", "x" * len(tools), tuple(CallSpan(at, at + 1, tool, "1") for at, tool in enumerate(tools)))


def test_the_first_rows_of_a_tool_are_kept_and_rows_without_calls_are_kept_all() -> None:
    rows = [row("add"), row("add", "add"), row(), row("add"), row("add", "ln"), row("ln"), row("ln"), row()]
    assert first_per_tool(rows, 2) == [rows[at] for at in (0, 1, 2, 4, 5, 7)]
    assert first_per_tool(rows, 9) == rows


def test_rows_a_tool_limit_training_rows_and_nothing_else() -> None:
    section = DataSection(generate=GenerateSection(per_tool=3, plain=4), validation=["generated"], per_tool=1)
    splits = load_splits(section, ["add", "ln"])
    assert [call.tool for example in splits.train for call in example.calls] == ["add", "ln"]
    assert len([example for example in splits.validation if example.calls]) == 6
    assert len(splits.negatives) == len(load_splits(DataSection(generate=section.generate), ["add"]).negatives)


def test_a_benchmark_names_its_own_tools() -> None:
    assert load_tool_set("benchmark:gsm8k_xl", None).names == ("add", "subtract", "multiply", "divide")
    assert load_tool_set("arithmetic", None) is ARITHMETIC
    with pytest.raises(UserError, match="did you mean `funcqa_oh`"):
        load_tool_set("benchmark:funcqa_ho", None)
