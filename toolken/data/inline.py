"""The published inline markup of calls: `... the divisor is <gcd>(316,196)=4<eoe>4` and so on.

Invariant: after `<eoe>` the text goes on with the very result that the markup names; that text is what the call
covers, and the markup is taken out. Markup without its end, its call or its result is refused, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolken.data.example import CallSpan
from toolken.errors import UserError, did_you_mean

END = "<eoe>"
_OPEN = re.compile(r"<([A-Za-z_\[][A-Za-z0-9_.\[\]-]*)>\(")
_EQUALS = re.compile(r"\s*=\s*")


def _closing(text: str, start: int) -> int:
    """Return the index of the bracket that closes the one before `start`, or -1."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return -1


def cuts_number(text: str, start: int, end: int) -> bool:
    """Return whether a span starts or ends inside a longer number, as 4 in 45, 0.4 or 4,000.

    Two decimal points make two numbers: 7.95 in 106.847.95 stands by itself.
    """
    before, span, after = text[max(0, start - 64) : start], text[start:end], text[end : end + 8]
    starts = span[:1].isdigit() and re.search(r"\d[.,]?$|(?<![\w)])\.$", before) is not None
    starts = starts and not ("." in span and re.search(r"\d\.\d+$", before))
    ends = span[-1:].isdigit() and re.match(r"\d|\.\d|,\d{3}(?!\d)", after) is not None
    return starts or ends


def check_call(name: str, origin: str, tools: Sequence[str] | None) -> None:
    """Raise `UserError` if there is a tool set and the tool is not in it."""
    if tools is not None and name not in tools:
        raise UserError(origin, f"no tool <{name}> in the tool set", did_you_mean(name, tools))


def parse_inline(text: str, origin: str, tools: Sequence[str] | None) -> tuple[str, tuple[CallSpan, ...]]:
    """Take the markup out of a text.

    Args:
        text: The text with markup; `<name>(` opens a call, spaces around `=` are allowed.
        origin: What messages name.
        tools: Known tool names; None takes any name.

    Raises:
        UserError: A call is unfinished, has no result, or is not followed by its result; or a tool is unknown.
    """
    answer, done = "", 0
    calls: list[CallSpan] = []
    for opening in _OPEN.finditer(text):
        if opening.start() < done:
            raise UserError(origin, f"<{opening[1]}> stands inside another call", "write one call after the other")
        check_call(opening[1], origin, tools)
        close = _closing(text, opening.end())
        equals = _EQUALS.match(text, close + 1) if close >= 0 else None
        end = text.find(END, equals.end()) if equals else -1
        if equals is None or end < 0:
            missing = "closing bracket" if close < 0 else "= after the bracket" if equals is None else f"{END}"
            raise UserError(
                origin, f"the call of <{opening[1]}> has no {missing}", "write <tool>(arguments)=result<eoe>"
            )
        result, rest = text[equals.end() : end].strip(), text[end + len(END) :]
        if not result or not rest.startswith(result) or cuts_number(rest, 0, len(result)):
            raise UserError(
                origin,
                f"<{opening[1]}> gives {result!r}, but the text goes on with {rest[: len(result) + 4]!r}",
                "repeat the result after <eoe>",
            )
        answer += text[done : opening.start()]
        if cuts_number(answer + result, len(answer), len(answer) + len(result)):
            raise UserError(
                origin, f"the result {result!r} of <{opening[1]}> stands inside a number", "let it be the whole number"
            )
        calls.append(CallSpan(len(answer), len(answer) + len(result), opening[1], text[opening.end() : close].strip()))
        answer += result
        done = end + len(END) + len(result)
    answer += text[done:]
    if END in answer:
        raise UserError(origin, f"{END} without a call", "write <tool>(arguments)=result<eoe>result, or no markup")
    return answer, tuple(calls)


def write_inline(answer: str, calls: Sequence[CallSpan], *, end: str = END) -> str:
    """Write the calls into a text, the inverse of `parse_inline`.

    With an empty `end` the result is written once, `... is <gcd>(316,196)=4.`, as demonstrations show it.
    """
    parts, done = [], 0
    for call in calls:
        result = answer[call.start : call.end]
        parts.append(f"{answer[done : call.start]}<{call.tool}>({call.arguments})={result}")
        parts.append(f"{end}{result}" if end else "")
        done = call.end
    return "".join(parts) + answer[done:]
