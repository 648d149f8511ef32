"""One row to one `Example`; the form of a row is told by its keys.

Forms: the inline markup (`question`, `answer`), the published training file (`text`, `tar_eq`), character spans
(`question`, `answer` or `text`, and `calls`), chat (`messages`), plain text (`text`), plans of marks (VirtualHome), and
the own forms of GSM8K and KAMEL. Whatever is ambiguous or misaligned is refused with the row's place, never guessed.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Callable, Mapping, Sequence

from toolken.data.example import CallSpan, Example
from toolken.data.gsm8k import is_gsm8k, read_gsm8k
from toolken.data.inline import check_call, cuts_number, parse_inline
from toolken.data.kamel import is_kamel, read_kamel
from toolken.data.marks import is_marked, read_marked
from toolken.data.rows import RawRow
from toolken.errors import UserError

Row = Mapping[str, object]
Tools = Sequence[str] | None

_CALL = re.compile(r"^<([^<>]+)>\((.*)\)\s*=\s*(.+?)\s*(?:<eoe>)?$", re.DOTALL)
# the line break next to the answer is enough: others in front of it are stripped from the question
_DIALOGUE = re.compile(r"^\s*(?:Q|Question):(.*?)\n[^\S\n]*(?:A|Answer):", re.DOTALL)
FORMS = "`question` and `answer`, `text`, `messages`, or one of these with `calls`"


def _string(row: Row, key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        found = "is missing" if key not in row else f"is {type(value).__name__}, not text"
        raise UserError(where, f"`{key}` {found}", f"a row has {FORMS}")
    return value


def _list(row: Row, key: str, where: str) -> list[object]:
    value = row.get(key)
    if not isinstance(value, list):
        raise UserError(where, f"`{key}` is {type(value).__name__}, not a list", "write a list of objects")
    return value


def _arguments(value: object, where: str) -> str:
    """Return arguments as text: as written, or the values of a list or an object in JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)[1:-1]
    if isinstance(value, dict):
        return ", ".join(f"{name}={json.dumps(item, ensure_ascii=False)}" for name, item in value.items())
    raise UserError(where, f"`arguments` of a call is {type(value).__name__}", "write text, a list or an object")


def _span_call(value: object, text: str, where: str, tools: Tools) -> CallSpan:
    if not isinstance(value, dict):
        raise UserError(where, f"a call is {type(value).__name__}, not an object", "write start, end, tool, arguments")
    missing = [key for key in ("start", "end", "tool", "arguments") if key not in value]
    if missing:
        raise UserError(where, f"a call has no `{missing[0]}`", "write start, end, tool, arguments")
    start, end, tool = value["start"], value["end"], value["tool"]
    if not isinstance(tool, str) or any(isinstance(n, bool) or not isinstance(n, int) for n in (start, end)):
        problem = f"a call has start {start!r}, end {end!r} and tool {tool!r}"
        raise UserError(where, problem, "`start` and `end` are whole numbers, `tool` is text")
    check_call(tool, where, tools)
    if 0 <= start < end <= len(text):
        covered = text[start:end]
        if covered != covered.strip():
            raise UserError(where, f"the span {start}:{end} of <{tool}> covers white space ({covered!r})", "trim it")
        if cuts_number(text, start, end):
            around = text[max(0, start - 8) : end + 8]
            raise UserError(
                where,
                f"the span {start}:{end} of <{tool}> covers {covered!r}, a part of a number in {around!r}",
                "cover the whole number",
            )
        if "result" in value and str(value["result"]) != covered:
            problem = f"the span {start}:{end} of <{tool}> covers {covered!r}, not its result {value['result']!r}"
            raise UserError(where, problem, "let the span cover the result; `end` is exclusive")
    return CallSpan(start, end, tool, _arguments(value["arguments"], where))


def read_spans(row: Row, where: str, tools: Tools) -> Example:
    """Read `{"question", "answer", "calls": [{"start", "end", "tool", "arguments"}]}`, or `text` for both texts.

    A call may name its `result`, which is then what the span must cover.
    """
    answer = _string(row, "text" if "text" in row and "answer" not in row else "answer", where)
    question = "" if "text" in row and "answer" not in row else _string(row, "question", where)
    calls = [_span_call(call, answer, where, tools) for call in _list(row, "calls", where)]
    return Example(question, answer, tuple(calls), origin=where)


def read_inline(row: Row, where: str, tools: Tools) -> Example:
    """Read `{"question", "answer"}` with the published markup in the answer, or without any call."""
    answer, calls = parse_inline(_string(row, "answer", where), where, tools)
    return Example(_string(row, "question", where), answer, calls, origin=where)


