"""Text from tokens: whole characters only, stops found wherever tokens cut them, nothing taken back."""

import random

from toolken.inference.text import AnswerText, Decoder


def decode(ids: list[int]) -> str:
    return bytes(ids).decode("utf-8", errors="replace")


def answer(*, stop: tuple[str, ...] = (), lead: str = "") -> AnswerText:
    return AnswerText(Decoder(decode, list(b"A:")), stop=stop, lead=lead)


def test_bytes_of_a_character_are_held_back_until_it_is_whole() -> None:
    decoder = Decoder(decode, list(b"A:"))
    pieces = [decoder.push([byte]) for byte in "a×€😀b".encode()]
    assert pieces == ["a", "", "×", "", "", "€", "", "", "", "😀", "b"]
    assert decoder.flush() == ""


def test_bytes_that_never_become_a_character_come_out_in_the_end() -> None:
    decoder = Decoder(decode, [])
    assert decoder.push([0xE2]) == "" and decoder.flush() == "\ufffd"


def test_pieces_in_a_row_are_the_text_of_the_whole_whatever_the_bytes() -> None:
    rng = random.Random(1)
    for _ in range(500):
        ids = [rng.choice([0x41, 0xC3, 0x97, 0xE2, 0x82, 0xAC, 0xF0, 0x9F, 0x98, 0xFF]) for _ in range(10)]
        decoder = Decoder(decode, list(b"A:"))
        assert "".join(decoder.push([byte]) for byte in ids) + decoder.flush() == decode(ids)


def test_peeking_changes_nothing() -> None:
    decoder = Decoder(decode, [])
    assert decoder.peek(list(b"ab")) == "ab" and decoder.peek([0xC3]) == ""
    assert decoder.push(list(b"c")) == "c"


def test_handed_out_text_is_never_taken_back_whatever_the_cuts() -> None:
    rng = random.Random(0)
    for _ in range(300):
        stop = tuple(rng.sample(["\n\n", "\nQ:", "ab", "aab", "\nQuestion:"], rng.randrange(4)))
        text = answer(stop=stop, lead=rng.choice(["", " "]))
        written, shown, stopped = "", "", False
        while not stopped and len(written) < 30:
            piece = rng.choice(["a", "b", "\n", "Q", ":", " ", "ab", "\nQ", "é"])
            for byte in piece.encode():
                stopped = text.append(byte)
                if stopped:
                    break
                shown += text.take()
            written += piece
        shown += text.take(final=True) if stopped else text.flush()
        assert shown == text.visible
        assert not any(mark in text.text for mark in stop)
        assert stopped == any(mark in written for mark in stop)
        cut = min((written.find(mark) for mark in stop if mark in written), default=len(written))
        assert text.text == written[:cut]


def test_the_joining_space_is_no_part_of_the_answer() -> None:
    text = answer(lead=" ")
    for byte in b" is ":
        text.append(byte)
    text.flush()
    piece, start, end = text.insert(list(b"42"), "42", "42")
    assert (piece, text.visible, text.visible[start:end]) == ("42", "is 42", "42")
    first = answer(lead=" ")
    assert first.insert(list(b" 42"), " 42", "42") == ("42", 0, 2)


def test_a_stop_does_not_begin_in_an_inserted_result() -> None:
    text = answer(stop=("2\n",))
    text.insert(list(b"42"), "42", "42")
    assert not text.append(ord("\n"))
