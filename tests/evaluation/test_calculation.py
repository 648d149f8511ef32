"""Math sets: gold calculations, causes, and the published scorer with its faults."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from tests.evaluation.answers import answered, call
from toolken.data.questions import read_questions
from toolken.errors import UserError
from toolken.evaluation.benchmarks.benchmark import Cause, Item
from toolken.evaluation.benchmarks.calculation import attribute, called_steps, published_verdict
from toolken.evaluation.benchmarks.catalogue import BENCHMARKS, load_benchmark
from toolken.evaluation.benchmarks.funcqa import MULTI_HOP, ONE_HOP
from toolken.evaluation.benchmarks.gsm8k_xl import GSM8K_XL, gold_steps
from toolken.evaluation.scoring import Rule, Verdict
from toolken.inference.engine import Answer
from toolken.inference.events import CallRecord
from toolken.tools.arithmetic import ARITHMETIC

ADD = call("add", {"a": Fraction(2), "b": Fraction(3)}, 5)
MULTIPLY = call("multiply", {"a": 5, "b": 4}, 20)
FAILED = call("add", None, status="refused")


def cause(answer: Answer, *steps: str, gold: str = "20") -> Cause:
    """Return the cause of an answer to a question whose gold calculation has these steps."""
    item = Item(0, "Q", gold, {"steps": [*steps]} if steps else {})
    return ONE_HOP.mark(item, answer).cause


@pytest.mark.parametrize(
    ("final", "calls", "expected"),
    [
        ("20", [ADD, MULTIPLY], Cause.RIGHT),
        ("20", [], Cause.RIGHT),
        (None, [ADD, MULTIPLY], Cause.UNSCORABLE),
        ("21", [], Cause.NO_CALL),
        ("21", [ADD, MULTIPLY], Cause.WRONG_FINAL),
        ("5", [ADD], Cause.WRONG_TOOL),
        ("5", [ADD, ADD], Cause.WRONG_TOOL),
        ("5", [ADD, call("multiply", {"a": 5, "b": 5}, 25)], Cause.WRONG_ARGUMENTS),
        ("5", [call("multiply", {"a": 5, "b": 5}, 25), ADD], Cause.WRONG_ARGUMENTS),
        ("5", [ADD, call("multiply", None, status="refused")], Cause.TOOL_FAILED),
        ("5", [ADD, call("sqrt", {"x": -1}, status="refused")], Cause.WRONG_TOOL),
        ("5", [ADD, call("multiply", None, status="refused"), MULTIPLY], Cause.WRONG_FINAL),
        ("5", [FAILED, ADD, call("multiply", {"a": 5, "b": 5}, 25)], Cause.WRONG_ARGUMENTS),
        ("5", [call("lookup", {"name": "x"}, "20 and 21")], Cause.WRONG_TOOL),
    ],
)
def test_every_answer_has_one_cause(final: str | None, calls: list[CallRecord], expected: Cause) -> None:
    assert cause(answered("...", final, calls), "add", "multiply") is expected


def test_a_result_is_compared_as_it_was_given_and_as_it_was_written() -> None:
    exact = call("divide", {"a": 59, "b": 3}, Fraction(59, 3))
    assert cause(answered("", "7", [exact]), "divide", gold="19.67") is Cause.WRONG_FINAL
    text = call("divide", {"a": 59, "b": 3}, "about 19.67")
    placed = CallRecord(text.tool, text.arguments, "", text.outcome, 3, 8)
    assert cause(answered("is 19.67!", "7", [placed]), "divide", gold="19.67") is Cause.WRONG_FINAL


def test_without_a_gold_calculation_less_can_be_told() -> None:
    assert cause(answered("", "5", [ADD])) is Cause.WRONG
    assert cause(answered("", "5", [FAILED])) is Cause.TOOL_FAILED
    assert cause(answered("", "5")) is Cause.NO_CALL


def test_one_call_of_three_numbers_is_as_good_as_two_calls() -> None:
    together = call("add", {"a": 1, "b": 2, "more": [3]}, 6)
    for calls in ([together], [ADD, ADD]):
        answer = answered("", "5", calls)
        found = attribute(answer, Verdict.WRONG, gold="9", steps=["add", "add"], rule="round2", tools=ARITHMETIC)
        assert found is Cause.WRONG_ARGUMENTS


def test_gold_calls_are_taken_apart_into_steps() -> None:
    calls = ["<add>(1, 2, 3)=6", "-<ln>(0.5)=0.69", "<divide>(12,12.56))=0.95", "<multiply>(12*2)=24"]
    assert called_steps(calls, ARITHMETIC) == ["add", "add", "ln", "divide", "multiply"]
    assert called_steps(["<sing>(1)=2"], ARITHMETIC) is None and called_steps([None], ARITHMETIC) is None


@pytest.mark.parametrize(
    ("line", "steps"),
    [
        ("4096-27-64 = 4005.0", ["subtract", "subtract"]),
        ("27/64*1209600.0 = 510300.0", ["divide", "multiply"]),
        ("-3+(4*-2) = -11", ["add", "multiply"]),
        ("(1+2)*(3-4) = -3", ["add", "multiply", "subtract"]),
        ("5 = 5", []),
    ],
)
def test_the_operators_of_a_worked_line_are_its_steps(line: str, steps: list[str]) -> None:
    assert gold_steps({"enhanced_process": [line]}, ARITHMETIC) == steps


@pytest.mark.parametrize(
    ("text", "gold", "rule", "right"),
    [
        ("So, the answer is 1,234.", "1234", "round2", True),
        ("So, the answer is 3.9.", "3", "round2", True),  # cut, not rounded
        ("So, the answer is -5.", "5", "round2", True),  # the sign of a whole number is lost
        ("So, the answer is -5.", "-5", "round2", False),
        ("So, the answer is -5.5.", "-5.5", "round2", True),
        ("So, the answer is 0.394.", "0.3936", "round2", True),
        ("I do not know.", "0", "round2", True),  # no number counts as 0
        ("the answer is 7, no, the answer is 8", "8", "round2", True),
        ("the answer is 1.0009", "1", "relative", True),
        ("the answer is 1.0011", "1", "relative", False),
    ],
)
def test_the_published_scorer_keeps_its_faults(text: str, gold: str, rule: Rule, right: bool) -> None:
    assert published_verdict(text, gold, rule=rule, after="answer is") is right


def test_our_verdict_and_the_published_one_stand_side_by_side() -> None:
    mark = ONE_HOP.mark(Item(0, "Q", "3"), answered("So, the answer is 3.9.", "3.9"))
    assert (mark.verdict, mark.published, mark.cause) == (Verdict.WRONG, True, Cause.NO_CALL)
    mark = GSM8K_XL.mark(Item(0, "Q", "-4"), answered("#### -4", "-4"))
    assert (mark.verdict, mark.published) == (Verdict.RIGHT, False)


def test_multi_hop_answers_have_a_tolerance_and_one_hop_answers_have_none() -> None:
    item, answer = Item(0, "Q", "1000"), answered("#### 1000.9", "1000.9")
    assert MULTI_HOP.mark(item, answer).verdict is Verdict.RIGHT
    assert ONE_HOP.mark(item, answer).verdict is Verdict.WRONG


def test_items_carry_gold_values_and_steps(tmp_path: Path) -> None:
    (tmp_path / "funcqa").mkdir()
    rows = [{"question": "Q?", "answer": 0.39, "func": "<power>(0.89, 8)=0.39"}, {"question": "R?", "answer": 2}]
    (tmp_path / "funcqa/funcqa_oh.json").write_text(json.dumps(rows))
    first, second = ONE_HOP.items(tmp_path, "test")
    assert (first.id, first.question, first.gold, first.metadata) == (0, "Q?", "0.39", {"steps": ["power"]})
    assert second.metadata == {}


def test_a_benchmark_that_is_not_there_is_refused_with_the_nearest_name() -> None:
    assert all(load_benchmark(name).name == name for name in BENCHMARKS)
    with pytest.raises(UserError, match="did you mean `gsm8k_xl`"):
        load_benchmark("gsm8k-xl")


@pytest.mark.parametrize(
    ("name", "test", "validation", "tools"),
    [("funcqa_oh", 60, 39, 13), ("funcqa_mh", 68, 39, 13), ("gsm8k_xl", 568, 1000, 4)],
)
def test_official_questions_have_gold_calculations(
    data_root: Path, name: str, test: int, validation: int, tools: int
) -> None:
    benchmark = load_benchmark(name)
    assert len(benchmark.tools(data_root)) == tools
    for split, count in (("test", test), ("validation", validation)):
        items = benchmark.items(data_root, split)  # type: ignore[arg-type]
        assert len(items) == len({item.id for item in items}) == count
        assert all(item.metadata["steps"] and Fraction(str(item.gold)) is not None for item in items)
    assert not {item.question for item in benchmark.items(data_root, "test")} & {
        question.question for question in read_questions("gsm8k/train.jsonl", root=data_root)
    }
