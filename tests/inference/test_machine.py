"""The mode machine, with rankings written by hand."""

import ast
import json
from fractions import Fraction
from pathlib import Path

import pytest

from tests.inference.scripted import EOS, add, look, play
from toolken.config import InferenceSection
from toolken.inference.events import Call, Event, Result, Stop, Text, json_value
from toolken.tools.tool import Outcome

ROOT = Path(__file__).parent.parent.parent
CALL = ["3", ",", " ", "4", ")"]


def told(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, (Text, Result)))


def test_words_until_the_end_of_sequence() -> None:
    machine, events, _ = play([" It", " is", EOS])
    assert machine.answer.visible == "It is" and machine.finish_reason == "eos"
    assert events == [Text("It"), Text(" is"), Stop("eos")]


def test_a_call_puts_its_result_into_the_text_and_reasoning_goes_on() -> None:
    machine, events, backend = play([" is ", 0, *CALL, " apples", ".", EOS])
    assert machine.answer.visible == "is 7 apples."
    (call,) = machine.calls
    assert (call.tool, call.raw_arguments, call.arguments) == ("add", "3, 4", {"a": 3, "b": 4})
    assert machine.answer.visible[call.start : call.end] == "7"
    assert json.loads(json.dumps(call.as_dict()))["outcome"]["status"] == "ok"
    assert events[1:3] == [Call("add", "3, 4", {"a": 3, "b": 4}, 1), Result("add", call.outcome, "7", 3, 4)]
    assert told(events) == machine.answer.visible
    arguments = backend.requests[2]
    assert backend.token_text(arguments.ids) == "demo add\nQ: q\nA: is <add>("
    assert backend.token_text(arguments.prefix) == "demo add\nQ: " and arguments.toolkens == frozenset()
    assert backend.token_text(backend.requests[7].ids) == "Q: q\nA: is 7"


@pytest.mark.parametrize("closing", [")", ").", "))", ") =", ")\n", "4)", "4). Then 8"])
def test_arguments_end_at_the_matching_bracket_wherever_a_token_holds_it(closing: str) -> None:
    written = ["3", ", "] if "4" in closing else ["3", ", ", "4"]
    machine, _, _ = play([" ", 0, *written, closing, EOS])
    assert machine.calls[0].raw_arguments == "3, 4" and machine.answer.visible == "7"


def test_nested_brackets_belong_to_the_arguments() -> None:
    machine, _, _ = play([" ", 0, *"(1+2)", ",", "4", ")", EOS])
    assert machine.calls[0].raw_arguments == "(1+2),4" and machine.answer.visible == "7"


def test_numeric_arguments_take_the_best_token_that_can_continue_them() -> None:
    moves = [" ", 0, ["three", "\n", EOS, "3"], [", x", ", "], ["4"], [" apples)", ")"], EOS]
    assert play(moves)[0].calls[0].raw_arguments == "3, 4"
    loose = InferenceSection(constrain_arguments=False, retries=0)
    assert play([" ", 0, "three", ")", EOS], config=loose)[0].calls[0].outcome.status == "refused"


@pytest.mark.parametrize("end", [EOS, "\n", "b\nc"])
def test_unfinished_arguments_are_refused(end: str | bytes) -> None:
    machine, _, _ = play([" ", 1, "a", end, "b", end, EOS])
    assert [call.outcome.status for call in machine.calls] == ["refused", "refused"]
    assert "ends before the arguments" in machine.calls[0].outcome.detail
    assert machine.calls[0].raw_arguments in ("a", "ab") and machine.calls[0].start is None


def test_argument_tokens_are_limited() -> None:
    machine, _, _ = play([" ", 1, *"abcdef", EOS], config=InferenceSection(max_argument_tokens=3, retries=0))
    assert machine.calls[0].raw_arguments == "abc" and "longer than 3 tokens" in machine.calls[0].outcome.detail


def test_a_failed_call_is_asked_again_with_its_error_shown() -> None:
    bad = Outcome("tool_error", "no such sum")
    machine, events, backend = play([" ", 0, *CALL, *"1,2)", EOS], outcomes=[bad])
    assert [call.outcome.status for call in machine.calls] == ["tool_error", "ok"]
    assert machine.answer.visible == "3"
    assert [event.attempt for event in events if isinstance(event, Call)] == [1, 2]
    again = backend.token_text(backend.requests[7].ids)
    assert again.endswith("<add>(3, 4) failed: no such sum. Corrected: <add>(")


