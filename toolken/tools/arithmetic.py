"""The 13 FuncQA operations, exact on rationals of any size within limits.

Invariant: a rational result is exact (`int` or `Fraction`), an irrational one is the nearest float64, and nothing
else comes back: complex, undefined, infinite and oversized results raise `ToolError`. Sizes are estimated before
anything large is computed. Source: Hao et al., "ToolkenGPT", arXiv 2305.11554, appendix on FuncQA.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from toolken.errors import ToolError
from toolken.tools.exact import MAX_BITS, Number, as_whole, bits, checked, decimal_function, exact_power, exact_sqrt
from toolken.tools.tool import tool
from toolken.tools.toolset import ToolSet


def add(a: Number, b: Number, *more: Number) -> Number:
    """Sum of two or more numbers."""
    total = checked(a + b)
    for value in more:
        total = checked(total + value)
    return total


def subtract(a: Number, b: Number) -> Number:
    """Difference: the first number less the second."""
    return checked(a - b)


def multiply(a: Number, b: Number, *more: Number) -> Number:
    """Product of two or more numbers."""
    product = checked(a * b)
    for value in more:
        product = checked(product * value)
    return product


def divide(a: Number, b: Number, *more: Number) -> Number:
    """Quotient: the first number divided by the second, then by each further one."""
    quotient = a
    for value in (b, *more):
        if value == 0:
            raise ToolError("division by zero")
        quotient = checked(quotient / value if isinstance(value, float) else quotient * (1 / Fraction(value)))
    return quotient


def power(base: Number, exponent: Number) -> Number:
    """The base raised to the exponent."""
    return exact_power(base, exponent)


def sqrt(x: Number) -> Number:
    """Square root."""
    return exact_sqrt(x)


def log(x: Number) -> Number:
    """Logarithm to base 10."""
    if x <= 0:
        raise ToolError("the logarithm of a number that is not positive is undefined")
    if not isinstance(x, float):
        value = Fraction(x)
        for sign, whole, other in ((1, value.numerator, value.denominator), (-1, value.denominator, value.numerator)):
            digits = round(bits(whole) * math.log10(2)) if other == 1 else 0
            for exponent in (digits - 1, digits):
                if other == 1 and exponent >= 0 and whole == 10**exponent:
                    return sign * exponent
    return decimal_function("log10", x)


def ln(x: Number) -> Number:
    """Natural logarithm."""
    if x <= 0:
        raise ToolError("the logarithm of a number that is not positive is undefined")
    return 0 if x == 1 else decimal_function("ln", x)


def lcm(a: int, b: int, *more: int) -> int:
    """Least common multiple of two or more whole numbers."""
    values = [as_whole(value, "lcm") for value in (a, b, *more)]
    if sum(bits(value) for value in values) > MAX_BITS:
        raise ToolError("the result of lcm may be too large")
    return math.lcm(*values)


def gcd(a: int, b: int, *more: int) -> int:
    """Greatest common divisor of two or more whole numbers."""
    return math.gcd(*(as_whole(value, "gcd") for value in (a, b, *more)))


def remainder(a: Number, b: Number) -> Number:
    """Remainder of the first number divided by the second.

    It has the sign of the divisor: `a - b * floor(a / b)`, so -7 and 3 give 2, and 7 and -3 give -2.
    """
    if b == 0:
        raise ToolError("division by zero")
    return checked(a % b)


def choose(n: int, k: int) -> int:
    """Number of ways to choose k of n things, without order."""
    n, k = _counts("choose", n, k)
    if k > n:
        return 0
    few = min(k, n - k)
    if _log2_permutations(n, few) - math.lgamma(few + 1) / math.log(2) > MAX_BITS:
        raise ToolError("the result of choose is too large")
    return math.comb(n, few)


def permutate(n: int, k: int) -> int:
    """Number of ways to arrange k of n things, in order."""
    n, k = _counts("permutate", n, k)
    if k > n:
        return 0
    if _log2_permutations(n, k) > MAX_BITS:
        raise ToolError("the result of permutate is too large")
    return math.perm(n, k)


def _counts(name: str, n: int, k: int) -> tuple[int, int]:
    n, k = as_whole(n, name), as_whole(k, name)
    if n < 0 or k < 0:
        raise ToolError(f"{name} is undefined for negative numbers")
    if max(bits(n), bits(k)) > 1000:
        raise ToolError(f"the numbers of {name} are too large")
    return n, k


def _log2_permutations(n: int, k: int) -> float:
    """Estimate log2(n! / (n-k)!), to within a bit where it matters; for huge n the two lgamma would cancel."""
    if n > 10**12:
        return k * math.log2(n) if k < 10**6 else math.inf
    return (math.lgamma(n + 1) - math.lgamma(n - k + 1)) / math.log(2)


_FUNCTIONS: tuple[Callable[..., object], ...] = (
    add,
    subtract,
    multiply,
    divide,
    power,
    sqrt,
    log,
    ln,
    lcm,
    gcd,
    remainder,
    choose,
    permutate,
)

REFERENCE = "builtin:arithmetic."
"""What the references of these tools start with; an artefact's own bind by it."""

ARITHMETIC = ToolSet(replace(tool(function), reference=REFERENCE + function.__name__) for function in _FUNCTIONS)
