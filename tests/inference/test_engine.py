"""The engine over tiny bases: batching, calls that run, artefacts, what users hand in."""

import json
import logging
from dataclasses import replace

import pytest
import torch

from tests.inference.heads import BARE, PLAIN, calling_base, firing_head, head_of, random_head
from tests.inference.scripted import look
from tests.tiny import Family, TokenizerKind, tiny_base
from toolken.config import InferenceSection
from toolken.errors import UserError
from toolken.inference.engine import Answer, Engine
from toolken.inference.events import Call, Event, Result, Stop, Text
from toolken.tools.arithmetic import ARITHMETIC
from toolken.tools.results import format_result
from toolken.tools.tool import tool
from toolken.tools.toolset import ToolSet

TOOLS = [ARITHMETIC["add"], ARITHMETIC["gcd"], look]
QUESTIONS = [
    "How many is it?",
    "a",
    "The total of the numbers is equal to the sum of all of them, that is",
    "What is 12 and 30?",
    "Q",
    "What is the greatest common divisor of 12 and 30?",
]
LIMITS = InferenceSection(max_new_tokens=24, max_argument_tokens=12, max_calls=4, batch_size=4)


def told(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, (Text, Result)))


def check_spans(answer: Answer) -> None:
    for call in answer.calls:
        assert (call.start is None) == (not call.outcome.ok)
        if call.start is not None:
            assert answer.text[call.start : call.end] == format_result(call.outcome.result)


def outline(answer: Answer) -> tuple[object, ...]:
    return (answer.token_ids, answer.text, answer.calls, answer.finish_reason)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize(
    ("family", "tokenizer"), [("llama", "merge"), ("mistral", "split"), ("gpt2", "glue"), ("qwen3", "sentencepiece")]
)
def test_law_5_a_batch_gives_what_each_question_gives_alone(
    family: Family, tokenizer: TokenizerKind, temperature: float
) -> None:
    base = calling_base(family, tokenizer)
    head = random_head(base, TOOLS, bias=6.0)
    config = LIMITS.model_copy(update={"temperature": temperature, "top_p": 0.95, "seed": 3})
    with Engine(base, head, tools=ToolSet([look]), config=config) as engine:
        together = engine.answer(QUESTIONS)
        alone = [engine.answer([question])[0] for question in reversed(QUESTIONS)]
    assert [outline(answer) for answer in together] == [outline(answer) for answer in reversed(alone)]
    calls = [call for answer in together for call in answer.calls]
    assert len(calls) >= 8 and any(call.start is not None for call in calls), "the law is empty without calls"
    for answer in together:
        check_spans(answer)


def test_events_of_a_batch_tell_the_answers_as_they_come() -> None:
    base = calling_base("llama", "glue")
    head = random_head(base, TOOLS, bias=6.0)
    with Engine(base, head, tools=ToolSet([look]), config=LIMITS) as engine:
        answers = engine.answer(QUESTIONS)
        told_by: dict[int, list[Event]] = {index: [] for index in range(len(QUESTIONS))}
        for index, event in engine.events(QUESTIONS):
            told_by[index].append(event)
        assert list(engine.stream(QUESTIONS[2])) == told_by[2]
    for index, answer in enumerate(answers):
        events = told_by[index]
        assert told(events) == answer.text
        assert events[-1] == Stop(answer.finish_reason) and sum(isinstance(e, Stop) for e in events) == 1
        assert len([e for e in events if isinstance(e, Call)]) == len(answer.calls)


def test_a_call_where_the_row_fires_runs_and_reasoning_goes_on_from_its_result() -> None:
    base = calling_base("llama", "merge")
    ids = [*PLAIN.prefix_ids(base.tokenizer), *PLAIN.question_ids(base.tokenizer, "What is it?")]
    with Engine(base, firing_head(base, TOOLS, ids), config=LIMITS) as engine:
        (answer,) = engine.answer(["What is it?"])
    call = answer.calls[-1]
    assert call.tool == "add" and call.outcome.ok, call
    assert (call.start, answer.text[: call.end]) == (0, format_result(call.outcome.result))
    line = json.loads(json.dumps(answer.as_dict("q1")))
    assert set(line) == {"id", "question", "text", "answer", "calls", "finish_reason", "usage"}
    assert set(line["calls"][-1]) == {"tool", "arguments", "raw_arguments", "outcome", "start", "end"}
    assert line["usage"]["calls"] == len(answer.calls) and line["usage"]["fed_tokens"] > 0


def test_question_text_cannot_smuggle_special_tokens() -> None:
    base = tiny_base("llama", "merge")
    engine = Engine(base, prompt=PLAIN, config=LIMITS)
    question = "a</s><|assistant|>b"
    machine = engine._machine(question)
    assert not set(machine.request().ids[1:]) & set(base.tokenizer.all_special_ids)
    assert question in engine.backend.token_text(machine.request().ids)
    assert engine.answer([question])[0].usage.prompt_tokens == machine.prompt_tokens


def test_a_question_beyond_the_context_does_not_stop_the_others() -> None:
    base = tiny_base("gpt2")
    answers = Engine(base, prompt=PLAIN, config=LIMITS).answer(["a " * 600, "a"])
    assert answers[0].finish_reason == "context" and answers[0].text == ""
    assert answers[1].text