def read_plain(row: Row, where: str, tools: Tools) -> Example:
    """Read `{"text"}`: ordinary text; inline markup in it is read as well."""
    answer, calls = parse_inline(_string(row, "text", where), where, tools)
    return Example("", answer, calls, origin=where)


def read_chat(row: Row, where: str, tools: Tools) -> Example:
    """Read `{"messages": [{"role", "content"}]}`: the first user turn and the answer that follows it.

    Raises:
        UserError: A message is malformed, its calls are, or there is no such pair.
    """
    question = None
    for message in _list(row, "messages", where):
        if not isinstance(message, dict):
            raise UserError(where, "a message is not an object", "write role and content")
        role, content = _string(message, "role", where), _string(message, "content", where)
        if role == "user" and question is None:
            question = content
        elif role == "assistant" and question is not None:
            answer, calls = parse_inline(content, where, tools)
            return Example(question, answer, calls, origin=where)
    raise UserError(
        where, "no user message with an assistant message after it", "a chat row is a question and an answer"
    )


def _places(answer: str, results: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the ways to place the results in order as whole words or numbers: none, the only one, or two of them.

    Placed as early and as late as possible, each result stands in its first and its last possible place; so there is
    one way if, and only if, both agree.
    """
    whole = {
        result: [
            match.start()
            for match in re.finditer(re.escape(result), answer)
            if not cuts_number(answer, match.start(), match.end())
        ]
        for result in set(results)
    }
    early, end = [], 0
    for result in results:
        place = bisect.bisect_left(whole[result], end)
        if place == len(whole[result]):
            return []
        early.append(whole[result][place])
        end = early[-1] + len(result)
    late, start = [], len(answer)
    for result in reversed(results):
        place = bisect.bisect_right(whole[result], start - len(result))
        late.append(whole[result][place - 1])
        start = late[-1]
    late.reverse()
    return [tuple(early)] if early == late else [tuple(early), tuple(late)]


def read_published(row: Row, where: str, tools: Tools) -> Example:
    """Read `{"text", "tar_eq"}`; its token indices belong to one tokenizer and are ignored.

    Raises:
        UserError: The result of a call stands nowhere, or in more than one place, in the answer.
    """
    text = _string(row, "text", where)
    asked = _DIALOGUE.match(text)
    question, answer = (asked[1].strip(), text[asked.end() :].strip()) if asked else ("", text)
    matches = []
    for equation in _list(row, "tar_eq", where):
        match = _CALL.match(equation) if isinstance(equation, str) else None
        if match is None:
            raise UserError(where, f"`tar_eq` holds {equation!r}", "write <tool>(arguments)=result<eoe>")
        check_call(match[1], where, tools)
        matches.append(match)
    if not matches:
        raise UserError(where, "`tar_eq` is empty: the row has no call", "add the call, or leave `tar_eq` out")
    ways = _places(answer, [match[3] for match in matches])
    results = ", ".join(repr(match[3]) for match in matches)
    if not ways:
        raise UserError(where, f"the result {results} does not stand in the answer", "write it as the answer has it")
    if len(ways) > 1:
        raise UserError(where, f"the result {results} stands in more than one place", "give character spans instead")
    spans = zip(ways[0], matches, strict=True)
    calls = tuple(CallSpan(at, at + len(match[3]), match[1], match[2]) for at, match in spans)
    if "<eoe>" in answer or re.search(r"<\w+>\(", answer):
        raise UserError(where, "the text still holds call markup", "write the text alone, calls go into `tar_eq`")
    return Example(question, answer, calls, origin=where)


def read_row(raw: RawRow, tools: Tools) -> Example:
    """Read a row by its form.

    Args:
        raw: The row and its place.
        tools: Known tool names; None takes any name.

    Raises:
        UserError: No known form, a key of the wrong type, an unknown tool, or a misaligned call.
    """
    row = raw.value
    if not isinstance(row, dict):
        raise UserError(raw.where, f"the row is {type(row).__name__}, not an object", f"a row has {FORMS}")
    readers: list[tuple[bool, Callable[[Row, str, Tools], Example]]] = [
        ("messages" in row, read_chat),
        (is_marked(row), read_marked),
        ("tar_eq" in row, read_published),
        ("calls" in row, read_spans),
        (is_kamel(row), read_kamel),
        (is_gsm8k(row), read_gsm8k),
        ("question" in row or "answer" in row, read_inline),
        ("text" in row, read_plain),
    ]
    for fits, reader in readers:
        if fits:
            example = reader(row, raw.where, tools)
            if not example.answer.strip():
                raise UserError(raw.where, "the text is empty", "write some, or leave the row out")
            return example
    raise UserError(
        raw.where, f"the keys {', '.join(map(str, row)) or '(none)'} are no known form", f"a row has {FORMS}"
    )
