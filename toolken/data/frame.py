"""A frame around a question: the text before it, shared by all questions, and the text after it.

Invariant: the text before is encoded once, as the start of a context, without the space at its end; the question
brings that space, so the shared part is a true prefix of every context. Special tokens of the frame are parsed, those
in a question are ordinary characters.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolken.data.encode import encode_piece, encode_start
from toolken.data.rows import CHECK_NAME, data_root
from toolken.errors import UserError
from toolken.files import read_text

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

QUESTION = "[QUESTION]"


def split_frame(text: str, where: str) -> tuple[str, str]:
    """Split a template at its last `[QUESTION]` into the text before and the text after.

    Raises:
        UserError: There is no placeholder.
    """
    before, found, after = text.rpartition(QUESTION)
    if not found:
        raise UserError(where, f"no {QUESTION} in the template", f"write {QUESTION} where the question goes")
    return before, after.rstrip(" ")


def lead(after: str) -> str:
    """Return what stands between the frame and the answer: a space, or nothing after a line break or a chat mark."""
    return "" if not after or after[-1].isspace() or after[-1] == ">" else " "


@functools.lru_cache(maxsize=64)
def frame_prefix(tokenizer: PreTrainedTokenizerBase, before: str) -> tuple[int, ...]:
    """Return the ids of the shared part."""
    return encode_start(tokenizer, before.removesuffix(" "))


def frame_question(tokenizer: PreTrainedTokenizerBase, frame: Sequence[str], question: str) -> list[int]:
    """Return the ids of the question and the text after it.

    Both are encoded as one piece, so that `?` and a line break merge as they do in the worked examples; only where
    the text after holds special tokens, the question is kept apart from them.

    Args:
        tokenizer: The base's tokenizer.
        frame: Text before and after the question.
        question: What a user asks; white space around it is dropped.
    """
    before, after = frame
    text = (" " if before.endswith(" ") else "") + question.strip()
    marks = encode_piece(tokenizer, after, special=True)
    if marks == encode_piece(tokenizer, after):
        return encode_piece(tokenizer, text + after)
    return encode_piece(tokenizer, text) + marks


def read_frame(name: str, root: Path | None, where: str) -> str:
    """Read a template file, looked up under the data root first, then from the working directory.

    Raises:
        UserError: No such file, or it is not UTF-8 text.
    """
    base = data_root(root)
    for path in (base / name, Path(name)):
        if path.is_file():
            return read_text(path, CHECK_NAME)
    looked = dict.fromkeys(str(path) for path in (base / name, Path(name)))
    raise UserError(where, f"no file {' or '.join(looked)}", CHECK_NAME)
