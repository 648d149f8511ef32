"""The project's own training data: seeded word problems for the 13 arithmetic tools, and plain text without calls.

Invariant: results are computed by the tools themselves, and the span of a call covers exactly the text that the
result was put in as. The same settings give the same examples on any machine, and the problems of one tool do not
depend on which other tools are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from random import Random

from toolken.config import GenerateSection
from toolken.data.example import CallSpan, Example
from toolken.data.plain import ADJECTIVES, CITIES, DIALOGUES, NAMES, PLACES, PROSE, THINGS, WEATHERS
from toolken.data.problems import PROBLEMS
from toolken.data.two_hop import TWO_HOP, TwoHop
from toolken.errors import ToolError, UserError, did_you_mean
from toolken.tools.arithmetic import ARITHMETIC
from toolken.tools.results import format_result

ORIGIN = "generated"
ATTEMPTS = 200  # draws for one new problem before its template counts as used up
_COUNTED = ("{things}", "visitor", "seats", "guests", "children")
_SLOT = re.compile(r"\{(\w+)\}")


def _words(random: Random) -> dict[str, str]:
    name, other = random.sample(NAMES, 2)
    return {
        "name": name,
        "other": other,
        "things": random.choice(THINGS),
        "thing": random.choice(THINGS),
        "place": random.choice(PLACES),
        "city": random.choice(CITIES),
        "adjective": random.choice(ADJECTIVES),
        "weather": random.choice(WEATHERS),
        "n": str(random.randint(2, 98)),
        "year": str(random.randint(1780, 2024)),
        "price": f"{random.randint(3, 48)}.{random.choice(['20', '50', '75', '90'])}",
        "time": f"{random.randint(6, 21)}:{random.choice(['00', '15', '30', '45'])}",
    }


def _fill(template: str, values: Mapping[str, str]) -> str:
    return _SLOT.sub(lambda slot: values[slot[1]], template)


def _fill_calls(template: str, values: Mapping[str, str], calls: Mapping[str, tuple[str, str]]) -> Example:
    """Fill an answer; the first place of each result becomes the span of its call (tool, arguments)."""
    text, done = "", 0
    spans: dict[str, CallSpan] = {}
    for slot in _SLOT.finditer(template):
        text += template[done : slot.start()]
        value = values[slot[1]]
        if slot[1] in calls and slot[1] not in spans:
            spans[slot[1]] = CallSpan(len(text), len(text) + len(value), *calls[slot[1]])
        text += value
        done = slot.end()
    return Example("", text + template[done:], tuple(spans.values()))


def _compute(tool: str, arguments: Sequence[str]) -> str:
    numbers = [Fraction(text) for text in arguments]
    return format_result(ARITHMETIC[tool](*(int(n) if n.denominator == 1 else n for n in numbers)))


def _in_words(numbers: Sequence[str]) -> str:
    return f"{', '.join(numbers[:-1])} and {numbers[-1]}" if len(numbers) > 1 else "".join(numbers)


def _arguments(question: str, random: Random) -> int:
    """Return how many numbers a question asks about."""
    if "{b}" in question:
        return 2
    if "{list}" not in question:
        return 1
    return 2 if "{a}" in question else random.choice([3, 4])


def _one_hop(tool: str, number: int, *, random: Random) -> Example:
    """Write a problem; templates take turns, so that even a few problems show several."""
    problem = PROBLEMS[tool]
    question = problem.questions[number % len(problem.questions)]
    answer = problem.answers[random.randrange(len(problem.answers))]
    numbers = problem.numbers(random, _arguments(question, random), not any(word in question for word in _COUNTED))
    values = {
        **_words(random),
        **dict(zip("abcd", numbers, strict=False)),
        "list": _in_words(numbers),
        "comma": ",".join(numbers),
        "expression": problem.operator.join(numbers),
        "r": _compute(tool, numbers),
    }
    told = _fill_calls(answer, values, {"r": (tool, ", ".join(numbers))})
    return Example(_fill(question, values), told.answer, told.calls)


def _two_hop(template: TwoHop, random: Random) -> Example:
    values = _words(random)
    for letter, (low, high) in zip("abc", template.ranges, strict=False):
        values[letter] = str(random.randint(low, high))
    calls = {}
    for slot, step in zip("pr", template.steps, strict=True):
        arguments = [values.get(letter, letter) for letter in step.arguments]
        values[slot] = _compute(step.tool, arguments)
        calls[slot] = (step.tool, ", ".join(arguments))
    told = _fill_calls(template.answer, values, calls)
    return Example(_fill(template.question, values), told.answer, told.calls)


def _plain(random: Random) -> Example:
    values = _words(random)
    if random.random() < 0.5:
        return Example("", _fill(random.choice(PROSE), values))
    question, answer = random.choice(DIALOGUES)
    return Example(_fill(question, values), _fill(answer, values))


def _distinct(count: int, name: str, draw: Callable[[int], Example]) -> Iterator[Example]:
    """Yield so many different problems, each with its origin."""
    seen: set[str] = set()
    for number in range(count):
        for _ in range(ATTEMPTS):
            try:
                example = draw(number)
            except ToolError:  # an unlucky draw, such as a result beyond the limits
                continue
            key = example.question + example.answer
            if key not in seen:
                seen.add(key)
                yield Example(example.question, example.answer, example.calls, f"{ORIGIN}:{name}:{number + 1}")
                break
        else:
            raise UserError(f"data.generate {name}", f"only {number} different texts can be made", "ask for fewer")


def generate_examples(section: GenerateSection, tools: Sequence[str], *, seed: int) -> list[Example]:
    """Write problems for the arithmetic tools among `tools`, in a random order.

    Args:
        section: How many one-hop problems a tool, two-hop problems and plain texts to write.
        tools: Tool names; those that are not arithmetic are passed over.
        seed: Seed of everything; another seed gives other problems.

    Raises:
        UserError: None of the tools is arithmetic, or more texts are asked for than there are.
    """
    known = [tool for tool in tools if tool in PROBLEMS]
    if not known and section.per_tool:
        wrong = tools[0] if tools else ""
        raise UserError(f"data source {ORIGIN}", f"no problems for <{wrong}>", did_you_mean(wrong, PROBLEMS))
    examples: list[Example] = []
    for tool in known:
        examples += _distinct(section.per_tool, tool, partial(_one_hop, tool, random=Random(f"{seed}:{tool}")))
    fitting = [template for template in TWO_HOP if all(step.tool in known for step in template.steps)]
    if section.two_hop and not fitting:
        raise UserError("data.generate.two_hop", "no two-hop problem uses these tools only", "set it to 0 or add tools")
    pairs = Random(f"{seed}:two-hop")
    examples += _distinct(section.two_hop, "two-hop", lambda n: _two_hop(fitting[n % len(fitting)], pairs))
    texts = Random(f"{seed}:plain")
    examples += _distinct(section.plain, "plain", lambda _: _plain(texts))
    Random(f"{seed}:order").shuffle(examples)
    return examples
