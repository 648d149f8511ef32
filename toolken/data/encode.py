"""Text in pieces: token ids of a piece that is encoded apart from what stands before it.

Invariant: a piece has the same ids in training and in decoding, and the ids of pieces in a row decode to the pieces'
texts in a row: no beginning-of-sequence token and no dummy space comes with a piece. One rule, `space_follows`, says
where a result or a call wants a space in front. Special tokens in a text are ordinary characters unless the caller
vouches for the text.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolken.errors import UserError
from toolken.files import is_unicode

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Texts that a piece is encoded behind where a tokenizer puts a space in front of everything it encodes.
ANCHORS = ("\n", "#", "=", "a", "1", ".")
OPERATORS = frozenset("=≈+*×÷/^<>≤≥")


def _raw(tokenizer: PreTrainedTokenizerBase, text: str, special: bool) -> list[int]:
    try:
        # Not verbose: what is too long for the base is said by whoever knows what it is.
        ids: list[int] = tokenizer(text, add_special_tokens=False, split_special_tokens=not special, verbose=False)[
            "input_ids"
        ]
    except (TypeError, UnicodeError) as error:
        if is_unicode(text):
            raise
        raise UserError("text", "it holds half of a surrogate pair", "write whole characters") from error
    return ids


def _anchored(tokenizer: PreTrainedTokenizerBase, text: str, special: bool) -> list[int] | None:
    """Encode behind the first anchor whose own tokens stay whole; None if the text merges with all of them.

    A boundary that no merge crosses leaves the tokens to its right as they would be anywhere else.
    """
    for anchor in ANCHORS:
        head = _raw(tokenizer, anchor, False)
        ids = _raw(tokenizer, anchor + text, special)
        if ids[: len(head)] == head:
            return ids[len(head) :]
    return None


@functools.lru_cache(maxsize=8)
def adds_space(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether the tokenizer puts a dummy space in front of the text it encodes, as SentencePiece models do."""
    head = _raw(tokenizer, "\n", False)
    return _raw(tokenizer, "\na", False) != head + _raw(tokenizer, "a", False)


def encode_piece(tokenizer: PreTrainedTokenizerBase, text: str, *, special: bool = False) -> list[int]:
    """Return the ids of a piece, for text that may come back normalised (a question, a tool's own words).

    Args:
        tokenizer: Any Hugging Face tokenizer.
        text: The piece.
        special: Parse special tokens in it; only for text that no user and no model wrote.
    """
    if not text:
        return []
    ids = _anchored(tokenizer, text, special) if adds_space(tokenizer) else None
    return _raw(tokenizer, text, special) if ids is None else ids


def decode_piece(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str:
    """Return the text of ids that stand inside a text, a space at their start kept."""
    anchor = "\n"
    head = _raw(tokenizer, anchor, False)
    decoded = tokenizer.decode([*head, *ids], skip_special_tokens=False, clean_up_tokenization_spaces=False)
    text = str(decoded)
    return text[len(anchor) :] if text.startswith(anchor) else text


def encode_text(tokenizer: PreTrainedTokenizerBase, text: str, *, special: bool = False) -> list[int]:
    """Return the ids of a piece that decode to exactly this text.

    Raises:
        UserError: The tokenizer changes the text (unknown characters, normalisation, a space that cannot be kept out).
    """
    ids = encode_piece(tokenizer, text, special=special)
    back = decode_piece(tokenizer, ids)
    if back != text:
        at = next((i for i, (a, b) in enumerate(zip(back, text, strict=False)) if a != b), min(len(back), len(text)))
        raise UserError(
            "text",
            f"the tokenizer does not give {text[max(0, at - 10) : at + 10]!r} back (it reads {back[at : at + 10]!r})",
            "write the text with characters that this tokenizer keeps",
        )
    return ids


def begin_ids(tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """Return what the tokenizer itself puts before a text: its beginning-of-sequence token, or nothing."""
    plain = _raw(tokenizer, "a", False)
    ids: list[int] = tokenizer("a")["input_ids"]
    start = next((i for i in range(len(ids)) if ids[i : i + len(plain)] == plain), 0)
    return tuple(ids[:start])


def encode_start(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[int, ...]:
    """Return the ids of trusted text at the start of a context: special tokens parsed, beginning-of-sequence once."""
    begin = begin_ids(tokenizer)
    ids = tuple(_raw(tokenizer, text, True)) if text else ()
    return ids if begin and ids[: len(begin)] == begin else begin + ids


def space_follows(before: str) -> bool:
    """Return whether a value that follows this text is written with a space in front.

    After a word, a number or closing punctuation yes; after an operator as the writer spaced the operator's other
    side; after an opening bracket or quote, a currency sign, a minus, white space or nothing no.
    """
    last = before[-1:]
    if not last or last.isspace():
        return False
    if last in OPERATORS:
        body = before.rstrip("".join(OPERATORS))
        return body.endswith(" ")
    if last in "\"'“”‘’":
        return last in "”’" or (len(before) > 1 and not before[-2].isspace() and before[-2] not in "([{=")
    if before.endswith("##"):
        return True
    if unicodedata.east_asian_width(last) in "WF":
        return False
    return last.isalnum() or last in ".,:;!?)]}%…°"


def glues(tokenizer: PreTrainedTokenizerBase, result: str) -> bool:
    """Return whether the tokenizer puts a space and the start of this result into one token."""
    apart = encode_piece(tokenizer, " ") + encode_piece(tokenizer, result)
    return encode_piece(tokenizer, " " + result) != apart


def needs_space(text_before: str, tokenizer: PreTrainedTokenizerBase, *, result: str = "0") -> bool:
    """Return whether a result that is inserted after this text carries a space of its own.

    Where the tokenizer glues the space to the result, the token with the space *is* the toolken's place, so the
    result brings it. Elsewhere the space is a word token that decoding has already written; only after a letter or
    a digit, where the result would melt into the word, it is brought all the same.

    Args:
        text_before: The context up to the result: the prompt's end followed by the answer so far.
        tokenizer: The base's tokenizer.
        result: The result's text; tokenizers may glue the space to words and not to digits.
    """
    if not space_follows(text_before):
        return False
    return text_before[-1].isalnum() or glues(tokenizer, result)


def splice_ids(tokenizer: PreTrainedTokenizerBase, before: str, result: str) -> list[int]:
    """Return exactly the ids that the engine feeds for a result inserted after `before` (see `needs_space`)."""
    lead = " " if needs_space(before, tokenizer, result=result) else ""
    return encode_piece(tokenizer, lead + result)