@pytest.mark.parametrize("status", ["refused", "tool_error", "timeout", "crash"])
def test_after_the_retries_the_next_best_token_is_taken_and_all_is_logged(status: str) -> None:
    bad = Outcome(status, "no")  # type: ignore[arg-type]
    machine, events, backend = play(
        [" is", [0, 1, " seven"], *CALL, *CALL, [0, 1], *"a)", " ok", EOS], outcomes=[bad, bad]
    )
    assert machine.answer.visible == "isa ok"
    assert [(call.tool, call.start is None) for call in machine.calls] == [
        ("add", True),
        ("add", True),
        ("look", False),
    ]
    assert backend.requests[12].toolkens == {1}, "the toolken is banned at this position"
    assert backend.requests[12].ids == backend.requests[1].ids, "which has not moved"
    assert backend.requests[-1].toolkens == {0, 1}, "and nowhere else"
    assert told(events) == machine.answer.visible


def test_all_toolkens_that_failed_here_stay_banned_here() -> None:
    bad = Outcome("crash", "no")
    config = InferenceSection(retries=0)
    machine, _, backend = play(
        [" is", [0, 1], *CALL, [0, 1], *"a)", [0, 1, " so"], EOS], outcomes=[bad, bad], config=config
    )
    assert machine.answer.visible == "is so" and backend.requests[-2].toolkens == frozenset()


def test_the_same_call_runs_only_so_often() -> None:
    moves = [" ", 0, *CALL, " ", 0, *CALL, " ", 0, "3", ",", "4", ")", " so", EOS]
    machine, _, _ = play(moves, config=InferenceSection(max_repeats=2))
    assert [call.outcome.status for call in machine.calls] == ["ok", "ok", "refused"]
    assert "already" in machine.calls[2].outcome.detail and machine.answer.visible == "7 7  so"


def test_after_max_calls_toolkens_are_masked() -> None:
    machine, _, backend = play([" ", 0, *CALL, " ", [0, "x"], EOS], config=InferenceSection(max_calls=1))
    assert machine.answer.visible == "7 x" and backend.requests[-2].toolkens == frozenset()
    assert len(play([0, EOS], config=InferenceSection(max_calls=0))[0].calls) == 0


@pytest.mark.parametrize(
    ("ranked", "text"),
    [
        ([["0", " so"]], "7 so"),
        ([[".7", " so"]], "7 so"),
        ([["00 apples", " so"]], "7 so"),
        ([".", ["7", " Then 7"]], "7. Then 7"),
        ([",", ["000", " 7"]], "7, 7"),
        (["e", ["5", "ast 5"]], "7east 5"),
        (["e", "+", ["5", "x"]], "7e+x"),
        ([[".7", "."], ["7", "5.", "\n"], "7"], "7.\n7"),
        (["%", "7"], "7%7"),
        ([b"\xc2", [b"\xbd", b"\xb0"]], "7°"),
    ],
)
def test_no_token_or_run_of_tokens_extends_the_inserted_number(ranked: list[list[str]], text: str) -> None:
    assert play([" ", 0, *CALL, *ranked, EOS])[0].answer.visible == text


def test_no_second_result_lands_in_the_first() -> None:
    machine, _, backend = play([" ", 0, *CALL, [0, "."], [0, "\n"], 0, "1", ",", "1", ")", EOS])
    assert machine.answer.visible == "7.\n2"
    assert backend.requests[7].toolkens == frozenset() == backend.requests[8].toolkens


@pytest.mark.parametrize(
    ("stop", "moves", "text"),
    [
        (["\n\n"], [" a", "\n", "\n"], "a"),
        (["\n\n"], [" a", ".\n\nQ"], "a."),
        (["\nQ:"], [" a", "\n", "Q", ":"], "a"),
        (["\nQ:"], [" a", "\n", "Q", "u", "\nQ: b"], "a\nQu"),
        (["\n\n", "a\n"], [" a", "\n", "\n"], ""),
    ],
)
def test_stops_are_found_in_the_decoded_text(stop: list[str], moves: list[str], text: str) -> None:
    machine, events, _ = play(moves, stop=stop)
    assert (machine.answer.visible, machine.finish_reason) == (text, "stop")
    assert told(events) == text


