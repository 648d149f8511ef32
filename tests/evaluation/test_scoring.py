from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from toolken.data.questions import Question
from toolken.errors import UserError
from toolken.evaluation.scoring import Rule, Verdict, default_rule, score, score_file

RIGHT, WRONG, UNSCORABLE = Verdict.RIGHT, Verdict.WRONG, Verdict.UNSCORABLE


@pytest.mark.parametrize(
    ("answer", "gold", "rule", "verdict"),
    [
        ("45379620", "45379620", "round2", RIGHT),
        ("45,379,620", "45379620", "round2", RIGHT),
        ("0.39", 0.3936, "round2", RIGHT),
        ("0.3936", 0.3936, "round2", RIGHT),
        ("0.40", 0.3936, "round2", WRONG),
        ("-0.001", 0, "round2", RIGHT),
        ("43.57", "43.5694625", "round2", RIGHT),
        ("43.56", "43.5694625", "round2", WRONG),
        ("43.56", "43.5694625", "relative", RIGHT),
        ("43.52", "43.5694625", "relative", WRONG),
        ("1.001", 1, "relative", RIGHT),
        ("1.0011", 1, "relative", WRONG),
        ("-1.001", -1, "relative", RIGHT),
        ("0", 0, "relative", RIGHT),
        ("0.0001", 0, "relative", WRONG),
        ("3", 3, "round2", RIGHT),
        ("9007199254740993", "9007199254740992", "round2", WRONG),
        (str(10**400 + 1), str(10**400), "round2", WRONG),
        ("9/3", 3.0, "round2", RIGHT),
        (Fraction(1, 3), "0.33", "round2", RIGHT),
        (None, 3, "round2", UNSCORABLE),
        ("Paris", 3, "round2", UNSCORABLE),
        ("3 or 4", 3, "relative", UNSCORABLE),
    ],
)
def test_an_answer_is_right_wrong_or_not_to_be_scored(
    answer: str | Fraction | None, gold: str | float, rule: Rule, verdict: Verdict
) -> None:
    assert score(answer, gold, rule=rule) is verdict


QUESTIONS = [Question("a", "?", "3"), Question("b", "?", "0.3936"), Question(7, "?", "10"), Question(8, "?", "11")]


def answers(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "out.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_file_is_scored_with_n_intervals_and_the_unscorable_apart(tmp_path: Path) -> None:
    call = {"tool": "add", "outcome": {"status": "ok"}}
    path = answers(
        tmp_path,
        {"id": "a", "answer": "3", "calls": [call, {"tool": "add", "outcome": {"status": "timeout"}}]},
        {"id": "b", "answer": None, "calls": []},
        {"id": 7, "answer": "11", "calls": [call]},
        {"id": 8, "answer": "11.0"},
    )
    result = score_file(path, QUESTIONS)
    assert list(result.verdicts.values()) == [RIGHT, UNSCORABLE, WRONG, RIGHT]
    assert (result.accuracy.hits, result.accuracy.n, result.unscorable.hits) == (2, 4, 1)
    assert (result.called, result.calls, result.failed) == (2, 3, 1)
    assert "accuracy 0.500 [0.150, 0.850] (n=4); 1 wrong, 1 could not be scored" in str(result)
    assert json.loads(json.dumps(result.as_dict()))["accuracy"]["n"] == 4


def test_missing_answers_are_refused_or_counted_apart(tmp_path: Path) -> None:
    path = answers(tmp_path, {"id": 7, "answer": "10"})
    with pytest.raises(UserError, match="3 of 4 questions have no answer.*--partial"):
        score_file(path, QUESTIONS)
    path.write_text('{"id": 7, "answer": "10", "text": "two\u2028lines of \x85 text"}\n')
    result = score_file(path, QUESTIONS, partial=True)
    assert (result.accuracy.n, len(result.missing)) == (1, 3)
    assert "3 questions have no answer" in str(result)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}\n", ":1: has no `id`"),
        ('{"id": 7}\n', ":1: has no `id` or no `answer`"),
        ("\n{not json\n", ":2: is not JSON"),
        ('{"id": 7, "answer": "1"}\n{"id": 7, "answer": "2"}\n', ":2: answers 7 again"),
        ('{"id": "x", "answer": "1"}\n', ":1: answers 'x', which is no question"),
    ],
)
def test_a_malformed_answer_file_is_refused_by_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(text)
    with pytest.raises(UserError, match=problem):
        score_file(path, QUESTIONS)


@pytest.mark.parametrize("gold", [None, "Paris"])
def test_a_gold_answer_that_is_no_number_is_refused(tmp_path: Path, gold: str | None) -> None:
    with pytest.raises(UserError, match="question 7: (there is no|the) gold answer"):
        score_file(answers(tmp_path, {"id": 7, "answer": "1"}), [Question(7, "?", gold)])


def test_multi_hop_rows_are_scored_with_the_tolerance() -> None:
    assert default_rule(QUESTIONS) == "round2"
    assert default_rule([Question(0, "?", "1", {"calculation": ["<add>(1,0)=1"]})]) == "relative"
