"""KAMEL's rows, questions and facts, on a few rows of our own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from toolken.data.example import Example
from toolken.data.kamel_facts import Frame, look_up, normalise, object_names, read_facts, read_frames
from toolken.data.readers import read_row
from toolken.data.rows import RawRow
from toolken.errors import ToolError, UserError

OWNS = {"question": "Who owns Nike?", "subject": "Nike", "answer": ["Ann", "Bob, Jr."], "api": "P127"}


def read(row: Mapping[str, object], tools: tuple[str, ...] | None = ("P127", "P17")) -> Example:
    return read_row(RawRow("k.json:3", row), tools)


def prose(text: str, call: str) -> Example:
    return read({"text": text, "call": [call], "api": "P127", "start_token_idx": [3], "end_token_idx": [9]})


def test_a_supervised_answer_is_the_call_and_nothing_else() -> None:
    example = read(OWNS)
    assert (example.question, example.answer) == ("Who owns Nike?", "Ann, Bob, Jr.")
    assert example.result(example.calls[0]) == example.answer
    assert (example.calls[0].tool, example.calls[0].arguments) == ("P127", '"Nike"')


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("Who owns Nike? The owner of Nike is Ann.", 36),
        ("Ann, as one knows, is what the owner is called: Ann.", 48),
        ("It belongs to Ann, not to Annabel.", 14),
    ],
)
def test_prose_states_its_object_where_it_is_named_last_as_a_whole_word(text: str, start: int) -> None:
    example = prose(text, '<f>P127("Nike")="Ann"</f>')
    assert (example.question, example.answer) == ("", text)
    assert (example.calls[0].start, example.calls[0].end) == (start, start + 3)


def test_prose_keeps_the_arguments_as_they_stand() -> None:
    assert prose("It was the 8th.", '<f>P127("Andrew", "Barcelona", 2016)="8th"</f>').calls[0].arguments == (
        '"Andrew", "Barcelona", 2016'
    )


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({**OWNS, "api": "P99"}, "no tool <P99>"),
        ({**OWNS, "answer": []}, "`answer` is no list of texts"),
        ({**OWNS, "answer": [{"chosen": "Ann"}]}, "`answer` is no list of texts"),
        ({"question": "Who owns Nike?", "answer": [{"chosen": "Ann"}], "api": "P127"}, "`subject` is missing"),
        ({"text": "Of Asian birth.", "call": ['<f>P17("it")="Asia"</f>'], "api": "P17"}, "does not stand in the text"),
        ({"text": "Ann.", "call": ['<f>P17("it")="Ann"</f>'], "api": "P127"}, "not one call of P127"),
        ({"text": "Ann.", "call": [], "api": "P127"}, "not one call of P127"),
        ({"text": "Ann.", "call": [3], "api": "P127"}, "not one call of P127"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(row: dict[str, object], problem: str) -> None:
    with pytest.raises(UserError, match=r"^k\.json:3: ") as caught:
        read(row)
    assert problem in str(caught.value)


def test_spellings_of_one_name_are_one() -> None:
    spellings = ("The Hélène  Dufau", "helene dufau", "Hélène-Dufau.", '"Helene Dufau"')
    assert {normalise(name) for name in spellings} == {"helene dufau"}
    assert normalise("Ada") != normalise("Adam") and normalise("The") == "the" and normalise("?!") == "?!"


def test_a_frame_gives_the_subject_of_its_own_questions_alone() -> None:
    frame = Frame("Who owns ", "?")
    assert frame.subject("Who owns the Who?") == "the Who"
    assert frame.subject("Who owns ?") is None and frame.subject("Who sold Nike?") is None
    assert Frame("Is it ab", "bc?").subject("Is it abc?") is None


def write_kamel(root: Path) -> Path:
    """Write the few rows that stand for the official files."""
    folder = root / "kamel"
    folder.mkdir()
    test = {"question": "Who owns The Ritz?", "api": "P127"}
    named = [{"chosen": "Eve", "rdf": "Eve A.", "alternative": ["E. A."]}, {"chosen": "Dan", "rdf": None}]
    odd = {"question": "Whose is it?", "api": "P127", "answer": [{"chosen": "Eve"}]}
    where = {"question": "Where is Ur?", "subject": "Ur", "answer": ["Iraq"], "api": "P17"}
    lines = [OWNS, where, {**OWNS, "question": "Who owns Puma?", "subject": "Puma", "answer": ["Kim"]}]
    (folder / "sup_train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "sup_dev.jsonl").write_text(json.dumps({**where, "question": "Where is Uruk?", "subject": "Uruk"}) + "\n")
    for size in (30, 60, 100, 234):
        (folder / f"test_first_{size}.json").write_text(json.dumps([{**test, "answer": named}, odd]))
    return root


def test_the_facts_are_those_of_all_rows_and_tests_get_their_subject_from_the_frame(tmp_path: Path) -> None:
    folder = str(write_kamel(tmp_path))
    assert read_frames(folder) == {"P127": Frame("Who owns ", "?"), "P17": Frame("Where is ", "?")}
    assert len(read_facts(folder)) == 5
    assert look_up("nike", "P127", folder) == "Ann, Bob, Jr."
    assert look_up("Ritz", "P127", folder) == "Eve, Dan"
    for subject, relation in (("Nike", "P17"), ("Nik", "P127"), ("", "P127")):
        with pytest.raises(ToolError, match="is not known"):
            look_up(subject, relation, folder)


def test_questions_of_one_relation_that_differ_in_more_than_the_subject_are_refused(tmp_path: Path) -> None:
    root = write_kamel(tmp_path)
    (root / "kamel/sup_dev.jsonl").write_text(json.dumps({**OWNS, "question": "Whose is Nike?"}) + "\n")
    with pytest.raises(UserError, match="no usual question of P127"):
        read_frames(str(root))


def test_names_of_objects_are_told_from_every_form() -> None:
    assert object_names([{"chosen": "A", "rdf": "B", "alternative": ["A", "C"]}, {"chosen": None}]) == [["A", "B", "C"]]
    assert object_names(["A", ["B", "C"]]) == [["A"], ["B", "C"]]
    assert object_names(None) == []