def test_a_call_behind_half_a_stop_keeps_the_events_in_the_order_of_the_text() -> None:
    machine, events, _ = play([" a", "\n", 0, *CALL, "\n", EOS], stop=["\n\n", "\nQ:"])
    assert machine.answer.visible == "a\n7\n" == told(events)


def test_lengths_end_the_answer() -> None:
    machine, _, _ = play([" a", "b", "c"], config=InferenceSection(max_new_tokens=2))
    assert (machine.answer.visible, machine.finish_reason) == ("ab", "length")
    machine, _, _ = play([" a", "b", "c"], max_length=7)
    assert (machine.answer.visible, machine.finish_reason) == ("a", "context")


def test_a_question_longer_than_the_context_ends_cleanly() -> None:
    machine, events, backend = play([" a"], max_length=3)
    assert (machine.answer.visible, machine.finish_reason, backend.requests) == ("", "context", [])
    assert events == [Stop("context")]


def test_arguments_without_room_are_refused_and_not_asked_again() -> None:
    machine, _, _ = play([" ", 0, [0, "x"], EOS], max_length=20)
    assert len(machine.calls) == 1 and "room" in machine.calls[0].outcome.detail and machine.answer.visible == "x"


def test_a_result_that_cannot_be_written_is_a_failed_call() -> None:
    outcomes = [Outcome("ok", result=""), Outcome("ok", result="fine")]
    machine, _, _ = play([" ", 1, *"a)", *"b)", EOS], outcomes=outcomes)
    assert [call.outcome.status for call in machine.calls] == ["tool_error", "ok"] and machine.answer.visible == "fine"


def test_characters_cut_by_tokens_appear_whole() -> None:
    machine, events, _ = play([" a", b"\xc3", b"\x97", EOS])
    assert machine.answer.visible == "a×" and Text("×") in events
    assert play([" a", b"\xe2\x82", EOS])[0].answer.visible == "a\ufffd"


def test_noise_depends_on_the_question_and_the_place_alone() -> None:
    config = InferenceSection(temperature=1.0, seed=5)
    first = [request.noise for request in play([" a", 0, *CALL, " b", EOS], config=config)[2].requests]
    second = [request.noise for request in play([" a", 0, *CALL, " b", EOS], config=config)[2].requests]
    other = InferenceSection(temperature=1.0, seed=6)
    assert first == second and len(set(first)) == len(first)
    assert first != [request.noise for request in play([" a", 0, *CALL, " b", EOS], config=other)[2].requests]
    assert {request.noise for request in play([" a", EOS])[2].requests} == {None}


def test_unknown_toolkens_are_never_offered() -> None:
    assert play([EOS], tools={4: look})[2].requests[0].toolkens == {4}
    assert add.numeric and not look.numeric


def reachable(module: str, seen: set[str]) -> set[str]:
    """Names of all modules that a module imports at run time, its own package followed."""
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    outside: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name for name in submodules if ROOT.joinpath(*name.split(".")).with_suffix(".py").exists()]
            names = names or [node.module]
        for name in names:
            if not name.startswith("toolken."):
                outside.add(name.split(".")[0])
            elif name not in seen:
                seen.add(name)
                outside |= reachable(name, seen)
    return outside


@pytest.mark.parametrize("name", ["machine", "backend", "events", "schedule", "script"])
def test_the_machine_imports_no_torch(name: str) -> None:
    found = reachable(f"toolken.inference.{name}", set())
    assert not found & {"torch", "transformers", "numpy"}, found


def test_fractions_of_any_size_have_a_json_value() -> None:
    assert json_value({"a": [Fraction(1, 4), Fraction(6, 2), Fraction(10**400, 3)]}) == {"a": [0.25, 3, f"{10**400}/3"]}


def test_a_tool_that_returns_nothing_is_a_failed_call() -> None:
    machine, _, _ = play([" is ", 0, *CALL, *CALL, "so", EOS], outcomes=[Outcome("ok"), Outcome("ok")])
    assert machine.answer.visible == "is so"
    assert [call.outcome.status for call in machine.calls] == ["tool_error", "tool_error"]
