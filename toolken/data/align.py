"""Character spans to token positions: what the head is trained on, for any tokenizer.

The text of an answer is cut into pieces that are encoded apart: the words up to a call, the result, the words up to
the next call, and so on. Decoding makes the same cuts (it stops at a toolken, splices the result, goes on), so
training sees the ids that decoding feeds. Where a tokenizer glues a space to the start of a result, that one space
goes with the result; else it stays a word token. A prompt that ends in a word (`The answer is`) asks for the call
right there, before the base writes anything: under it a space after a word goes with every result, as decoding brings
it. What does not come back exactly from the tokenizer is refused with the example's origin, never shifted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from toolken.data.answers import announced
from toolken.data.encode import begin_ids, encode_text, glues
from toolken.data.example import CallSpan, Example
from toolken.data.prompts import Prompt
from toolken.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

RESULT = "[RESULT]"


@dataclass(frozen=True)
class Encoded:
    """One example as the base sees it, and its supervised positions.

    Position `i` says: the head input after `ids[index[i]]` predicts `target[i]`, or toolken `toolken[i]` if that is
    not -1. Every token of the answer is predicted from the token before it, the first one from the last token of the
    prompt, with two exceptions: the first token of a result is a toolken position (its `target` keeps that token's
    id), and the other tokens of a result are no positions. The token after a result is predicted from the result's
    last token. A text without a prompt has nothing to predict its first token from; that one is no position.

    Attributes:
        prefix: Ids that many examples share, beginning-of-sequence included; fed before `ids`.
        ids: The question and the answer.
        index: Positions into `ids`, increasing.
        target: The token id that follows.
        toolken: -1 for a word, else the row of the tool.
    """

    prefix: tuple[int, ...]
    ids: tuple[int, ...]
    index: tuple[int, ...]
    target: tuple[int, ...]
    toolken: tuple[int, ...]


class Piece(NamedTuple):
    """A stretch of the answer that is encoded by itself; `toolken` is -1 for words."""

    text: str
    toolken: int


def cut(
    text: str,
    calls: Sequence[CallSpan],
    *,
    tokenizer: PreTrainedTokenizerBase,
    tools: Sequence[str],
    joined: bool = False,
) -> Iterator[Piece]:
    """Cut a text into words and results; a single space before a result moves into it where the tokenizer glues it.

    With `joined` it moves also where it stands after a word, or at the start of the text.
    """
    rows = {name: row for row, name in enumerate(tools)}
    done = 0
    for call in calls:
        if call.tool not in rows:
            raise UserError("calls", f"no tool <{call.tool}> in the tool set", did_you_mean(call.tool, tools))
        start = call.start
        if start > done and text[start - 1] == " ":
            brought = joined and (start == 1 or text[start - 2].isalnum())
            start -= brought or glues(tokenizer, text[start : call.end])
        if start > done:
            yield Piece(text[done:start], -1)
        yield Piece(text[start : call.end], rows[call.tool])
        done = call.end
    if done < len(text):
        yield Piece(text[done:], -1)


def concluded(example: Example, prompt: Prompt) -> tuple[str, tuple[CallSpan, ...]]:
    """Return the answer as decoding would write it: after the prompt's lead, with a conclusion at its end."""
    calls = example.calls
    start = calls[0].start if calls else len(example.answer)
    white = min(len(example.answer) - len(example.answer.lstrip()), start)
    end = max(len(example.answer.rstrip()), calls[-1].end if calls else 0)
    text = prompt.lead + example.answer[white:end]
    shift = len(prompt.lead) - white
    if prompt.conclusion and announced(text, prompt.answer_pattern) is None:
        if calls:
            text += prompt.conclusion.replace(RESULT, example.result(calls[-1]))
        elif RESULT not in prompt.conclusion:
            text += prompt.conclusion
    return text, tuple(call._replace(start=call.start + shift, end=call.end + shift) for call in calls)


def align_text(
    text: str,
    calls: Sequence[CallSpan],
    *,
    asked: Sequence[int],
    tokenizer: PreTrainedTokenizerBase,
    tools: Sequence[str],
    joined: bool = False,
) -> Encoded:
    """Encode a text with calls after the ids `asked`; `prefix` is left empty.

    Raises:
        UserError: A piece does not come back from the tokenizer as it was, or a tool is unknown.
    """
    ids = list(asked)
    index: list[int] = []
    target: list[int] = []
    toolken: list[int] = []
    for piece in cut(text, calls, tokenizer=tokenizer, tools=tools, joined=joined):
        tokens = encode_text(tokenizer, piece.text)
        supervised = tokens if piece.toolken < 0 else tokens[:1]
        for at, token in enumerate(supervised, start=len(ids)):
            if at > 0:
                index.append(at - 1)
                target.append(token)
                toolken.append(piece.toolken)
        ids += tokens
    return Encoded((), tuple(ids), tuple(index), tuple(target), tuple(toolken))


def align(example: Example, *, prompt: Prompt, tokenizer: PreTrainedTokenizerBase, tools: Sequence[str]) -> Encoded:
    """Encode an example in the context that inference uses; a text without a question is seen without the prompt.

    Args:
        example: Question and answer with calls at character spans.
        prompt: The reasoning prompt.
        tokenizer: The base's tokenizer.
        tools: Names in row order.

    Raises:
        UserError: The example cannot be aligned; names its origin.
    """
    joined = prompt.after[-1:].isalnum()
    try:
        if not example.question.strip():
            plain = align_text(example.answer, example.calls, asked=(), tokenizer=tokenizer, tools=tools, joined=joined)
            return replace(plain, prefix=begin_ids(tokenizer))
        text, calls = concluded(example, prompt)
        asked = prompt.question_ids(tokenizer, example.question)
        encoded = align_text(text, calls, asked=asked, tokenizer=tokenizer, tools=tools, joined=joined)
        return replace(encoded, prefix=prompt.prefix_ids(tokenizer))
    except UserError as error:
        raise UserError(example.origin or error.where, error.problem, error.fix) from error
