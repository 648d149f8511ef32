"""Tokens become text one by one: whole characters only, words of one answer, stops found in what has been decoded.

`Decoder` holds back characters whose bytes are not complete. `AnswerText` is the text of one answer: it keeps words
from extending an inserted number, finds the texts that end an answer, and hands out new text as soon as no stop can
begin in it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolken.inference.continuation import extends_number, may_extend

BROKEN = "\ufffd"
LONGEST_CHARACTER = 4
LONGEST_HELD = 12
CONTEXT = 8


class Decoder:
    """Text of ids that are appended one after the other.

    Args:
        decode: Ids to text.
        context: Ids that stand before; their last few keep a tokenizer from dropping the first space.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], context: Sequence[int]) -> None:
        self._decode = decode
        self._fresh: list[int] = list(context[-CONTEXT:])
        self._shown = 0
        self._settle()

    def peek(self, ids: Sequence[int]) -> str:
        """Return the text that these ids would complete; empty while its last character lacks bytes."""
        return self._whole(self._piece(ids))[self._shown :]

    def push(self, ids: Sequence[int]) -> str:
        """Append ids and return the text that they complete."""
        self._fresh += ids
        piece = self._piece(())
        whole = self._whole(piece)
        new = whole[self._shown :]
        if whole == piece or len(self._fresh) > LONGEST_HELD:
            new = piece[self._shown :]
            self._settle()
        else:
            self._shown = max(self._shown, len(whole))
        return new

    def flush(self) -> str:
        """Return what is held back, incomplete as it is."""
        if not self._fresh:
            return ""
        rest = self._piece(())[self._shown :]
        self._settle()
        return rest

    def skip(self, ids: Sequence[int]) -> None:
        """Append ids whose text is known; nothing may be held back."""
        self._fresh = list(ids)
        self._settle()

    def _piece(self, ids: Sequence[int]) -> str:
        fresh = [*self._fresh, *ids]
        text = self._decode([*self._window, *fresh])
        return text[len(self._before) :] if text.startswith(self._before) else self._decode(fresh)

    def _whole(self, piece: str) -> str:
        """Cut off a broken end: up to three bytes of a character stand there as so many marks."""
        end = len(piece)
        while end and len(piece) - end < LONGEST_CHARACTER - 1 and piece[end - 1] == BROKEN:
            end -= 1
        return piece[:end]

    def _settle(self) -> None:
        # The window starts at a whole character: bytes decode the same with and without what stood before.
        self._window, self._fresh, self._shown = self._fresh, [], 0
        self._before = self._decode(self._window)


class AnswerText:
    """The growing text of one answer.

    Attributes:
        ids: Ids of the answer, inserted results included.
        text: What the ids say, from the first character on.
    """

    def __init__(self, decoder: Decoder, *, stop: Sequence[str], lead: str) -> None:
        self.ids: list[int] = []
        self.text = ""
        self._decoder = decoder
        self._stop = tuple(text for text in stop if text)
        self._lead = lead
        self._shown = 0
        self._result = ""
        self._result_end = 0

    @property
    def visible(self) -> str:
        """The text without the space that only joins it to the prompt."""
        return self.text[self._offset() :]

    def _offset(self) -> int:
        return len(self._lead) if self._lead and self.text.startswith(self._lead) else 0

    def lets_through(self, token: int) -> bool:
        """Return whether this token leaves the number that was inserted last as it is."""
        if not self._result:
            return True
        piece = self._decoder.peek([token])
        return not extends_number(self._result, self.text[self._result_end :] + piece)

    def takes_result(self) -> bool:
        """Return whether a result put here could not be mistaken for more digits of the last one."""
        return not (self._result and may_extend(self._result, self.text[self._result_end :]))

    def append(self, token: int) -> bool:
        """Append a token; return whether a stop text is reached, which is then cut off with all behind it."""
        self.ids.append(token)
        self.text += self._decoder.push([token])
        # A stop cannot begin in text that was handed out, nor in an inserted result.
        begin = max(self._result_end, self._shown)
        found = [at for stop in self._stop if (at := self.text.find(stop, begin)) >= 0]
        if found:
            self.text = self.text[: min(found)]
        return bool(found)

    def insert(self, ids: Sequence[int], text: str, result: str) -> tuple[str, int, int]:
        """Append an inserted result; return its piece of visible text and the span of the result in there.

        All text before must have been handed out (`flush`).

        Args:
            ids: Of the piece.
            text: What the ids say: the result, with a space in front where it has one.
            result: The result itself.
        """
        begin = len(self.visible)
        self.ids += ids
        self._decoder.skip(ids)
        self.text += text
        self._result, self._result_end = result, len(self.text)
        self._shown = len(self.text)
        visible = self.visible
        return visible[begin:], len(visible) - len(result), len(visible)

    def take(self, *, final: bool = False) -> str:
        """Return new visible text; what may still turn out to be a stop is kept until it is `final`."""
        end = len(self.text) if final else len(self.text) - self._held_back()
        begin = max(self._shown, self._offset())
        if not final and self.text == self._lead[: len(self.text)]:
            return ""
        self._shown = max(self._shown, end)
        return self.text[begin:end]

    def flush(self) -> str:
        """End the held characters and return all new text."""
        self.text += self._decoder.flush()
        return self.take(final=True)

    def _held_back(self) -> int:
        open_text = self.text[max(self._shown, self._result_end) :]
        longest = max((len(stop) for stop in self._stop), default=1) - 1
        for size in range(min(longest, len(open_text)), 0, -1):
            if any(stop.startswith(open_text[-size:]) for stop in self._stop):
                return size
        return 0
