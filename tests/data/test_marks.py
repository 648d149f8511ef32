"""Plans of marks: training texts in which every call stands as its own text."""

from pathlib import Path

import pytest

from toolken.config import PromptSection
from toolken.data.formats import read_examples
from toolken.data.marks import mark_name, mark_text
from toolken.data.prompts import load_prompt
from toolken.data.readers import read_row
from toolken.data.rows import RawRow
from toolken.errors import UserError

SOLVED = "Task 1:\nI am here.\nPlan:\n[RUN] <door>\n[END]\n\n"
TARGET = "Task 2:\nI am in ['hall'].\nHint:\nSay it.\nPlan:\n[WALK] <door>\n[OPEN] <door>\n[END]"
MARKS = ["[WALK]", "<door>", "[OPEN]", "<door>", "[END]"]
TOOLS = ("[WALK]", "[RUN]", "[OPEN]", "[END]", "door")


def row(text: str = SOLVED + TARGET, marks: object = MARKS) -> RawRow:
    return RawRow("vh.json:1", {"text": text, "tar_eq": marks, "start_token_idx": [1], "end_token_idx": [2]})


def test_only_the_last_task_is_read_and_every_mark_of_its_plan_is_a_call() -> None:
    example = read_row(row(), TOOLS)
    assert example.question == "I am in ['hall'].\nHint:\nSay it."
    assert example.answer == "[WALK] <door>\n[OPEN] <door>\n[END]"
    assert [call.tool for call in example.calls] == ["[WALK]", "door", "[OPEN]", "door", "[END]"]
    assert [example.result(call) for call in example.calls] == MARKS
    assert all(call.arguments == "" for call in example.calls)


@pytest.mark.parametrize(
    ("text", "marks", "reason"),
    [
        (SOLVED + TARGET, MARKS[:-1], "other marks"),
        (SOLVED + TARGET, ["[RUN]", *MARKS[1:]], "other marks"),
        ("[WALK] <door>", ["[WALK]", "<door>"], "no task with a plan"),
        (SOLVED + "Task 2:\nNothing.", ["[WALK]"], "no task with a plan"),
        (SOLVED + TARGET.replace("[OPEN]", "[SHUT]"), [*MARKS[:2], "[SHUT]", *MARKS[3:]], r"\[SHUT\]"),
        (SOLVED + TARGET, [], "no call"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(text: str, marks: list[str], reason: str) -> None:
    with pytest.raises(UserError, match=reason) as caught:
        read_row(row(text, marks), TOOLS)
    assert caught.value.where == "vh.json:1"


def test_a_mark_and_its_tool_name_each_other() -> None:
    for mark in MARKS:
        assert mark_text(mark_name(mark)) == mark


def test_a_template_that_ends_in_its_question_takes_the_text_after_it_from_the_settings(tmp_path: Path) -> None:
    (tmp_path / "open.txt").write_text("Task 1:\n[QUESTION]")
    (tmp_path / "closed.txt").write_text("Q: [QUESTION]\nA:")
    prompt = load_prompt(PromptSection(template="open.txt", after="\nPlan:\n"), root=tmp_path)
    assert (prompt.before, prompt.after, prompt.lead) == ("Task 1:\n", "\nPlan:\n", "")
    with pytest.raises(UserError, match="goes on after"):
        load_prompt(PromptSection(template="closed.txt", after="\nPlan:\n"), root=tmp_path)


def test_the_official_texts_are_all_read(data_root: Path) -> None:
    rows = read_examples(["vh/legal_train_v4_embedding.json"], root=data_root, tools=None)
    assert len(rows.examples) == 247 and not rows.refused
    names = {call.tool for row in rows.examples for call in row.calls}
    assert len(names) == 53 and {"[WALK]", "[END]", "home_office"} <= names
    assert all(row.answer.endswith("[END]") and "\nHint:\n" in row.question for row in rows.examples)
