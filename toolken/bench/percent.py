"""A fourteenth tool with examples of its own: percentages, which none of the built-in tools is for."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from toolken.data.example import CallSpan, Example
from toolken.tools.results import format_result
from toolken.tools.tool import tool

QUESTIONS = (
    "What is {share} percent of {whole}?",
    "A shop sold {share} percent of its {whole} lamps. How many lamps is that?",
    "In a town of {whole} people, {share} percent ride a bicycle. How many people ride one?",
    "{share} percent of the {whole} tickets are left. How many tickets are left?",
    "A tank of {whole} liters is filled to {share} percent. How many liters are in it?",
    "How much is a fee of {share} percent on {whole} dollars?",
)
ANSWERS = (
    "{share} percent of {whole} is {result}.",
    "Taking {share} percent of {whole} gives {result}.",
    "As a part of the whole that is {share}% of {whole}={result}.",
)


@tool
def percent(share: float, whole: float) -> float:
    """A percentage of a number: share / 100 * whole."""
    return share / 100 * whole


def percent_examples(count: int, *, seed: int) -> list[Example]:
    """Return so many different problems; another seed gives others."""
    random = Random(f"{seed}:percent")
    found: dict[str, Example] = {}
    while len(found) < count:
        share, whole = random.randint(2, 98), random.randint(12, 980) * 5
        question = QUESTIONS[len(found) % len(QUESTIONS)].format(share=share, whole=whole)
        found[question] = _example(question, random.choice(ANSWERS), share=share, whole=whole, seed=seed)
    return list(found.values())


def _example(question: str, answer: str, *, share: int, whole: int, seed: int) -> Example:
    before, after = answer.split("{result}")
    result = format_result(Fraction(share * whole, 100))
    told = before.format(share=share, whole=whole)
    call = CallSpan(len(told), len(told) + len(result), percent.name, f"{share}, {whole}")
    return Example(question, told + result + after, (call,), f"percent:{seed}")
