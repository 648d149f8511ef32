"""KAMEL: exact relation, the answer end to end, causes, and the published substring."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.answers import answered, call
from toolken.evaluation.benchmarks.benchmark import Cause, Item
from toolken.evaluation.benchmarks.catalogue import load_benchmark
from toolken.evaluation.benchmarks.kamel import KAMEL
from toolken.evaluation.scoring import Verdict
from toolken.inference.engine import Answer
from toolken.inference.events import CallRecord
from toolken.tools.executor import Executor

BENCHMARK = KAMEL[0]
ITEM = Item(0, "Who owns Nike?", [["Ann Lee", "A. Lee"], ["Bob"]], {"relation": "P17", "subject": "Nike"})
ASKED = {"subject": "the NIKE"}
RIGHT = call("P17", ASKED, "Ann Lee, Bob")


@pytest.mark.parametrize(
    ("text", "verdict", "complete"),
    [
        (" Ann Lee, Bob.\nQuestion: next", Verdict.RIGHT, 1),
        (" Bob and A. Lee", Verdict.RIGHT, 1),
        (" ann lee", Verdict.RIGHT, 0),
        (" the Bob", Verdict.RIGHT, 0),
        (" Bobby", Verdict.WRONG, 0),
        (" unknown, but Ann Lee and Bob", Verdict.WRONG, 0),
        (" no one.\nAnn Lee, Bob", Verdict.WRONG, 0),
        (" \n", Verdict.UNSCORABLE, 0),
    ],
)
def test_the_answer_starts_with_an_object_by_any_of_its_names(text: str, verdict: Verdict, complete: int) -> None:
    mark = BENCHMARK.mark(ITEM, answered(text))
    assert (mark.verdict, mark.measures["complete"], mark.measures["selection"]) == (verdict, complete, 0)


@pytest.mark.parametrize(
    ("text", "calls", "expected"),
    [
        (" Ann Lee, Bob", [RIGHT], Cause.RIGHT),
        (" Kim", [], Cause.NO_CALL),
        ("", [], Cause.UNSCORABLE),
        (" Kim", [call("P176", ASKED, "Kim"), RIGHT], Cause.WRONG_TOOL),
        (" Kim", [call("P17", {"subject": "Puma"}, "Kim")], Cause.WRONG_ARGUMENTS),
        ("", [call("P17", None, status="refused")], Cause.WRONG_ARGUMENTS),
        ("", [call("P17", ASKED, status="refused")], Cause.TOOL_FAILED),
        (" x Ann Lee", [RIGHT], Cause.WRONG_FINAL),
        (" x Ann Lee", [call("P17", None, status="refused"), RIGHT], Cause.WRONG_FINAL),
    ],
)
def test_every_answer_has_one_cause(text: str, calls: list[CallRecord], expected: Cause) -> None:
    assert BENCHMARK.mark(ITEM, answered(text, calls=calls)).cause is expected


@pytest.mark.parametrize(
    ("answer", "selection", "published"),
    [
        (answered(" Kim", calls=[call("P17", ASKED, "Kim")]), 1, True),
        (answered(" Kim", calls=[call("P176", ASKED, "Kim")]), 0, True),  # P17 stands inside P176
        (
            answered(" Kim", calls=[call("P36", ASKED, "Kim"), RIGHT]),
            0,
            False,
        ),  # what follows the first call is not seen
        (answered(" it is P17"), 0, True),
        (answered(" Kim"), 0, False),
    ],
)
def test_selection_is_exact_and_the_published_substring_is_not(answer: Answer, selection: int, published: bool) -> None:
    mark = BENCHMARK.mark(ITEM, answer)
    assert (mark.measures["selection"], mark.published) == (selection, published)


@pytest.mark.parametrize(
    ("size", "relations", "validation"), [(30, 30, 150), (60, 60, 300), (100, 99, 500), (234, 209, 1170)]
)
def test_official_questions_have_a_subject_and_their_lookup_gives_the_gold_answer(
    data_root: Path, size: int, relations: int, validation: int
) -> None:
    benchmark = load_benchmark(f"kamel_{size}")
    tools, items = benchmark.tools(data_root), benchmark.items(data_root, "test")
    assert (len(tools), len(items), len({item.metadata["relation"] for item in items})) == (size, 500, relations)
    assert len(benchmark.items(data_root, "validation")) == validation
    assert tools.names == load_benchmark("kamel_234").tools(data_root).names[:size]
    right = 0
    for item in items:
        result = tools[str(item.metadata["relation"])](str(item.metadata["subject"]))
        found = call(str(item.metadata["relation"]), {"subject": item.metadata["subject"]}, result)
        right += benchmark.mark(item, answered(f" {result}", calls=[found])).verdict is Verdict.RIGHT
    assert right >= 499  # one subject has two entries


def test_a_lookup_runs_in_a_fresh_process(data_root: Path) -> None:
    tools = load_benchmark("kamel_30").tools(data_root)
    with Executor() as executor:
        known = executor.run(tools["P17"], {"subject": "nowhere at all"})
        assert (known.status, known.detail) == ("refused", "P17 of 'nowhere at all' is not known")
        assert list(executor._workers) == ["spawned"]
