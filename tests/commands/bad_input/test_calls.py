"""Calls in training text that cannot be: the file and line, what is wrong with the span or the markup, the fix."""

from __future__ import annotations

import pytest

from tests.commands.bad_input.refusal import Bench, Refusal, rows

GOOD = {"question": "3 + 4?", "answer": "It is <add>(3, 4)=7<eoe>7."}
CHECK = "data validate f.jsonl --tools arithmetic"


def span(**changes: object) -> str:
    """A good row and one whose call has changes."""
    call = {"start": 6, "end": 7, "tool": "add", "arguments": "3, 4"}
    return rows(GOOD, {"question": "3 + 4?", "answer": "It is 7 now.", "calls": [{**call, **changes}]})


def inline(answer: str) -> str:
    """A good row and one with this answer."""
    return rows(GOOD, {"question": "3 + 4?", "answer": answer})


def published(answer: str, *equations: str) -> str:
    """A good row and one of the published form."""
    return rows(GOOD, {"question": "3 + 4?", "text": answer, "tar_eq": list(equations)})


REFUSALS = [
    Refusal(
        "a span outside the text",
        {"f.jsonl": span(end=99)},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the span 6:99 of <add> lies outside the text of "
        "12 characters; spans count characters of the answer, end exclusive; mend them, or train with "
        "`--data.on_bad_row skip`",
    ),
    Refusal(
        "a span before the text",
        {"f.jsonl": span(start=-1)},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the span -1:7 of <add> lies outside the text of "
        "12 characters; spans count characters of the answer, end exclusive; mend them, or train with "
        "`--data.on_bad_row skip`",
    ),
    Refusal(
        "a span of nothing",
        {"f.jsonl": span(end=6)},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the span 6:6 of <add> lies outside the text of "
        "12 characters; spans count characters of the answer, end exclusive; mend them, or train with "
        "`--data.on_bad_row skip`",
    ),
    Refusal(
        "a span that is no number",
        {"f.jsonl": span(start="6")},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: a call has start '6', end 7 and tool 'add'; "
        "`start` and `end` are whole numbers, `tool` is text; mend them, or train with `--data.on_bad_row "
        "skip`",
    ),
    Refusal(
        "a span with white space",
        {"f.jsonl": span(end=8)},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the span 6:8 of <add> covers white space ('7 "
        "'); trim it; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "a span of a part of a number",
        {
            "f.jsonl": rows(
                GOOD,
                {
                    "question": "q",
                    "answer": "It is 77.",
                    "calls": [{"start": 6, "end": 7, "tool": "add", "arguments": "3, 4"}],
                },
            )
        },
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the span 6:7 of <add> covers '7', a part of a "
        "number in 'It is 77.'; cover the whole number; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "a span whose text is not the result",
        {"f.jsonl": span(result=8)},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the span 6:7 of <add> covers '7', not its "
        "result 8; let the span cover the result; `end` is exclusive; mend them, or train with "
        "`--data.on_bad_row skip`",
    ),
    Refusal(
        "overlapping spans",
        {
            "f.jsonl": rows(
                GOOD,
                {
                    "question": "q",
                    "answer": "It is 77.",
                    "calls": [{"start": 6, "end": 8, "tool": "add", "arguments": "3, 4"}] * 2,
                },
            )
        },
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the span 6:8 of <add> overlaps the one before "
        "or is out of order; sort the calls by start and keep them apart; mend them, or train with "
        "`--data.on_bad_row skip`",
    ),
    Refusal(
        "a tool that is not in the set",
        {"f.jsonl": span(tool="gdc")},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: no tool <gdc> in the tool set; did you mean "
        "`gcd`?; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "a call without arguments",
        {"f.jsonl": rows(GOOD, {"question": "q", "answer": "7", "calls": [{"start": 0, "end": 1, "tool": "add"}]})},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: a call has no `arguments`; write start, end, "
        "tool, arguments; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "arguments that are a number",
        {"f.jsonl": span(arguments=5)},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: `arguments` of a call is int; write text, a "
        "list or an object; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "calls that are no list",
        {"f.jsonl": rows(GOOD, {"question": "q", "answer": "7", "calls": {}})},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: `calls` is dict, not a list; write a list of "
        "objects; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "a call that is no object",
        {"f.jsonl": rows(GOOD, {"question": "q", "answer": "7", "calls": [5]})},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: a call is int, not an object; write start, end, "
        "tool, arguments; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "a marked result that the text does not repeat",
        {"f.jsonl": inline("It is <add>(3, 4)=7<eoe>8.")},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: <add> gives '7', but the text goes on with "
        "'8.'; repeat the result after <eoe>; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "a marked call without a bracket",
        {"f.jsonl": inline("It is <add>(3, 4=7<eoe>7.")},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the call of <add> has no closing bracket; write "
        "<tool>(arguments)=result<eoe>; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "a marked call without an end",
        {"f.jsonl": inline("It is <add>(3, 4)=7.")},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the call of <add> has no <eoe>; write "
        "<tool>(arguments)=result<eoe>; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "a marked call without a result",
        {"f.jsonl": inline("It is <add>(3, 4) 7<eoe>7.")},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the call of <add> has no = after the bracket; "
        "write <tool>(arguments)=result<eoe>; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "a marked call in a call",
        {"f.jsonl": inline("It is <add>(<add>(1, 2)=3<eoe>3, 4)=7<eoe>7.")},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: <add> stands inside another call; write one "
        "call after the other; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "a marked call in a number",
        {"f.jsonl": inline("It is 1<add>(3, 4)=7<eoe>7.")},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the result '7' of <add> stands inside a number; "
        "let it be the whole number; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "an end without a call",
        {"f.jsonl": inline("It is <eoe>7.")},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: <eoe> without a call; write "
        "<tool>(arguments)=result<eoe>result, or no markup; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "a marked tool that is not in the set",
        {"f.jsonl": inline("It is <plus>(3, 4)=7<eoe>7.")},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: no tool <plus> in the tool set; known: add, "
        "subtract, multiply, divide, power, sqrt, log, ln, lcm, gcd, remainder, choose, permutate; mend "
        "them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "published calls that are none",
        {"f.jsonl": published("It is 7.", "3 + 4 = 7")},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: `tar_eq` holds '3 + 4 = 7'; write "
        "<tool>(arguments)=result<eoe>; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "no published call",
        {"f.jsonl": published("It is 7.")},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: `tar_eq` is empty: the row has no call; add the "
        "call, or leave `tar_eq` out; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "a published result that is not there",
        {"f.jsonl": published("It is 8.", "<add>(3,4)=7<eoe>")},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the result '7' does not stand in the answer; "
        "write it as the answer has it; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "a published result in two places",
        {"f.jsonl": published("It is 7, yes, 7.", "<add>(3,4)=7<eoe>")},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the result '7' stands in more than one place; "
        "give character spans instead; mend them, or train with `--data.on_bad_row skip`",
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=[refusal.name for refusal in REFUSALS])
def test_calls_that_cannot_be_used_are_refused_in_one_line(bench: Bench, refusal: Refusal) -> None:
    bench.check(refusal)
