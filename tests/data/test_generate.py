"""Generated problems: exact spans, gold calls, the same from the same seed."""

from collections import Counter
from fractions import Fraction

import pytest

from tests.data.spacing import space_agreement
from toolken.config import GenerateSection
from toolken.data.example import Example
from toolken.data.generate import generate_examples
from toolken.data.inline import cuts_number
from toolken.data.plain import DIALOGUES, PROSE
from toolken.data.problems import PROBLEMS
from toolken.errors import UserError
from toolken.tools.arithmetic import ARITHMETIC
from toolken.tools.results import format_result

TOOLS = ARITHMETIC.names
SECTION = GenerateSection(per_tool=20, two_hop=24, plain=40)
EXAMPLES = generate_examples(SECTION, TOOLS, seed=0)


def calls_of(examples: list[Example]) -> Counter[int]:
    return Counter(len(example.calls) for example in examples)


def test_every_tool_has_enough_ways_to_ask_and_to_answer() -> None:
    assert set(PROBLEMS) == set(TOOLS)
    assert all(len(problem.questions) >= 6 and len(problem.answers) >= 3 for problem in PROBLEMS.values())


def test_as_many_examples_as_asked_for_and_no_two_alike() -> None:
    assert calls_of(EXAMPLES) == {1: 13 * 20, 2: 24, 0: 40}
    assert Counter(e.calls[0].tool for e in EXAMPLES if len(e.calls) == 1) == dict.fromkeys(TOOLS, 20)
    assert len({(e.question, e.answer) for e in EXAMPLES}) == len(EXAMPLES)
    assert len({e.origin for e in EXAMPLES}) == len(EXAMPLES)


def test_every_span_covers_what_the_tool_itself_computes() -> None:
    for example in EXAMPLES:
        for call in example.calls:
            numbers = [Fraction(part) for part in call.arguments.split(", ")]
            whole = [int(n) if n.denominator == 1 else n for n in numbers]
            assert example.result(call) == format_result(ARITHMETIC[call.tool](*whole)), example
            assert not cuts_number(example.answer, call.start, call.end), example
            assert "{" not in example.question + example.answer


def test_the_second_hop_reads_the_result_of_the_first() -> None:
    for example in EXAMPLES:
        if len(example.calls) == 2:
            assert example.result(example.calls[0]) in example.calls[1].arguments.split(", ")


def test_the_same_seed_gives_the_same_and_another_gives_others() -> None:
    assert generate_examples(SECTION, TOOLS, seed=0) == EXAMPLES
    other = generate_examples(SECTION, TOOLS, seed=1)
    assert len({e.question for e in other if e.calls} & {e.question for e in EXAMPLES if e.calls}) < 5


def test_the_problems_of_a_tool_do_not_depend_on_the_other_tools() -> None:
    alone = generate_examples(GenerateSection(per_tool=20), ["gcd", "my_tool"], seed=0)
    both = [e for e in EXAMPLES if len(e.calls) == 1 and e.calls[0].tool == "gcd"]
    assert sorted(alone, key=lambda e: e.origin) == sorted(both, key=lambda e: e.origin)


def test_plain_text_has_no_call_and_comes_with_and_without_questions() -> None:
    plain = [e for e in EXAMPLES if not e.calls]
    assert {bool(e.question) for e in plain} == {True, False}
    assert any(c.isdigit() for e in plain for c in e.answer) and any(not any(map(str.isdigit, e.answer)) for e in plain)
    assert len(PROSE) + len(DIALOGUES) >= 20


def test_plain_texts_of_two_seeds_hardly_meet() -> None:
    section = GenerateSection(per_tool=1, plain=200)
    rows = [generate_examples(section, TOOLS, seed=seed) for seed in (0, 1)]
    seen, unseen = ({e.question + e.answer for e in part if not e.calls} for part in rows)
    assert len(seen & unseen) <= 4


def test_results_are_spaced_as_the_rule_for_spaces_has_it() -> None:
    assert space_agreement(EXAMPLES).share == 1.0


def test_what_cannot_be_generated_is_refused() -> None:
    with pytest.raises(UserError, match="no problems for <my_tool>"):
        generate_examples(GenerateSection(), ["my_tool"], seed=0)
    with pytest.raises(UserError, match="no two-hop problem uses these tools only"):
        generate_examples(GenerateSection(two_hop=1), ["gcd"], seed=0)