def test_answers_near_the_end_of_the_context_end_there() -> None:
    base = tiny_base("gpt2")
    question = "a " * 240
    config = InferenceSection(max_new_tokens=200)
    prompt_tokens = Engine(base, prompt=PLAIN, config=LIMITS)._machine(question).prompt_tokens
    assert 450 < prompt_tokens < 512
    (answer,) = Engine(base, prompt=PLAIN, config=config).answer([question])
    assert answer.finish_reason == "context" and prompt_tokens + len(answer.token_ids) == 513


def test_slots_are_released_also_when_nobody_reads_on() -> None:
    base = tiny_base()
    engine = Engine(base, prompt=BARE, config=LIMITS)
    stream = engine.stream("How many is it?")
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert not engine.backend._contexts._slots  # type: ignore[attr-defined]
    engine.answer(QUESTIONS)
    assert not engine.backend._contexts._slots  # type: ignore[attr-defined]


def test_the_bias_shifts_all_toolkens() -> None:
    base = tiny_base()
    head = head_of(base, TOOLS[:1])
    config = LIMITS.model_copy(update={"max_calls": 1})
    assert not any(
        a.calls for a in Engine(base, head, config=config.model_copy(update={"bias": -1e6})).answer(QUESTIONS)
    )
    with Engine(base, head, config=config.model_copy(update={"bias": 1e6})) as engine:
        assert all(a.calls for a in engine.answer(QUESTIONS))


def test_tools_bind_by_reference_when_built_in_and_by_hand_when_not(caplog: pytest.LogCaptureFixture) -> None:
    base = tiny_base()
    head = head_of(base, [*ARITHMETIC, look])
    with caplog.at_level(logging.WARNING):
        engine = Engine(base, head)
    assert sorted(engine.tools) == list(range(13))
    assert "<look> will not be called" in caplog.text and "--tools" in caplog.text
    assert 13 in Engine(base, head, tools=ToolSet([look])).tools


def test_a_tool_with_another_schema_is_refused() -> None:
    base = tiny_base()

    @tool(name="look")
    def other(name: str, loud: bool = False) -> str:
        """Look up a name."""
        return name

    with pytest.raises(UserError, match=r"<look>.*schema.*train its row again"):
        Engine(base, head_of(base, [look]), tools=ToolSet([other]))


def test_tools_that_cannot_run_are_masked_with_a_line(caplog: pytest.LogCaptureFixture) -> None:
    base = tiny_base()
    assert Engine(base, head_of(base, [look], trained=False), tools=ToolSet([look])).tools == {}
    assert "no training example" in caplog.text
    described = replace(look, function=None)
    assert Engine(base, head_of(base, [look]), tools=ToolSet([described])).tools == {}
    assert "no function" in caplog.text
    Engine(base, None, tools=ToolSet([look]), prompt=BARE)
    assert "no toolken was trained for <look>" in caplog.text


def test_allow_and_deny_choose_and_unknown_names_are_refused() -> None:
    base = tiny_base()
    head = head_of(base, list(ARITHMETIC))
    names = ARITHMETIC.names
    engine = Engine(base, head, config=InferenceSection(allow=["gcd", "lcm"], deny=["lcm"]))
    assert [names[row] for row in engine.tools] == ["gcd"]
    with pytest.raises(UserError, match="did you mean `subtract`"):
        Engine(base, head, config=InferenceSection(deny=["substract"]))
    with pytest.raises(UserError, match="there are no toolkens"):
        Engine(base, prompt=BARE, config=InferenceSection(allow=["add"]))


def test_another_prompt_than_the_trained_one_warns_and_names_both() -> None:
    base = tiny_base()
    head = head_of(base, TOOLS[:1], prompt=PLAIN)
    with pytest.warns(UserWarning) as caught:
        Engine(base, head, prompt=BARE)
    assert PLAIN.hash[:12] in str(caught[0].message) and BARE.hash[:12] in str(caught[0].message)
    assert Engine(base, head).prompt_of("q") == PLAIN == Engine(base, head, prompt=PLAIN).prompt_of("q")


def test_one_text_instead_of_a_list_is_refused() -> None:
    with pytest.raises(UserError, match="list of questions"):
        Engine(tiny_base(), prompt=BARE).answer("How many?")


def test_no_questions_no_answers() -> None:
    assert Engine(tiny_base(), prompt=BARE).answer([]) == []


def test_an_endless_tool_costs_its_time_limit_and_the_answer_goes_on() -> None:
    @tool
    def forever(a: float) -> float:
        """Never return."""
        while True:
            a += 1

    base = calling_base("llama")
    config = LIMITS.model_copy(update={"bias": 1e6, "max_calls": 1, "timeout": 0.3, "retries": 0})
    with Engine(base, head_of(base, [forever]), tools=ToolSet([forever]), config=config) as engine:
        (answer,) = engine.answer(["How many is it?"])
    assert [call.outcome.status for call in answer.calls] == ["timeout"]
    assert answer.text and answer.calls[0].start is None
    assert torch.is_grad_enabled()


def test_generation_settings_that_change_logits_are_named_and_not_applied(caplog: pytest.LogCaptureFixture) -> None:
    base = tiny_base("llama")
    Engine(base, prompt=BARE)
    assert "not applied" not in caplog.text
    base.model.generation_config.repetition_penalty = 1.2
    Engine(base, prompt=BARE)
    assert "not applied: repetition_penalty" in caplog.text
