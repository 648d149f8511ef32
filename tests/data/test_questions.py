"""Questions: the user's own JSONL and the official layouts."""

import json
from pathlib import Path

import pytest

from toolken.data.questions import Question, read_questions
from toolken.errors import UserError


def write(path: Path, rows: list[object], *, lines: bool = True) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)) if lines else json.dumps(rows, indent=1))
    return path


def test_ids_are_kept_as_they_are_given(tmp_path: Path) -> None:
    path = write(
        tmp_path / "q.jsonl", [{"id": "a", "question": "One?"}, {"id": 7, "question": "Two?"}, {"question": "3?"}]
    )
    assert read_questions(path) == [Question("a", "One?"), Question(7, "Two?"), Question(2, "3?")]


def test_official_lists_have_gold_answers(tmp_path: Path) -> None:
    rows = [
        {"question": "One?", "answer": 0.3936, "func": "<power>(0.89, 8)=0.3936"},
        {"question": "Two?", "answer": "32.38", "calculation": ["<multiply>(67,29)=1943"]},
        {"question": "Three?", "answer": [{"chosen": "12"}]},
        {"question": "Four?", "answer": "Half of it.\n#### 72"},
    ]
    questions = read_questions(write(tmp_path / "q.json", rows, lines=False))
    assert [q.answer for q in questions] == ["0.3936", "32.38", None, "72"]
    assert questions[0].metadata == {"func": "<power>(0.89, 8)=0.3936"}


def test_templates_are_filled_with_the_enlarged_numbers(tmp_path: Path) -> None:
    rows = [
        {"question": "{v_1} and ${v_2}?", "v": [1.0, 2.0], "enhanced_v": [409, 0.5], "enhanced_result": 9.0},
        {"question": "The {v_1} bill?", "answer": "52", "v": ["gas"], "enhanced_v": [], "enhanced_result": 52.0},
    ]  # fmt: skip
    questions = read_questions(write(tmp_path / "q.json", rows))
    assert [(q.question, q.answer) for q in questions] == [("409 and $0.5?", "9"), ("The gas bill?", "52")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": 1}, "`question` is missing"),
        ({"question": " "}, "`question` is empty"),
        ({"question": "x", "id": [1]}, "`id` is list"),
        ({"question": "x", "id": "a"}, r"the id 'a' stands at .*q\.jsonl:1 as well"),
        ("x", "is str, not an object"),
        ({"question": "{v_2}?", "enhanced_v": [1], "enhanced_result": 1}, r"no number for \{v_2\}"),
    ],
)
def test_bad_questions_are_refused_with_their_line(tmp_path: Path, row: object, message: str) -> None:
    path = write(tmp_path / "q.jsonl", [{"id": "a", "question": "One?"}, row])
    with pytest.raises(UserError, match=rf"q\.jsonl:2: .*{message}"):
        read_questions(path)
    assert read_questions(f"{path}[:1]") == [Question("a", "One?")]
    with pytest.raises(UserError, match="no questions"):
        read_questions("q.jsonl[5:]", root=tmp_path)
