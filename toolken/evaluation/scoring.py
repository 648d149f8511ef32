"""Answers against gold: right, wrong, or not to be scored, which is counted apart.

Two published rules. `round2`: equal after rounding both to two decimals (one-hop FuncQA, GSM8K-XL). `relative`:
within 0.1 % of the gold value (multi-hop FuncQA). Arithmetic is exact, so that whole numbers of any size compare. A
score covers every question of the gold file, or says how many lack an answer; it never quietly counts a part.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from toolken.data.questions import Question
from toolken.data.values import read_value
from toolken.errors import UserError
from toolken.files import read_text
from toolken.metrics import Rate

Rule = Literal["round2", "relative"]
TOLERANCE = Fraction(1, 1000)


class Verdict(enum.Enum):
    """What one answer is worth."""

    RIGHT = "right"
    WRONG = "wrong"
    UNSCORABLE = "unscorable"


@dataclass(frozen=True)
class Score:
    """Verdicts of a file of answers.

    Attributes:
        verdicts: Verdict by question id, in the order of the questions.
        missing: Ids of questions without an answer; not in `verdicts`.
        rule: How answers were compared.
        called: Answers with at least one call.
        calls: Calls in all; `failed`: those whose outcome is not `ok`.
    """

    verdicts: Mapping[str | int, Verdict]
    missing: tuple[str | int, ...]
    rule: Rule
    called: int
    calls: int
    failed: int

    def count(self, verdict: Verdict) -> int:
        """Return how many answers got this verdict."""
        return sum(found is verdict for found in self.verdicts.values())

    @property
    def accuracy(self) -> Rate:
        """Right answers out of all answers; what cannot be scored is not right."""
        return Rate(self.count(Verdict.RIGHT), len(self.verdicts))

    @property
    def unscorable(self) -> Rate:
        """Answers without a number that could be compared, out of all answers."""
        return Rate(self.count(Verdict.UNSCORABLE), len(self.verdicts))

    def as_dict(self) -> dict[str, object]:
        """Return the JSON form, with n and 95 % intervals."""
        return {
            "rule": self.rule,
            "accuracy": self.accuracy.as_dict(),
            "right": self.count(Verdict.RIGHT),
            "wrong": self.count(Verdict.WRONG),
            "unscorable": self.count(Verdict.UNSCORABLE),
            "missing": len(self.missing),
            "answers_with_calls": self.called,
            "calls": self.calls,
            "failed_calls": self.failed,
        }

    def __str__(self) -> str:
        """Return the line for people."""
        parts = [
            f"accuracy {self.accuracy}",
            f"{self.count(Verdict.WRONG)} wrong, {self.count(Verdict.UNSCORABLE)} could not be scored",
            f"rule {self.rule}",
            f"{self.called} answers with calls, {self.failed} of {self.calls} calls failed",
        ]
        return "; ".join(parts + [f"{len(self.missing)} questions have no answer"] * bool(self.missing))


def score(answer: Fraction | str | None, gold: str | int | float, *, rule: Rule) -> Verdict:
    """Compare one answer with its gold value.

    Args:
        answer: A value, a text that holds one, or None where nothing was answered.
        gold: Number, or text that holds one.
        rule: `round2` rounds halves to even, on exact decimals; `relative` accepts 0.1 % of the gold value either way.

    Raises:
        UserError: The gold value is no number.
    """
    wanted = gold_value(gold, "gold answer")
    given = read_value(answer) if isinstance(answer, str) else answer
    if given is None:
        return Verdict.UNSCORABLE
    if rule == "round2":
        right = round(given, 2) == round(wanted, 2)
    else:
        right = abs(given - wanted) <= TOLERANCE * abs(wanted)
    return Verdict.RIGHT if right else Verdict.WRONG


def gold_value(gold: str | int | float | None, where: str) -> Fraction:
    """Return the exact value of a gold answer; decimals are taken as they are written.

    Raises:
        UserError: It is no number.
    """
    value = None if gold is None or isinstance(gold, bool) else read_value(str(gold))
    if value is None:
        problem = "there is no gold answer" if gold is None else f"the gold answer {gold!r} is no number"
        raise UserError(where, problem, "score questions whose answers are numbers")
    return value


def default_rule(questions: Sequence[Question]) -> Rule:
    """Return the published rule: multi-hop FuncQA, whose rows list a `calculation`, is scored with the tolerance."""
    return "relative" if any("calculation" in question.metadata for question in questions) else "round2"


def score_file(path: Path, questions: Sequence[Question], *, rule: Rule | None = None, partial: bool = False) -> Score:
    """Score the output of `infer` against questions with gold answers.

    Args:
        path: JSONL with `id` and `answer`; `calls` are counted where they are given.
        questions: All questions of the benchmark.
        rule: How to compare; None takes the published rule of the benchmark.
        partial: Score what is there although some questions have no answer.

    Raises:
        UserError: A row that is malformed, repeated or of no question, a gold answer that is no number, or missing
            answers.
    """
    rule = default_rule(questions) if rule is None else rule
    rows = _read_answers(path, {question.id for question in questions})
    missing = tuple(question.id for question in questions if question.id not in rows)
    if missing and (not partial or not rows):
        raise UserError(
            str(path),
            f"{len(missing)} of {len(questions)} questions have no answer (the first is {missing[0]!r})",
            "finish the inference, or score a part with `--partial`",
        )
    verdicts: dict[str | int, Verdict] = {}
    called = calls = failed = 0
    for question in questions:
        if question.id not in rows:
            continue
        row = rows[question.id]
        answer = row["answer"]
        wanted = gold_value(question.answer, f"question {question.id!r}")
        verdicts[question.id] = score(None if answer is None else str(answer), str(wanted), rule=rule)
        made = row.get("calls") or []
        made = made if isinstance(made, list) else []
        called += bool(made)
        calls += len(made)
        failed += sum(not _succeeded(call) for call in made)
    return Score(verdicts, missing, rule, called, calls, failed)


def _succeeded(call: object) -> bool:
    outcome = call.get("outcome") if isinstance(call, Mapping) else None
    return isinstance(outcome, Mapping) and outcome.get("status") == "ok"


def _read_answers(path: Path, known: set[str | int]) -> dict[str | int, dict[str, object]]:
    fix = "give the JSONL that `infer --output` wrote"
    lines = read_text(path, fix).split("\n")  # not splitlines: JSON texts may hold other separators
    rows: dict[str | int, dict[str, object]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UserError(where, f"is not JSON ({error})", "every line is one answer") from None
        if not isinstance(row, dict) or "answer" not in row or not isinstance(row.get("id"), (str, int)):
            raise UserError(where, "has no `id` or no `answer`", fix)
        if row["id"] not in known:
            raise UserError(
                where, f"answers {row['id']!r}, which is no question of the benchmark", "score it against its own file"
            )
        if row["id"] in rows:
            raise UserError(where, f"answers {row['id']!r} again", "keep one answer for each question")
        rows[row["id"]] = row
    return rows
