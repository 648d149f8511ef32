"""How one question looks to the base: the reasoning context, the argument context of a call, and inserted results.

Invariant: every id comes from the functions that training used, so decoding sees what training saw. Text that a user,
a model or a tool wrote is encoded with special tokens as ordinary characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from toolken.data.encode import decode_piece, encode_piece, encode_text, glues, splice_ids
from toolken.data.prompts import Demonstrations, Prompt
from toolken.errors import UserError
from toolken.inference.filling import Context, Failure, Splice
from toolken.tools.tool import Tool

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SHOWN_ARGUMENTS = 200
SHOWN_ERROR = 200


class QuestionScript:
    """The contexts of one question.

    Attributes:
        question: As it was asked.
        start: The reasoning context before the answer.
        lead: Text that only joins the answer to the prompt.
        stop: Texts that end the answer.
    """

    def __init__(
        self,
        question: str,
        *,
        prompt: Prompt,
        demonstrations: Mapping[str, Demonstrations],
        tokenizer: PreTrainedTokenizerBase,
    ) -> None:
        self.question = question
        prefix = prompt.prefix_ids(tokenizer)
        self.start = Context(prefix, [*prefix, *prompt.question_ids(tokenizer, question)])
        self.lead = prompt.lead
        self.stop = prompt.stop
        self._after = prompt.after
        self._demonstrations = demonstrations
        self._tokenizer = tokenizer

    def fill(self, tool: Tool, answer: Sequence[int], failures: Sequence[Failure]) -> Context:
        """Return the context of argument mode up to `<name>(`; failed attempts stand before it with their errors."""
        shown = self._demonstrations[tool.name]
        ids = shown.context_ids(self._tokenizer, self.question, answer, tool.name)
        for failure in failures:
            raw, error = failure.raw_arguments[:SHOWN_ARGUMENTS], " ".join(failure.error.split())[:SHOWN_ERROR]
            ids += encode_piece(self._tokenizer, f"{raw}) failed: {error}. Corrected: <{tool.name}>(")
        return Context(shown.prefix_ids(self._tokenizer), ids)

    def splice(self, before: str, result: str) -> Splice:
        """Return what puts a result behind the answer so far.

        Raises:
            UserError: The tokenizer does not give the result back as it is.
        """
        ids = splice_ids(self._tokenizer, self._after + before, result)
        text = decode_piece(self._tokenizer, ids)
        if text not in (result, " " + result):
            raise UserError("result", f"the tokenizer cannot write {result[:40]!r}")
        return Splice(ids, text)

    def write(self, text: str, follows: str) -> Splice:
        """Return what puts the text of a rule behind the answer so far, encoded apart as words between calls are.

        Args:
            text: What the rule writes.
            follows: A result that follows; where the tokenizer glues a space to its start, it brings the text's last.

        Raises:
            UserError: The tokenizer does not give the text back as it is.
        """
        if text.endswith(" ") and follows and glues(self._tokenizer, follows):
            text = text[:-1]
        return Splice(encode_text(self._tokenizer, text), text)
