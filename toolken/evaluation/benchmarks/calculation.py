"""Math benchmarks: questions whose answer is a number that tools compute, and why an answer to one is wrong.

Invariant: the cause follows from the calls and the gold calculation alone. Sums, products and quotients of several
numbers count as so many steps of two, so that one call of three numbers equals two calls of two. Tools are
deterministic: right tools that all ran and never gave the gold value were given wrong arguments.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from pydantic import JsonValue

from toolken.data.questions import Question, read_questions
from toolken.errors import ToolError
from toolken.evaluation.benchmarks.benchmark import Cause, Item, Mark, Split
from toolken.evaluation.scoring import Rule, Verdict, score
from toolken.inference.engine import Answer
from toolken.inference.events import CallRecord
from toolken.tools.arguments import parse_arguments
from toolken.tools.tool import Tool
from toolken.tools.toolset import ToolSet

STEPS = "steps"
"""Metadata of an item: the tools of its gold calculation, one name a step; absent where it is not known."""

_CALL = re.compile(r"-?<(\w+)>\((.*?)\)\s*=")
_NUMBER = re.compile(r"[-+]?\d*\.\d+|\d+")


@dataclass(frozen=True)
class CalculationBenchmark:
    """A math set; see `Benchmark` for the attributes that are not named here.

    Attributes:
        toolset: The tools.
        files: File of the questions of every split.
        rule: How an answer is compared with the gold value.
        announcement: What the published scorer looks for in front of the answer.
        steps: From the keys of a row to its gold calculation, one tool name a step; None where there is none.
    """

    name: str
    title: str
    published: Mapping[str, float]
    toolset: ToolSet
    files: Mapping[Split, str]
    rule: Rule
    announcement: str
    steps: Callable[[Mapping[str, object], ToolSet], list[str] | None]
    published_base: str = "LLaMA-33B"
    published_measure: str = "accuracy"
    measures: tuple[str, ...] = ()

    def tools(self, root: Path) -> ToolSet:
        """Return the operations, in row order."""
        return self.toolset

    def items(self, root: Path, split: Split) -> list[Item]:
        """Return the questions with their gold values and calculations."""
        return [self._item(question) for question in read_questions(self.files[split], root=root)]

    def _item(self, question: Question) -> Item:
        steps = self.steps(question.metadata, self.toolset)
        metadata: dict[str, JsonValue] = {} if steps is None else {STEPS: [*steps]}
        return Item(question.id, question.question, question.answer, metadata)

    def mark(self, item: Item, answer: Answer) -> Mark:
        """Compare the answer with the gold value, and say what went wrong."""
        gold = str(item.gold)
        verdict = score(answer.answer, gold, rule=self.rule)
        known = item.metadata.get(STEPS)
        steps = [str(step) for step in known] if isinstance(known, list) else None
        cause = attribute(answer, verdict, gold=gold, steps=steps, rule=self.rule, tools=self.toolset)
        published = published_verdict(answer.text, gold, rule=self.rule, after=self.announcement)
        return Mark(verdict, cause, published, tools=tuple(steps or ()))


def called_steps(texts: Sequence[object], tools: ToolSet) -> list[str] | None:
    """Return the steps of gold calls written as `<add>(1, 2, 3)=6`; None where one cannot be read."""
    steps: list[str] = []
    for text in texts:
        match = _CALL.match(text.strip()) if isinstance(text, str) else None
        if match is None or match[1] not in tools.names:
            return None
        tool = tools[match[1]]
        try:
            steps += [tool.name] * _steps_of(tool, parse_arguments(match[2], tool))
        except ToolError:
            steps.append(tool.name)
    return steps


def _steps_of(tool: Tool, arguments: Mapping[str, object] | None) -> int:
    """Return how many steps of two numbers a call stands for."""
    more = (arguments or {}).get(tool.variadic or "")
    return 1 + (len(more) if isinstance(more, (list, tuple)) else 0)


def attempts(calls: Sequence[CallRecord]) -> list[CallRecord]:
    """Return the calls without the failed ones that the same tool was asked for again right after."""
    following = [*calls[1:], None]
    return [
        call
        for call, after in zip(calls, following, strict=True)
        if call.outcome.ok or after is None or after.tool != call.tool
    ]


def attribute(
    answer: Answer, verdict: Verdict, *, gold: str, steps: Sequence[str] | None, rule: Rule, tools: ToolSet
) -> Cause:
    """Return why an answer is right or wrong.

    Args:
        answer: The answer with its calls.
        verdict: What its final value is worth.
        gold: The gold value.
        steps: The gold calculation, one tool name a step; None where it is not known.
        rule: How values are compared with the gold one.
        tools: The benchmark's tools; others may have been called.
    """
    if verdict is not Verdict.WRONG:
        return Cause.RIGHT if verdict is Verdict.RIGHT else Cause.UNSCORABLE
    if not answer.calls:
        return Cause.NO_CALL
    if any(_gives(call, answer.text, gold, rule) for call in answer.calls):
        return Cause.WRONG_FINAL
    made = attempts(answer.calls)
    failed = any(not call.outcome.ok for call in made)
    if steps is None:
        return Cause.TOOL_FAILED if failed else Cause.WRONG
    called: Counter[str] = Counter()
    for call in made:
        called[call.tool] += _steps_of(tools[call.tool], call.arguments) if call.tool in tools.names else 1
    if called != Counter(steps):
        return Cause.WRONG_TOOL
    return Cause.TOOL_FAILED if failed else Cause.WRONG_ARGUMENTS


def _gives(call: CallRecord, text: str, gold: str, rule: Rule) -> bool:
    """Return whether a call came back with the gold value, as the tool gave it or as it was written."""
    if not call.outcome.ok:
        return False
    value = call.outcome.result
    exact = Fraction(value) if isinstance(value, (int, float, Fraction)) and not isinstance(value, bool) else None
    written = text[call.start : call.end] if call.start is not None else None
    return Verdict.RIGHT in (score(exact, gold, rule=rule), score(written, gold, rule=rule))


def published_verdict(text: str, gold: str, *, rule: Rule, after: str) -> bool:
    """Return the verdict of the published scorer, faults included.

    It takes the first number after the last announcement, commas deleted, and 0 where there is none; its pattern
    drops the sign of a whole number. A whole gold value is compared with the number cut to a whole one, another one
    after rounding both to two decimals; the tolerance is 0.1 % of the gold value.

    Args:
        text: What the model wrote.
        gold: The gold value.
        rule: `round2`, or `relative` for the tolerance.
        after: The announcement, `####` or `answer is`.
    """
    found = _NUMBER.search(text.rpartition(after)[2].replace(",", ""))
    given, wanted = float(found[0]) if found else 0.0, float(gold)
    if rule == "relative":
        return abs(given - wanted) <= 0.001 * abs(wanted)
    if wanted.is_integer() and "." not in gold:
        return int(given) == int(wanted)
    return round(given, 2) == round(wanted, 2)
