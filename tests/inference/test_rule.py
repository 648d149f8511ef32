"""Tools without arguments, and rules about which tools may follow which."""

import pytest

from tests.inference.heads import random_head
from tests.inference.scripted import EOS, add, play
from tests.tiny import TokenizerKind, tiny_base
from toolken.config import InferenceSection
from toolken.data.align import align
from toolken.data.example import CallSpan, Example
from toolken.data.prompts import Prompt
from toolken.inference.engine import Engine
from toolken.inference.events import Call, Result, Stop, Text
from toolken.tools.rule import Turn
from toolken.tools.tool import Outcome, Tool, tool
from toolken.tools.toolset import ToolSet


def says(name: str, text: str) -> Tool:
    """A tool without arguments that returns its text; it runs in a fork, which is quick to start."""
    return tool(name=name, description="")(lambda: text)


TOOLS = dict(enumerate([says("[GO]", "[GO]"), says("[END]", "[END]"), says("door", "total"), says("road", "number")]))
GO = TOOLS[0]
OBJECTS = frozenset({"door", "road"})
PROMPT = Prompt("Go.\n", "\nPlan:\n", chat=False, answer_pattern="answer is", stop=("\n\n",), conclusion="")


def steps(question: str, calls: tuple[str, ...]) -> Turn | None:
    """An action and its object on each line; objects are those that the question names."""
    last = calls[-1] if calls else ""
    if last == "[END]":
        return None
    if last == "[GO]":
        return Turn(frozenset(OBJECTS & set(question.split())), text=" ", follows="total")
    return Turn(frozenset({"[GO]", "[END]"}), text="\n" if calls else "")


def test_a_tool_without_arguments_runs_at_once_and_its_text_goes_into_the_answer() -> None:
    machine, events, backend = play([" So ", 0, 2, ".", EOS], tools=TOOLS)
    assert machine.answer.visible == "So [GO]total."
    assert [(call.tool, call.arguments, call.raw_arguments) for call in machine.calls] == [
        ("[GO]", {}, ""),
        ("door", {}, ""),
    ]
    assert {request.slot for request in backend.requests} == {0}, "argument mode was never opened"
    assert events[1:3] == [Call("[GO]", "", {}, 1), Result("[GO]", machine.calls[0].outcome, "[GO]", 3, 7)]


def test_a_failed_tool_without_arguments_is_not_asked_for_again() -> None:
    machine, _, _ = play([" ", [0, " no"], EOS], tools={0: GO}, outcomes=[Outcome("tool_error", "out of order")])
    assert [call.outcome.status for call in machine.calls] == ["tool_error"]
    machine, _, backend = play([" ", 0, [0, " no"], EOS], tools={0: GO}, outcomes=[Outcome("tool_error", "broken")])
    assert backend.requests[2].toolkens == frozenset() and machine.answer.visible == " no"


def test_a_rule_masks_tools_and_words_and_writes_between_the_calls() -> None:
    moves = [["Well", 3, 0], [0, 3], ["x", EOS, 1]]
    machine, events, backend = play(moves, tools=TOOLS, rule=lambda question, calls: steps("road", calls))
    assert machine.answer.visible == "[GO] number\n[END]" and machine.finish_reason == "stop"
    assert [request.toolkens for request in backend.requests] == [{0, 1}, {3}, {0, 1}]
    assert "".join(event.text for event in events if isinstance(event, (Text, Result))) == machine.answer.visible
    assert events[-1] == Stop("stop")
    for call in machine.calls:
        assert machine.answer.visible[call.start : call.end] == call.outcome.result


def test_a_rule_that_lets_words_through_leaves_them_to_the_base() -> None:
    machine, _, backend = play(
        [" It", 0, EOS], tools=TOOLS, rule=lambda question, calls: Turn(frozenset() if calls else OBJECTS, words=True)
    )
    assert machine.answer.visible == "It~" and machine.calls == [] and machine.finish_reason == "eos"
    assert backend.requests[0].toolkens == {2, 3}


def test_a_rule_that_wants_a_call_when_there_may_be_no_more_ends_the_answer() -> None:
    config = InferenceSection(max_calls=3, max_repeats=9)
    machine, _, _ = play([0, 2, 0, 2], tools=TOOLS, config=config, rule=lambda question, calls: steps("door", calls))
    assert machine.answer.visible == "[GO] total\n[GO] " and machine.finish_reason == "length"
    broken = play([0], tools={0: GO}, outcomes=[Outcome("crash", "x")], rule=lambda question, calls: steps("", calls))
    assert broken[0].finish_reason == "length"


@pytest.mark.parametrize("tokenizer", ["split", "merge", "glue", "sentencepiece"])
def test_law_6_under_a_rule_decoding_feeds_the_ids_that_training_sees(tokenizer: TokenizerKind) -> None:
    base = tiny_base("llama", tokenizer)
    tools = ToolSet(TOOLS.values(), rule=steps)
    head = random_head(base, tools, bias=0.0, prompt=PROMPT)
    questions = ["by road", "door or road ?", "a door"]
    config = InferenceSection(max_calls=9, max_repeats=9, batch_size=2, max_new_tokens=200)
    with Engine(base, head, tools=tools, config=config) as engine:
        answers = engine.answer(questions)
        assert [engine.answer([question])[0].token_ids for question in questions] == [one.token_ids for one in answers]
    for answer in answers:
        assert set(answer.text.replace("[GO] ", "").split("\n")) <= {"total", "number", "[END]", "", "[GO]"}
        calls = tuple(CallSpan(call.start or 0, call.end or 0, call.tool, "") for call in answer.calls)
        whole = answer.text.rstrip("\n ")
        seen = align(Example(answer.question, whole, calls), prompt=PROMPT, tokenizer=base.tokenizer, tools=tools.names)
        asked = len(PROMPT.question_ids(base.tokenizer, answer.question))
        assert answer.token_ids[: len(seen.ids) - asked] == seen.ids[asked:]
        assert [row for row in seen.toolken if row >= 0] == [tools.index(call.tool) for call in answer.calls]


def test_without_toolkens_a_rule_does_not_hold_the_base_back() -> None:
    base = tiny_base("llama", "split")
    config = InferenceSection(max_new_tokens=8)
    with Engine(base, tools=ToolSet(TOOLS.values(), rule=steps), prompt=PROMPT, config=config) as ruled:
        text = ruled.answer(["a door"])[0].text
    with Engine(base, prompt=PROMPT, config=config) as free:
        assert free.answer(["a door"])[0].text == text


def test_a_set_keeps_its_rule_and_is_equal_without_it() -> None:
    tools = ToolSet(TOOLS.values(), rule=steps)
    assert tools == ToolSet(TOOLS.values()) and hash(tools) == hash(ToolSet(TOOLS.values()))
    assert all(some.rule is steps for some in (tools[:2], tools.subset(["door"]), tools + [add]))
