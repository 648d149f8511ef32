"""From argument text to the texts of single arguments: the bracket that matches, quotes, and thousands separators.

Thousands: a comma between one to three digits and exactly three digits may join or separate. All readings are
considered that fit the number of arguments: a space behind a comma separates, a group that begins with 0 is no
argument of its own, and only one reading left is a value. Every pass is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolken.errors import ToolError
from toolken.tools.numeric import MAX_DEPTH, MAX_TEXT, show

_OPEN = {"(": ")", "[": "]", "{": "}"}
QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
# what stands before an opening quote; an apostrophe inside a word opens nothing
_BEFORE_QUOTE = "([{,;=:"
_SOFT = re.compile(r"(?<![0-9.A-Za-z_])[0-9]{1,3}(?:,[0-9]{3}(?![0-9]))+")


class ArgumentScanner:
    """Finds the bracket that closes a call, in text that is still being written.

    Feed the pieces as they come, starting behind the opening bracket. Quotes hide brackets only for tools that take
    text.

    Attributes:
        end: Index of the closing bracket in all the text fed so far; None while the call is open.
    """

    def __init__(self, *, quotes: bool = False) -> None:
        self.quotes = quotes
        self.end: int | None = None
        self._length = 0
        self._depth = 1
        self._closing_quote = ""
        self._escaped = False
        self._before = "("

    def feed(self, piece: str) -> int | None:
        """Take a further piece of text and return `end`."""
        for character in piece:
            if self.end is None and not self.hides(character):
                if character == "(":
                    self._depth += 1
                elif character == ")":
                    self._depth -= 1
                    if self._depth == 0:
                        self.end = self._length
            self._length += 1
        return self.end

    def hides(self, character: str) -> bool:
        """Follow quotes; return whether the character belongs to a quoted text."""
        if not self.quotes:
            return False
        if self._closing_quote:
            if self._escaped:
                self._escaped = False
            elif character == "\\":
                self._escaped = True
            elif character == self._closing_quote:
                self._closing_quote = ""
                self._before = character
            return True
        if character in QUOTES and self._before in _BEFORE_QUOTE:
            self._closing_quote = QUOTES[character]
            return True
        if not character.isspace():
            self._before = character
        return False


def closing_bracket(text: str, *, quotes: bool = False) -> int | None:
    """Return the index of the bracket that closes a call; the text starts behind the opening one. None: still open."""
    return ArgumentScanner(quotes=quotes).feed(text)


def call_content(text: str, *, quotes: bool = False) -> str:
    """Return what stands between the brackets of a call; the opening one may be missing, text behind is ignored.

    Raises:
        ToolError: The text is too long, or its opening bracket is never closed.
    """
    if len(text) > MAX_TEXT:
        raise ToolError(f"the arguments are longer than {MAX_TEXT} characters")
    text = text.strip()
    if not text.startswith("("):
        end = closing_bracket(text, quotes=quotes)
        return text if end is None else text[:end]
    end = closing_bracket(text[1:], quotes=quotes)
    if end is None:
        raise ToolError("the bracket is not closed")
    rest = text[end + 2 :].lstrip()
    if rest[:1] and rest[0] in ",;+-*/^%x×" and (outer := closing_bracket(text, quotes=quotes)) is not None:
        # the first bracket belongs to the first argument, as in `(3+4), 2)`
        return text[:outer]
    return text[1 : end + 1]


def unwrap(content: str, *, quotes: bool = False) -> str:
    """Remove brackets around all of the content: `(3, 4)` or `[3, 4]` inside a call is the arguments themselves."""
    content = content.strip()
    for _ in range(3):
        if content[:1] not in ("(", "[") or not content.endswith(_OPEN[content[0]]) or len(content) < 2:
            break
        if _end_of_group(content, quotes=quotes) != len(content) - 1:
            break
        content = content[1:-1].strip()
    return content


def split_arguments(content: str, minimum: int, maximum: int | None, *, quotes: bool = False) -> list[str]:
    """Split content at the commas that separate arguments, and drop those that group thousands.

    Raises:
        ToolError: No reading, or more than one, gives between `minimum` and `maximum` arguments.
    """
    if not content.strip():
        pieces: list[str] = []
        return pieces if minimum == 0 else _wrong_count(0, minimum, maximum)
    hard, depths = _separators(content, quotes=quotes)
    free: list[int] = []
    joined: set[int] = set()
    for found in _SOFT.finditer(content):
        first = found.start()
        commas = [i for i in range(first, found.end()) if content[i] == "," and i in depths]
        for comma in commas:
            hard.discard(comma)
            zero_start = content[first] == "0"
            if depths[comma] > 0 or content[comma + 1] == "0":
                joined.add(comma)
                if zero_start and comma == commas[0]:
                    raise ToolError(f"{show(found.group())} is not a number")
            elif zero_start and comma == commas[0]:
                hard.add(comma)
            else:
                free.append(comma)
    fewest, most = len(hard) + 1, len(hard) + 1 + len(free)
    low, high = max(fewest, minimum), most if maximum is None else min(most, maximum)
    if low > high:
        return _wrong_count(fewest if fewest > (maximum or fewest) else most, minimum, maximum)
    if free and high != fewest and low != most:
        raise ToolError(
            f"{show(content)} can be read as {low} or up to {high} arguments; separate them with a comma and a space, "
            "and write no thousands separators"
        )
    cuts = hard | set(free) if free and low == most else hard
    drop = joined | (set(free) - cuts)
    return _cut(content, cuts, drop)


def _cut(content: str, cuts: set[int], drop: set[int]) -> list[str]:
    pieces = [""]
    start = 0
    for index in sorted(cuts | drop):
        pieces[-1] += content[start:index]
        start = index + 1
        if index in cuts:
            pieces.append("")
    pieces[-1] += content[start:]
    pieces = [piece.strip() for piece in pieces]
    if "" in pieces:
        raise ToolError(f"argument {pieces.index('') + 1} of {show(content)} is empty")
    return pieces


def visible(content: str, *, quotes: bool) -> Iterator[tuple[int, str, str]]:
    """Yield index, character and the brackets open around it, for every character outside quotes."""
    scanner = ArgumentScanner(quotes=quotes)
    stack: list[str] = []
    for index, character in enumerate(content):
        if scanner.hides(character):
            continue
        if stack and character == _OPEN[stack[-1]]:
            stack.pop()
        yield index, character, "".join(stack)
        if character in _OPEN:
            stack.append(character)
        if len(stack) > MAX_DEPTH:
            raise ToolError(f"the arguments are nested more than {MAX_DEPTH} deep")


def _separators(content: str, *, quotes: bool) -> tuple[set[int], dict[int, int]]:
    """Return commas and semicolons outside all brackets, and the depth of each comma outside quotes and lists."""
    hard: set[int] = set()
    depths: dict[int, int] = {}
    for index, character, around in visible(content, quotes=quotes):
        if character in ",;" and not around:
            hard.add(index)
        if character == "," and "[" not in around and "{" not in around:
            depths[index] = len(around)
    return hard, depths


def _end_of_group(content: str, *, quotes: bool) -> int:
    """Return the index of the bracket that closes the one at the start, or -1."""
    for index, character, around in visible(content, quotes=quotes):
        if index and not around and character in ")]}":
            return index
    return -1


def _wrong_count(count: int, minimum: int, maximum: int | None) -> list[str]:
    wanted = (
        f"{minimum}" if minimum == maximum else f"{minimum} or more" if maximum is None else f"{minimum} to {maximum}"
    )
    raise ToolError(f"{wanted} argument{'' if wanted == '1' else 's'} wanted, {count} given")
