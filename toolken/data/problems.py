"""Templates of the generated one-hop problems: for every tool six questions or more, and three answers or more.

`{a}` and `{b}` are the arguments, `{list}` all of them in words, `{expression}` the calculation, `{r}` the result.
Names and things are drawn anew for each problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolken.data.draws import Draw, amounts, counts, falling, falling_whole, growth, shared, whole


@dataclass(frozen=True)
class Problem:
    """How problems of one tool are written; `{expression}` joins the arguments by `operator`."""

    questions: tuple[str, ...]
    answers: tuple[str, ...]
    numbers: Draw
    operator: str = ","


PROBLEMS: Mapping[str, Problem] = {
    "add": Problem(
        (
            "{name} has {a} {things} and {other} brings {b} more. How many {things} are there now?",
            "A {place} sold {a} {things} in spring and {b} in summer. How many {things} did it sell "
            "in the two seasons?",
            "The three rooms of a {place} hold {list} {things}. How many {things} is that in all?",
            "{name} paid {a} dollars for {things} and {b} dollars for transport. What did {name} pay in total?",
            "What is the sum of {list}?",
            "A truck drove {a} kilometers on Monday and {b} kilometers on Tuesday. How far did it drive?",
            "On four days a {place} counted {list} visitors. How many visitors came altogether?",
        ),
        (
            "In all that is {expression}={r}.",
            "Adding the numbers gives {expression}={r}.",
            "The total is {expression} = {r}.",
            "Put together, {list} make {r}.",
        ),
        amounts(112, 9876),
        "+",
    ),
    "subtract": Problem(
        (
            "{name} had {a} {things} and gave {b} of them to {other}. How many {things} are left?",
            "A {place} ordered {a} {things}, and {b} have arrived. How many are still missing?",
            "A tank holds {a} liters. After {b} liters are drawn off, how many liters remain?",
            "What is the difference between {a} and {b}?",
            "{name} saved {a} dollars and spent {b} dollars on {things}. How much money does {name} still have?",
            "The {place} in the valley has {a} visitors a year, the one by the sea {b}. How many fewer is that?",
        ),
        (
            "What is left is {a}-{b}={r}.",
            "Taking {b} away from {a} leaves {r}.",
            "The difference is {a} - {b} = {r}.",
        ),
        falling(213, 98765),
    ),
    "multiply": Problem(
        (
            "A box holds {a} {things}. How many {things} are in {b} boxes?",
            "{name} packs {a} {things} a day. How many does {name} pack in {b} days?",
            "A {place} buys {b} {things} at {a} dollars each. What does it pay?",
            "A rectangle is {a} centimeters wide and {b} centimeters long. What is its area in square centimeters?",
            "What is the product of {list}?",
            "A container measures {list} centimeters along its sides. What do these lengths give when multiplied?",
            "Each of {a} rows in a {place} has {b} seats. How many seats are there?",
        ),
        (
            "That makes {expression}={r}.",
            "Multiplying gives {expression} = {r}.",
            "The product of {list} is {r}.",
        ),
        amounts(23, 987),
        "*",
    ),
    "divide": Problem(
        (
            "{name} shares {a} {things} equally among {b} children. How many does each child get on average?",
            "A {place} used {a} liters of water in {b} days. How many liters is that per day?",
            "What is {a} divided by {b}?",
            "{b} {things} cost {a} dollars. What does one of them cost?",
            "A ship sailed {a} kilometers in {b} hours. What was its average speed in kilometers per hour?",
            "A rope of {a} centimeters is cut into {b} equal parts. How long is one part?",
        ),
        (
            "One share is {a}/{b}={r}.",
            "Dividing {a} by {b} gives {r}.",
            "The result is {a} / {b} = {r}.",
        ),
        falling(17, 9876),
    ),
    "power": Problem(
        (
            "The number of {things} in a game is multiplied by {a} in every round. By what factor "
            "has it grown after {b} rounds?",
            "What is {a} to the power of {b}?",
            "A value changes by the factor {a} every year. What factor is that over {b} years?",
            "A code has {b} places, and {a} is the factor that each place brings. How large is the "
            "factor of all places?",
            "{name} computes {a}^{b}. What does {name} get?",
            "A culture in a dish is {a} times as large after each hour. How many times as large is it after {b} hours?",
        ),
        (
            "That is {a}^{b}={r}.",
            "Raising {a} to the power of {b} gives {r}.",
            "After all of them the factor is {a}^{b} = {r}.",
        ),
        growth,
    ),
    "sqrt": Problem(
        (
            "What is the square root of {a}?",
            "A square garden of the {place} covers {a} square meters. How long is one side in meters?",
            "{name} measured a variance of {a}. What is the standard deviation?",
            "Which positive number gives {a} when it is multiplied by itself?",
            "The square floor of a {place} measures {a} square meters. What is the length of its side?",
            "A square screen has an area of {a} square centimeters. How wide is it?",
        ),
        (
            "It is the square root of {a}, which is {r}.",
            "The square root gives sqrt({a})={r}.",
            "Taking the root of {a} gives {r}.",
        ),
        amounts(211, 98765),
    ),
    "log": Problem(
        (
            "What is the logarithm of {a} to base 10?",
            "10^x={a}. What is x?",
            "A signal at the {place} is {a} times as strong as the reference. What is the base-10 "
            "logarithm of that ratio?",
            "To which power must 10 be raised to give {a}?",
            "{name} reads {a} on a scale with powers of ten. Which exponent is that?",
            "Find log({a}).",
        ),
        (
            "The logarithm is log({a})={r}.",
            "To base 10 the logarithm of {a} is {r}.",
            "The exponent of 10 that gives {a} is {r}.",
        ),
        amounts(12, 98765),
    ),
    "ln": Problem(
        (
            "What is the natural logarithm of {a}?",
            "e^x={a}. What is x?",
            "A quantity grows continuously at rate 1. After which time is it {a} times as large?",
            "To which power must e be raised to give {a}?",
            "Find ln({a}).",
            "{name} needs the logarithm of {a} to base e. What is it?",
        ),
        (
            "The natural logarithm is ln({a})={r}.",
            "Taking the natural logarithm of {a} gives {r}.",
            "To base e the exponent that gives {a} is {r}.",
        ),
        amounts(12, 98765),
    ),
    "lcm": Problem(
        (
            "Two lamps blink every {a} and every {b} seconds. They blink together now. After how "
            "many seconds do they do so again?",
            "What is the least common multiple of {list}?",
            "{name} visits the {place} every {a} days and {other} every {b} days. After how many "
            "days do they meet there again?",
            "Gears have {list} teeth. After how many teeth are they all back where they started?",
            "Bags come in packs of {a} and labels in packs of {b}. What is the smallest equal number of both?",
            "Which is the smallest number that {list} all divide?",
        ),
        (
            "It is the least common multiple of {list}, which is {r}.",
            "The smallest number that all of them divide is {r}.",
            "The answer is the lcm: lcm({comma})={r}.",
        ),
        whole(18, 480),
    ),
    "gcd": Problem(
        (
            "{name} has {a} {things} and {b} ribbons and makes equal bags of both. How many bags can there be at most?",
            "What is the greatest common divisor of {list}?",
            "A floor of {a} by {b} centimeters is laid with equal square tiles. How long is the side "
            "of the largest tile that fits?",
            "Ropes of {list} meters are cut into equal pieces with nothing left over. How long can a piece be at most?",
            "A {place} splits {a} adults and {b} children into identical groups. What is the largest number of groups?",
            "Which is the largest number that divides {list}?",
        ),
        (
            "It is the greatest common divisor of {list}, which is {r}.",
            "The largest number that divides all of them is {r}.",
            "The answer is the gcd: gcd({comma})={r}.",
        ),
        shared,
    ),
    "remainder": Problem(
        (
            "{name} packs {a} {things} into boxes of {b}. How many {things} are left over?",
            "What is the remainder of {a} divided by {b}?",
            "A {place} seats {a} guests at tables of {b}. How many guests sit at a table that is not full?",
            "{a} seconds have passed. How many seconds are left after the last full {b}?",
            "What is {a} mod {b}?",
            "A roll of {a} meters is cut into lengths of {b} meters. How many meters remain?",
        ),
        (
            "What is left over is {a} mod {b}={r}.",
            "Dividing {a} by {b} leaves a remainder of {r}.",
            "The remainder is {r}.",
        ),
        falling_whole(37, 9876),
    ),
    "choose": Problem(
        (
            "In how many ways can {name} pick {b} of {a} {things}?",
            "A {place} has {a} workers and forms a team of {b}. How many teams are possible?",
            "How many different sets of {b} cards can be drawn from {a} cards?",
            "{name} may take {b} out of {a} courses. How many selections are there?",
            "What is {a} choose {b}?",
            "Out of {a} players a coach sends {b} to a match. How many groups can be sent?",
        ),
        (
            "The order does not matter, so there are {r} ways.",
            "Choosing {b} out of {a} gives C({a},{b})={r}.",
            "There are {r} different choices.",
        ),
        counts(11, 40, 9),
    ),
    "permutate": Problem(
        (
            "In how many orders can the first {b} of {a} runners arrive?",
            "{name} puts {b} of {a} different {things} in a row. How many rows are possible?",
            "A {place} gives {b} different prizes to {a} guests, one prize a guest at most. In how many ways?",
            "How many words of {b} different letters can be made of {a} letters?",
            "A club of {a} members fills {b} different offices. How many ways are there?",
            "How many ordered selections of {b} out of {a} are there?",
        ),
        (
            "The order matters, so there are {r} ways.",
            "Arranging {b} out of {a} gives P({a},{b})={r}.",
            "There are {r} different arrangements.",
        ),
        counts(9, 30, 7),
    ),
}
