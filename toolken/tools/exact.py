"""Exact numbers with a size limit: what the arithmetic tools and the argument grammar both compute with.

Invariant: a value is an `int`, a `Fraction` that is not whole, or a finite float64 (an irrational result, rounded to
nearest); none is longer than `MAX_BITS`. Undefined, complex and oversized results raise `ToolError`, before they cost
time.
"""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from typing import TypeAlias

from toolken.errors import ToolError

Number: TypeAlias = int | Fraction | float

MAX_BITS = 14_000
"""Longest numerator or denominator; about the 4,300 digits that Python converts to text."""

_DIGITS = 60
_MAX_ROOT = 64


def bits(value: Number) -> int:
    """Return the bits of the longer of numerator and denominator."""
    if isinstance(value, float):
        return 64
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def checked(value: Number) -> Number:
    """Return a value in its simplest form.

    Raises:
        ToolError: It is infinite, undefined or too long.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ToolError("the result is too large or undefined")
        return value
    if bits(value) > MAX_BITS:
        raise ToolError("the number is too large")
    return value.numerator if value.denominator == 1 else value


def as_whole(value: Number, what: str) -> int:
    """Return a whole number as an int.

    Raises:
        ToolError: The value is not whole.
    """
    if value != (whole := int(value)):
        raise ToolError(f"{what} takes whole numbers, not {float(value):g}")
    return whole


def to_float(value: Number) -> float:
    """Return the nearest float64.

    Raises:
        ToolError: The value is out of its range.
    """
    try:
        return float(value)
    except OverflowError:
        raise ToolError("the number is too large") from None


def exact_power(base: Number, exponent: Number) -> Number:
    """Raise to a power: exact where the result is rational and short, else the nearest float64.

    Raises:
        ToolError: The result is complex, undefined or too large.
    """
    if base == 0:
        if exponent < 0:
            raise ToolError("division by zero: 0 raised to a negative power")
        return 0 if exponent else 1
    if isinstance(base, float) or isinstance(exponent, float):
        return _float_power(to_float(base), to_float(exponent))
    if exponent.denominator == 1:
        return _whole_power(Fraction(base), int(exponent))
    if base < 0:
        raise ToolError("a negative number raised to a fraction is complex")
    root = _exact_root(Fraction(base), exponent.denominator)
    if root is not None:
        return _whole_power(root, exponent.numerator)
    return _decimal_power(Fraction(base), Fraction(exponent))


def exact_sqrt(x: Number) -> Number:
    """Square root: exact where it is rational, else the nearest float64.

    Raises:
        ToolError: The number is negative.
    """
    if x < 0:
        raise ToolError("the square root of a negative number is complex")
    if isinstance(x, float):
        return math.sqrt(x)
    value = Fraction(x)
    if (root := _exact_root(value, 2)) is not None:
        return checked(root)
    # floor(sqrt(value) * 2^shift) has 65 bits or more, and a sticky bit follows: that rounds like the real number
    shift = max(0, 66 + (value.denominator.bit_length() - value.numerator.bit_length()) // 2)
    floor = math.isqrt((value.numerator << 2 * shift) // value.denominator)
    return to_float(Fraction(2 * floor + 1, 2 << shift))


def decimal_function(name: str, x: Number) -> float:
    """Nearest float64 of `ln` or `log10` of a positive number; `decimal` rounds these correctly."""
    value = Fraction(x)
    context = _context(2 * _DIGITS)
    gap = value - 1
    if abs(gap) < Fraction(1, 1 << _DIGITS):
        # Decimal would need as many digits as the gap has zeros; the series is exact to three times as many
        natural = context.divide(*_decimals(gap * (1 - gap / 2)))
        return float(natural if name == "ln" else context.divide(natural, context.ln(decimal.Decimal(10))))
    quotient = context.divide(*_decimals(value))
    return float(context.ln(quotient) if name == "ln" else context.log10(quotient))


def _decimals(value: Fraction) -> tuple[decimal.Decimal, decimal.Decimal]:
    return decimal.Decimal(value.numerator), decimal.Decimal(value.denominator)


def _whole_power(base: Fraction, exponent: int) -> Number:
    if abs(base) == 1:
        return checked(base ** (exponent % 2))
    if abs(exponent) > MAX_BITS * 10**6 or abs(_log2(abs(base)) * exponent) > MAX_BITS:
        raise ToolError("the power is too large or too small")
    if bits(base) * abs(exponent) <= 2 * MAX_BITS and bits(power := base**exponent) <= MAX_BITS:
        return checked(power)
    sign = -1 if base < 0 and exponent % 2 else 1
    return sign * _decimal_power(abs(base), Fraction(exponent))


def _float_power(base: float, exponent: float) -> Number:
    try:
        return checked(math.pow(base, exponent))
    except (OverflowError, ValueError):
        raise ToolError("the power is too large or not a real number") from None


def _decimal_power(base: Fraction, exponent: Fraction) -> float:
    if bits(exponent) > 1000 or abs(_log2(base) * float(exponent)) > 1000:
        raise ToolError("the power is too large or too small")
    # the error of the rounded base grows with the exponent
    context = _context(_DIGITS + exponent.numerator.bit_length() // 3)
    return float(context.power(context.divide(*_decimals(base)), context.divide(*_decimals(exponent))))


def _exact_root(value: Fraction, degree: int) -> Fraction | None:
    """Return the root of a positive fraction where it is rational and of a small degree."""
    if degree > _MAX_ROOT:
        return None
    numerator, denominator = (_whole_root(part, degree) for part in (value.numerator, value.denominator))
    return Fraction(numerator, denominator) if numerator is not None and denominator is not None else None


def _whole_root(value: int, degree: int) -> int | None:
    """Return the integer root of an integer, or None (Newton's method from above)."""
    if degree == 2:
        root = math.isqrt(value)
    else:
        # a little above the root: from there Newton's method needs a few steps
        size = math.log2(value) / degree
        root = (int(2 ** (size % 1) * (1 + 1e-9) * 2**52) + 1 << int(size) >> 52) + 1 if value else 0
        while True:
            step = ((degree - 1) * root + value // root ** (degree - 1)) // degree
            if step >= root:
                break
            root = step
    return root if root**degree == value else None


def _log2(value: Fraction) -> float:
    return math.log2(value.numerator) - math.log2(value.denominator)


def _context(digits: int) -> decimal.Context:
    return decimal.Context(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
