"""The official files, where `$TOOLKEN_DATA` has them: what is used, what is refused, no question on two sides."""

import os
from pathlib import Path

import pytest

from tests.data.spacing import space_agreement
from toolken.config import PromptSection
from toolken.data.formats import read_examples
from toolken.data.prompts import load_demonstrations, load_prompt
from toolken.data.questions import read_questions
from toolken.data.splits import drop_overlap, question_key
from toolken.errors import UserError
from toolken.tools.arithmetic import ARITHMETIC

ROOT = Path(os.environ.get("TOOLKEN_DATA") or "missing")
pytestmark = pytest.mark.skipif(not (ROOT / "funcqa").is_dir(), reason="$TOOLKEN_DATA does not hold funcqa/")
TOOLS = ARITHMETIC.names


def test_funcqa_rows_are_used_or_refused_by_line() -> None:
    rows = read_examples(["funcqa/training_data/*.jsonl"], root=ROOT, tools=TOOLS, on_bad_row="skip")
    assert (len(rows.examples), len(rows.refused)) == (646, 4)
    assert [line.split(": ")[0].removeprefix("funcqa/training_data/") for line in rows.refused] == [
        "multiply.jsonl:13", "multiply.jsonl:30", "power.jsonl:35", "subtract.jsonl:7",
    ]  # fmt: skip
    assert all(len(example.calls) == 1 for example in rows.examples)
    assert space_agreement(rows.examples).share > 0.99


def test_law_13_funcqa_training_and_validation_share_no_question() -> None:
    train = read_examples(["funcqa/training_data/*.jsonl"], root=ROOT, tools=TOOLS, on_bad_row="skip").examples
    validation = read_examples(["funcqa/train.json[611:]"], root=ROOT, tools=TOOLS).examples
    assert len(validation) == 39
    official = read_questions("funcqa/funcqa_val.json", root=ROOT)
    assert {question_key(q.question) for q in official} == {question_key(e.question) for e in validation}
    kept = drop_overlap(train, [q.question for q in official]).kept
    assert len(kept) == 606
    tests = [q for name in ("oh", "mh") for q in read_questions(f"funcqa/funcqa_{name}.json", root=ROOT)]
    assert not {question_key(q.question) for q in tests} & {question_key(e.question) for e in [*kept, *validation]}


@pytest.mark.parametrize(
    ("source", "rows", "calls", "refused"),
    [
        ("gsm8k/train.jsonl[:6213]", 5175, 15701, 1038),
        ("gsm8k/train.jsonl[6213:]", 1074, 3300, 186),
        ("kamel/train_clean.json", 9069, 9069, 27),
        ("kamel/sup_train.jsonl", 23400, 23400, 0),
        ("kamel/sup_dev.jsonl", 1170, 1170, 0),
    ],
)
def test_rows_of_other_benchmarks_are_used_or_refused(source: str, rows: int, calls: int, refused: int) -> None:
    read = read_examples([source], root=ROOT, tools=None, on_bad_row="skip")
    assert (len(read.examples), len(read.refused)) == (rows, refused)
    assert sum(len(example.calls) for example in read.examples) == calls


@pytest.mark.parametrize("test", [f"kamel/test_first_{size}.json" for size in (30, 60, 100, 234)])
def test_law_13_a_test_file_of_kamel_cannot_be_trained_on(test: str) -> None:
    with pytest.raises(UserError, match="`answer` is no list of texts|`subject` is missing"):
        read_examples([test], root=ROOT, tools=None)


def test_both_funcqa_files_give_the_same_calls() -> None:
    inline = read_examples(["funcqa/training_data/*.jsonl"], root=ROOT, tools=TOOLS, on_bad_row="skip").examples
    published = read_examples(["funcqa/train.json"], root=ROOT, tools=TOOLS, on_bad_row="skip").examples
    by_question = {question_key(e.question): e for e in inline}
    for example in published:
        twin = by_question[question_key(example.question)]
        assert [(c.tool, example.result(c)) for c in example.calls] == [(c.tool, twin.result(c)) for c in twin.calls]


@pytest.mark.parametrize(
    ("name", "count", "gold"),
    [
        ("funcqa/funcqa_oh.json", 60, 60),
        ("funcqa/funcqa_mh.json", 68, 68),
        ("funcqa/funcqa_val.json", 39, 39),
        ("gsm8k-xl/test.json", 568, 568),
        ("gsm8k-xl/val.json", 1000, 1000),
    ],
)
def test_official_questions_have_gold_answers_and_no_placeholder_left(name: str, count: int, gold: int) -> None:
    questions = read_questions(name, root=ROOT)
    assert (len(questions), sum(q.answer is not None for q in questions)) == (count, gold)
    assert not [q for q in questions if "{v_" in q.question]


def test_published_templates_load() -> None:
    section = PromptSection(
        template="funcqa/template_oh/llama_general.txt", demonstrations="funcqa/template_oh/llama_<{tool}>.txt"
    )
    prompt = load_prompt(section, root=ROOT)
    assert prompt.before.endswith("Q: ") and prompt.after == "\nA:" and prompt.lead == " "
    shown = load_demonstrations(section, root=ROOT, tools=ARITHMETIC)
    assert all(f"<{name}>(" in shown[name].text for name in TOOLS)
