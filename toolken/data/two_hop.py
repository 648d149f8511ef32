"""Templates of the generated problems with two calls, the second of which reads the result of the first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One call of a two-hop problem: the tool and its arguments, letters of numbers, `p` for the first result."""

    tool: str
    arguments: str


@dataclass(frozen=True)
class TwoHop:
    """A problem with two calls, `{p}` and `{r}` being their results; `ranges` bounds `{a}`, `{b}`, `{c}`."""

    question: str
    answer: str
    steps: tuple[Step, Step]
    ranges: tuple[tuple[int, int], ...]


TWO_HOP: tuple[TwoHop, ...] = (
    TwoHop(
        "{name} buys {a} packs of {b} {things} and finds {c} more at home. How many {things} does {name} have?",
        "The packs hold {a}*{b}={p} {things}. With those at home there are {p}+{c}={r}.",
        (Step("multiply", "ab"), Step("add", "pc")),
        ((23, 180), (14, 96), (120, 2900)),
    ),
    TwoHop(
        "A {place} has {a} {things} and gets {b} more. It sells them in lots of {c}. How many lots "
        "is that, as a decimal number?",
        "There are {a}+{b}={p} {things}. That is {p}/{c}={r} lots.",
        (Step("add", "ab"), Step("divide", "pc")),
        ((450, 9800), (450, 9800), (13, 97)),
    ),
    TwoHop(
        "{name} earns {a} dollars a week for {b} weeks and spends {c} dollars. How much is left?",
        "{name} earns {a} * {b} = {p} dollars. After spending, {p} - {c} = {r} dollars are left.",
        (Step("multiply", "ab"), Step("subtract", "pc")),
        ((310, 990), (12, 51), (210, 2900)),
    ),
    TwoHop(
        "Of {a} {things} {b} are broken. Each of the others is sold for {c} dollars. What do they bring in?",
        "The difference is {a}-{b}={p}, so {p} can be sold. They bring in {p}*{c}={r} dollars.",
        (Step("subtract", "ab"), Step("multiply", "pc")),
        ((2100, 9900), (110, 1900), (13, 87)),
    ),
    TwoHop(
        "A square has the area of two fields of {a} and {b} square meters together. How long is its side?",
        "The fields cover {p} square meters together. The side is the square root of {p}, which is {r}.",
        (Step("add", "ab"), Step("sqrt", "p")),
        ((450, 9800), (450, 9800)),
    ),
    TwoHop(
        "{a} crates hold {b} {things} each. They are repacked into boxes of {c}. How many {things} are left over?",
        "The crates hold {a}*{b}={p} {things}. Dividing {p} by {c} leaves a remainder of {r}.",
        (Step("multiply", "ab"), Step("remainder", "pc")),
        ((31, 190), (17, 98), (23, 96)),
    ),
    TwoHop(
        "A team of {b} is picked from {a} people, and each team can have one of {c} shirts. How many ways are there?",
        "There are {p} teams. With the shirts that makes {p} * {c} = {r} ways.",
        (Step("choose", "ab"), Step("multiply", "pc")),
        ((14, 30), (3, 7), (12, 48)),
    ),
    TwoHop(
        "A cube with sides of {a} centimeters is filled {b} times. How many cubic centimeters is that?",
        "The cube holds {a}^3={p} cubic centimeters. Filled {b} times that is {p}*{b}={r}.",
        (Step("power", "a3"), Step("multiply", "pb")),
        ((13, 97), (12, 96)),
    ),
)
