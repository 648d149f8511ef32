"""Calls that stand in the text in words: found once, run by the engine, answered behind their `=`."""

import pytest

from tests.inference.scripted import EOS, add, look, play
from tests.tiny import tiny_base
from toolken.config import InferenceSection, PromptSection
from toolken.data.prompts import load_prompt
from toolken.inference.engine import Engine
from toolken.inference.written import WrittenCalls
from toolken.tools.tool import Outcome
from toolken.tools.toolset import ToolSet

TOOLS = ToolSet([add, look])


def test_a_written_call_runs_and_its_result_follows() -> None:
    machine, events, backend = play([*" is <add>(3, 4)=", " apples", EOS], tools={}, written=TOOLS)
    assert machine.answer.visible == "is <add>(3, 4)=7 apples"
    (call,) = machine.calls
    assert (call.tool, call.raw_arguments, machine.answer.visible[call.start : call.end]) == ("add", "3, 4", "7")
    assert all(request.toolkens == frozenset() for request in backend.requests)
    assert backend.token_text(backend.requests[-1].ids).endswith("=7 apples"), "the base reads on in the same context"
    assert "".join(getattr(event, "text", "") for event in events) == machine.answer.visible


def test_every_call_is_found_once() -> None:
    machine, _, _ = play([*"<add>(1, 2)=", " + ", *"<add>(3, 4) =", "!", EOS], tools={}, written=TOOLS)
    assert machine.answer.visible == "<add>(1, 2)=3 + <add>(3, 4) =7!"
    assert [call.raw_arguments for call in machine.calls] == ["1, 2", "3, 4"]


@pytest.mark.parametrize(
    "text",
    [
        "<add>(3, 4)",  # no result is asked for
        "<add>(3, 4) is 7 =",
        "<sum>(3, 4)=",
        "add(3, 4)=",
        "<add>(3,\n4)=",
        "<add>3, 4=",
        "<ADD>(3, 4)=",
    ],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    machine, _, _ = play([*text, EOS], tools={}, written=TOOLS)
    assert machine.answer.visible == text and not machine.calls


def test_quotes_hide_brackets_in_arguments_that_are_text() -> None:
    calls = WrittenCalls(TOOLS)
    found = calls.find('<look>("a) b")=')
    assert found is not None and found.tool is look and found.raw_arguments == '"a) b"'
    assert calls.find('<look>("a) b")=') is None
    unfinished, text = WrittenCalls(TOOLS), '<look>("a) =<add>(1, 2)='
    inner = unfinished.find(text)
    assert inner is not None and inner.tool is add, "an opening that is never closed hides no later call"


def test_a_call_that_fails_is_logged_and_the_base_writes_on() -> None:
    failing = [Outcome("tool_error", "no")]
    machine, _, _ = play([*"<add>(1, 2)=", "3", EOS], tools={}, written=TOOLS, outcomes=failing)
    assert machine.answer.visible == "<add>(1, 2)=3" and [call.outcome.ok for call in machine.calls] == [False]
    machine, _, _ = play([*"<add>(one)=", "?", EOS], tools={}, written=TOOLS)
    assert machine.answer.visible == "<add>(one)=?" and machine.calls[0].outcome.status == "refused"


def test_written_calls_keep_the_limit_of_calls() -> None:
    one = InferenceSection(max_calls=1)
    machine, _, _ = play([*"<add>(1, 2)=", *" <add>(3, 4)=", EOS], tools={}, written=TOOLS, config=one)
    assert machine.answer.visible == "<add>(1, 2)=3 <add>(3, 4)=" and len(machine.calls) == 1


def test_written_calls_stand_beside_toolkens() -> None:
    machine, _, _ = play([*"<add>(1, 2)=", " ", 0, *"3, 4)", EOS], written=TOOLS)
    assert machine.answer.visible == "<add>(1, 2)=3 7"
    assert [call.raw_arguments for call in machine.calls] == ["1, 2", "3, 4"]


def test_a_prompt_may_be_chosen_for_every_question() -> None:
    base = tiny_base("llama")
    prompts = {name: load_prompt(PromptSection(template=f"builtin:{name}")) for name in ("plain", "answer-is")}
    config = InferenceSection(max_new_tokens=4)
    with Engine(base, prompt=lambda question: prompts[question], config=config) as chosen:
        got = chosen.answer(["plain", "answer-is"])
    for name, answer in zip(prompts, got, strict=True):
        with Engine(base, prompt=prompts[name], config=config) as fixed:
            assert fixed.answer([name])[0].token_ids == answer.token_ids
