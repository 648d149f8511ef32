"""One number as a model writes it: an exact value, or a refusal that says what was wrong.

Grammar: `sum := term (('+'|'-') term)*`, `term := sign (('*'|'/'|'x') sign)*`, `sign := ('+'|'-')* power`, `power :=
operand ['^' sign]`, `operand := [currency] literal ['%'] | '(' sum [unit] ')'`, and a unit behind the whole.
Recursive descent over a linear token list; length, depth, digits and the size of every intermediate value are
bounded, so that no text takes long. Nothing is looked up by name, nothing is evaluated.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from typing import NamedTuple

from toolken.errors import ToolError
from toolken.tools.exact import Number, checked, exact_power

MAX_TEXT = 4096
"""Longest argument text, in characters."""

MAX_DEPTH = 50
"""Deepest nesting of brackets and signs."""

_MAX_DIGITS = 1000
_MAX_EXPONENT = 308
_MAX_UNIT_WORDS = 4

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<power>\*\*)"
    r"|(?P<currency>(?:US|A|C)?[$€£¥₹₽₩¢]|(?:USD|EUR|GBP|JPY|INR|CNY)(?=\s*[0-9.]))"
    r"|(?P<word>(?:[^\W\d_]|°)+)|(?P<symbol>\S))"
)
_MULTIPLIERS = {
    "percent": Fraction(1, 100),
    "dozen": Fraction(12),
    "hundred": Fraction(10**2),
    "thousand": Fraction(10**3),
    "million": Fraction(10**6),
    "billion": Fraction(10**9),
    "trillion": Fraction(10**12),
}
_UNIT_LETTERS = frozenset("mgshlLVWJNCF°")
# words that would change the value, so that they are not units
_NOT_UNITS = frozenset(
    "squared cubed factorial half halves third thirds quarter quarters pi inf infinity nan of and or to by plus minus "
    "times over mod modulo more less than st nd rd th mil mn bn tens dozens hundreds thousands millions".split()
)

_CHARACTERS = {
    **dict.fromkeys("−－﹣", "-"),
    **dict.fromkeys("×·∙⋅✕✖＊∗", "*"),
    **dict.fromkeys("÷∕⁄／", "/"),
    **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " "),
    **dict.fromkeys("\u200b\u2060\ufeff", ""),
    **dict(zip("＋％（）［］，；．＝＄", "+%()[],;.=$", strict=True)),
}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SUPERSCRIPT_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")


class Token(NamedTuple):
    """A piece of a number: its kind, and its text."""

    kind: str
    text: str


def normalise(text: str) -> str:
    """Write every decimal digit, sign, bracket and separator of any script in ASCII; superscripts become powers."""
    text = _SUPERSCRIPT_RUN.sub(lambda found: f"^({found.group().translate(_SUPERSCRIPTS)})", text)
    if text.isascii():
        return text
    return "".join(_ascii(character) for character in text)


def parse_number(text: str) -> Number:
    """Read one number.

    Raises:
        ToolError: The text is no number that one person would read as another does.
    """
    if len(text) > MAX_TEXT:
        raise ToolError(f"the arguments are longer than {MAX_TEXT} characters")
    tokens = [Token(str(found.lastgroup), found.group().strip()) for found in _TOKEN.finditer(normalise(text))]
    if not tokens:
        raise ToolError("an argument is empty")
    if re.search(r"(?<![0-9.])0[xX][0-9a-fA-F]", text):
        raise ToolError(f"{show(text)} looks hexadecimal; write it in decimals")
    parser = _Parser(tokens, text)
    value = parser.quantity()
    if parser.position < len(tokens):
        raise parser.refusal()
    return value


def show(text: str) -> str:
    """Return a text as a message quotes it: one line, short, printable."""
    line = " ".join(text.split())
    line = "".join(character if character.isprintable() else "?" for character in line)
    return f"`{line if len(line) <= 40 else line[:37] + '...'}`"


class _Parser:
    """Recursive descent over the tokens of one number."""

    def __init__(self, tokens: list[Token], text: str) -> None:
        self.tokens = tokens
        self.text = text
        self.position = 0
        self.depth = 0

    def refusal(self) -> ToolError:
        token = self.peek()
        if not token.text:
            return ToolError(f"{show(self.text)} ends where a number should follow")
        return ToolError(f"{show(self.text)} is not a number: {show(token.text)} is not expected there")

    def peek(self, ahead: int = 0) -> Token:
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else Token("end", "")

    def take(self, *texts: str) -> str:
        """Consume the next token if it is one of these."""
        token = self.peek()
        if token.kind in ("symbol", "power") and token.text in texts:
            self.position += 1
            return token.text
        return ""

    def quantity(self) -> Number:
        return self.unit(self.sum())

    def sum(self) -> Number:
        value = self.term()
        while operator := self.take("+", "-"):
            other = self.term()
            if self.tokens[self.position - 1].text == "%":
                raise ToolError(f"{show(self.text)}: what the percentage is taken of is not clear; write the number")
            value = checked(value + other if operator == "+" else value - other)
        return value

    def term(self) -> Number:
        value = self.sign()
        while operator := self.take("*", "/") or self.cross():
            if operator == "/" and self.peek().kind == "word":
                self.position -= 1
                break
            other = self.sign()
            if operator != "/":
                value = checked(value * other)
            elif other == 0:
                raise ToolError(f"{show(self.text)}: division by zero")
            else:
                value = checked(value / other if isinstance(other, float) else value * (1 / Fraction(other)))
        return value

    def cross(self) -> str:
        """Consume an `x` between two numbers: a multiplication sign."""
        if self.peek().text in ("x", "X") and self.peek(1).text and self.peek(1).text not in ",)":
            self.position += 1
            return "*"
        return ""

    def sign(self) -> Number:
        if operator := self.take("+", "-", "–"):
            self.enter()
            value = self.sign()
            self.depth -= 1
            return value if operator == "+" else -value
        return self.power()

    def power(self) -> Number:
        base = self.operand()
        if self.take("^", "**"):
            self.enter()
            exponent = self.sign()
            self.depth -= 1
            return exact_power(base, exponent)
        return base

    def operand(self) -> Number:
        token = self.peek()
        if token.kind == "currency":
            self.position += 1
            sign = -1 if self.take("-") else 1
            if self.peek().kind != "number":
                raise self.refusal()
            return sign * self.operand()
        if token.kind == "number":
            self.position += 1
            value: Number = literal(token.text)
        elif self.take("("):
            self.enter()
            value = self.quantity()
            self.depth -= 1
            if not self.take(")"):
                raise self.refusal()
        else:
            raise self.refusal()
        return checked(value * Fraction(1, 100)) if self.take("%") else value

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ToolError(f"the arguments are nested more than {MAX_DEPTH} deep")

    def unit(self, value: Number) -> Number:
        """Consume a unit behind a value; number words multiply, everything else is left out."""
        if self.peek().kind == "currency":
            self.position += 1
        words = 0
        while (token := self.peek()).kind == "word" or (words and token.text in "/*^" and token.text):
            if token.kind != "word":
                self.position += 1
                if token.text == "^":
                    self.unit_power()
                elif self.peek().kind != "word":
                    raise self.refusal()
                continue
            word = token.text.lower()
            if word in _MULTIPLIERS:
                value = checked(value * _MULTIPLIERS[word])
            elif word in _NOT_UNITS or (len(word) == 1 and token.text not in _UNIT_LETTERS) or words >= _MAX_UNIT_WORDS:
                raise self.refusal()
            words += 1
            self.position += 1
        return value

    def unit_power(self) -> None:
        bracket = self.take("(")
        self.take("-")
        if self.peek().text not in ("2", "3", "1"):
            raise self.refusal()
        self.position += 1
        if bracket and not self.take(")"):
            raise self.refusal()


def literal(text: str) -> int | Fraction:
    """Read an ASCII literal exactly: `0.37` is 37/100.

    Raises:
        ToolError: It has too many digits, or an exponent that no float64 has.
    """
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, decimals = mantissa.partition(".")
    if len(whole) + len(decimals) > _MAX_DIGITS:
        raise ToolError(f"a number has more than {_MAX_DIGITS} digits")
    if len(exponent) > 5 or abs(int(exponent or "0")) > _MAX_EXPONENT:
        raise ToolError(f"{show(text)} is too large or too small")
    value = Fraction(int(whole + decimals or "0"), 10 ** len(decimals)) * Fraction(10) ** int(exponent or "0")
    return value.numerator if value.denominator == 1 else value


def _ascii(character: str) -> str:
    if character in _CHARACTERS:
        return _CHARACTERS[character]
    digit = unicodedata.decimal(character, None)
    return character if digit is None else str(digit)
