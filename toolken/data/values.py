r"""Reading one number out of free text, as a person would.

Covered: signs (also Unicode and in words), thousands groups (comma, space, underscore, apostrophe, Indian), currency,
percent (`50%` is 50), fractions, mixed numbers, powers, scientific notation, words such as `million`, LaTeX (`\boxed`,
`\frac`, `\times`), Markdown emphasis, and equations (`3*4 = 12` is 12). Refused, because two readings or none exist:
`1.234,5`, `3-4`, `3 or 4`, `3, 4`, dates, times, expressions that were not worked out, roots and multiples of pi,
`not 5`, and numbers beyond a thousand digits.

Everything is a fixed number of linear passes over the text; nothing is evaluated.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from typing import NamedTuple

_DIGITS = 1000
_EXPONENT = 999

_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\u2014\ufe63\uff0d", "-"),
        **dict.fromkeys("\u00a0\u2007\u2009\u202f\u2002\u2003\t", " "),
        **dict.fromkeys("\u00d7\u22c5\u00b7\u2219", "*"),
        **dict.fromkeys("\u2044\u2215\u00f7", "/"),
        "\u2019": "'",
        "\uff0b": "+",
        **{chr(0xFF10 + digit): str(digit) for digit in range(10)},
    }
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")

# Markup -> what it stands for, in this order.
_MARKUP: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<=\d)\\[dt]?frac ?\{([^{}]{1,40})\} ?\{([^{}]{1,40})\}", r" \1/\2"),
        (r"\\[dt]?frac ?\{([^{}]{1,40})\} ?\{([^{}]{1,40})\}", r"\1/\2"),
        (r"\\(?:times|cdot)(?![A-Za-z])", "*"),
        (r"\\approx(?![A-Za-z])", "≈"),
        (r"\\pi(?![A-Za-z])", "π"),
        (r"\\sqrt(?![A-Za-z])", "√"),
        (r"\\infty(?![A-Za-z])", "∞"),
        (r"\\neq?(?![A-Za-z])|!=", "≠"),
        (r"\{,\}", ","),
        (r"(?<=\d)\\[,;: ](?=\d)", " "),
        (r"\^ ?[{(] ?([-+]?\d{1,9}) ?[})]", r"^\1"),
        (r"\\[A-Za-z]{1,20}|\\", ""),
        (r"(?<=\d) ?\*\* ?(?=[-\d])", "^"),
        (r"\*\*|__|`|[{}]", ""),
        (r"(?<=[-+])[$€£¥₹](?=[\d.])", ""),
        (r"[$€£¥₹¢]|\b(?:USD|EUR|GBP|INR|AUD|CAD|CHF|JPY|Rs\.?) ?(?=\d)", " "),
        (r"\b(?:minus|negative) (?=[\d.])", "-"),
    )
)
_START = re.compile(r"(?<![\w^])(?:\d|\.\d)")
_ABBREVIATION = re.compile(r"\b(?:approx|appr|ca|est|abt|no|nr|eq|rs|e\.g|i\.e)\.", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[A-Za-z)\]'\"]\s*[.!?](?:\s|$)|[A-Za-z.]\s*\n *\n")
_NO_VALUE = re.compile(
    r"[∞√≠<>≤≥]|\b(?:not|between|nan|infinit\w*|undefined|unknown|impossible|neither|either|cannot|sqrt|log|ln)\b|n't\b",
    re.IGNORECASE,
)
_RUN = re.compile(r"[\d.,'_]+")
_SPACE_GROUPS = re.compile(r"(?: \d{3}(?!\d))+(?:\.\d+)?")
_PLAIN = re.compile(r"\d+|\d*\.\d+")
_GROUPED = re.compile(
    r"[1-9]\d{0,2}(?:(?:,\d{3})+|(?:_\d{3})+|(?:'\d{3})+|(?: \d{3})+)(?:\.\d+)?|[1-9]\d?(?:,\d\d)+,\d{3}(?:\.\d+)?"
)
_E_NOTATION = re.compile(r"[eE]([-+]?\d+)(?![\d.]*\d)")
_POWER = re.compile(r" ?\^ ?([-+]?\d+)")
_TIMES_TEN = re.compile(r" ?[*xX] ?10 ?\^ ?([-+]?\d+)")
_SLASH = re.compile(r" ?/ ?(\d+)(?! ?/ ?\d|[.,]\d)")
_MIXED = re.compile(r" +(?:(?:and|&) +)?(\d+) ?/ ?(\d+)(?! ?/ ?\d|[.,]\d)")
_SCALE = re.compile(r" ?(hundred|thousand|million|billion|trillion)\b", re.IGNORECASE)
_SCALES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_EQUATION = re.compile(r"(?:\.(?=\d)|[ \d,+*/^()%=≈πxX√'_-])*")
# What makes a second reading out of the text behind a number: operators, ranges, lists, times, identifiers.
_AMBIGUOUS = re.compile(
    r" *[-+*/^:] *[-+(]?\.?\d| *x *\d| *(?:π|√|pi\b|sqrt\b)|(?: *[,;])? *(?:or|to|and|through) +[-+]?\.?\d"
    r"|[,;] *[-+]?\.?\d| +[-+]?\.?\d|[A-Za-z]+\d|[.,'_]+\d"
)
_CLOSING = re.compile(r"[\s.,;%()]*")


class _Unclear(Exception):
    """The text holds no number here, or more than one reading of it."""


class _Part(NamedTuple):
    value: Fraction
    end: int


def read_value(text: str) -> Fraction | None:
    """Return the first number in `text` if a person would read exactly one value there, else None.

    Args:
        text: What follows the announcement of an answer. It ends for this purpose where its first sentence ends.
    """
    text = _plain(text)
    start = _START.search(text)
    if start is None:
        return None
    before = text[: start.start()]
    if _NO_VALUE.search(before) or _SENTENCE_END.search(_ABBREVIATION.sub("", before)):
        return None
    begin = start.start() - _sign_length(before)
    try:
        equation = _EQUATION.match(text, start.start())
        stop = equation.end() if equation else start.start()
        sides = re.split("[=≈]", text[begin:stop])
        if len(sides) > 1:
            return next((value for side in reversed(sides) if (value := _whole(side)) is not None), None)
        part = _signed(text, begin)
    except _Unclear:
        return None
    return None if _AMBIGUOUS.match(text, part.end) else part.value


def _plain(text: str) -> str:
    """Return `text` with one spelling for every sign and without markup."""
    text = "".join(_character(character) for character in text.translate(_CHARACTERS))
    text = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+", lambda found: "^" + found[0].translate(_SUPERSCRIPTS), text)
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return re.sub(" {2,}", " ", text)  # one space at most, so that no pattern below backtracks over many


def _character(character: str) -> str:
    """Return `½` as ` 1/2`, which reads as a fraction alone and as a mixed number behind a whole one."""
    if character.isascii() or unicodedata.category(character) != "No":
        return character
    spelled = unicodedata.normalize("NFKC", character).replace("\u2044", "/")
    return f" {spelled}" if "/" in spelled else character


def _sign_length(before: str) -> int:
    """Return how many last characters of `before` are the sign of the number: none for hyphens and list bullets."""
    head = before.rstrip(" ")
    if not head.endswith(("-", "+")) or head[-2:-1].isalnum() or head[-2:-1] == ")":
        return 0
    bullet = head[-2:-1] == "\n" and len(head) < len(before)
    return 0 if bullet else len(before) - len(head) + 1


def _whole(side: str) -> Fraction | None:
    """Return the value of one side of an equation if the side is nothing but a number."""
    begin = len(side) - len(side.lstrip(" ("))
    try:
        part = _signed(side, begin)
    except _Unclear:
        return None
    return part.value if _CLOSING.fullmatch(side, part.end) else None


def _signed(text: str, begin: int) -> _Part:
    """Read sign, number and what scales it at `begin`."""
    sign = -1 if text[begin : begin + 1] == "-" else 1
    start = begin
    while text[start : start + 1] in ("-", "+", " "):
        start += 1
    part = _scaled(text, _digits(text, start), whole=start)
    return _Part(sign * part.value, part.end)


def _digits(text: str, start: int) -> _Part:
    """Read digits with their grouping and decimals."""
    run = _RUN.match(text, start)
    if run is None:
        raise _Unclear
    body = run[0].rstrip(".,'_")
    end = start + len(body)
    groups = _SPACE_GROUPS.match(text, end) if re.fullmatch(r"\d{1,3}", body) else None
    if groups and re.match(r" ?/ ?\d", text[groups.end() :][:4]):
        groups = None  # `6 700/800` is a mixed number, if anything
    if groups:
        body, end = body + groups[0], groups.end()
    if len(body) > _DIGITS or not (_PLAIN.fullmatch(body) or _GROUPED.fullmatch(body)):
        raise _Unclear
    return _Part(Fraction(re.sub("[,_' ]", "", body)), end)


def _scaled(text: str, part: _Part, *, whole: int) -> _Part:
    """Apply the power, the fraction or the word behind the number; at most one of the first four."""
    value, end = part
    plain = text[whole:end].isdigit()
    if found := _E_NOTATION.match(text, end):
        return _words(text, value * _power(Fraction(10), found[1]), found.end())
    if re.match(r"[eE][-+]?\d", text[end : end + 3]):
        raise _Unclear
    if found := _TIMES_TEN.match(text, end):
        return _words(text, value * _power(Fraction(10), found[1]), found.end())
    if found := _POWER.match(text, end):
        return _Part(_power(value, found[1]), found.end())
    if plain and (found := _SLASH.match(text, end)):
        return _Part(_ratio(value, found[1]), found.end())
    if plain and (found := _MIXED.match(text, end)):
        fraction = _ratio(Fraction(_integer(found[1])), found[2])
        if fraction >= 1:
            raise _Unclear
        return _Part(value + fraction, found.end())
    return _words(text, value, end)


def _words(text: str, value: Fraction, end: int) -> _Part:
    while found := _SCALE.match(text, end):
        value, end = value * _SCALES[found[1].lower()], found.end()
        if value > 10**_DIGITS:
            raise _Unclear
    return _Part(value, end)


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise _Unclear
    return int(digits)


def _ratio(numerator: Fraction, denominator: str) -> Fraction:
    below = _integer(denominator)
    if not below:
        raise _Unclear
    return numerator / below


def _power(base: Fraction, exponent: str) -> Fraction:
    """Return `base ** exponent` where the result stays within a thousand digits."""
    if len(exponent) > 4:
        raise _Unclear
    power = int(exponent)
    size = max(len(str(base.numerator)), len(str(base.denominator)))
    if abs(power) * size > 2 * _DIGITS or abs(power) > _EXPONENT or (not base and power < 0):
        raise _Unclear
    return base**power
