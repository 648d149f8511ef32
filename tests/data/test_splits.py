"""Law 13: no question stands on both sides of a split."""

from hypothesis import given
from hypothesis import strategies as st

from toolken.data.example import Example
from toolken.data.splits import drop_overlap, question_key, split_by_hash


def rows(*questions: str) -> list[Example]:
    return [Example(question, "answer") for question in questions]


def test_law_13_held_out_questions_are_dropped_white_space_aside() -> None:
    overlap = drop_overlap(rows("Is it 4 ?", "\nother", "third"), ["Is it  4?", " third "])
    assert [e.question for e in overlap.kept] == ["\nother"]
    assert [e.question for e in overlap.dropped] == ["Is it 4 ?", "third"]
    plain = drop_overlap([Example("", "a text"), Example("", "b text")], ["a  text"])
    assert [e.answer for e in plain.kept] == ["b text"]


@given(st.lists(st.text(alphabet="ab ", max_size=6), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_law_13_a_split_puts_a_question_on_one_side_only(questions: list[str], share: float) -> None:
    split = split_by_hash(rows(*questions), share)
    train, held = ({question_key(e.question) or "answer" for e in part} for part in split)
    assert not train & held and len(split.train) + len(split.held_out) == len(questions)
    distinct = {question_key(q) or "answer" for q in questions}
    assert bool(train) and bool(held) == (len(distinct) > 1)


def test_a_split_depends_on_the_questions_alone_and_has_about_its_share() -> None:
    many = rows(*(f"question {i}" for i in range(2000)))
    split = split_by_hash(many, 0.1)
    assert 150 < len(split.held_out) < 250
    again = split_by_hash(list(reversed(many)) + rows("one more"), 0.1)
    assert {e.question for e in split.held_out} == {e.question for e in again.held_out} - {"one more"}
