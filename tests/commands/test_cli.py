"""What a user types, and the one line that comes back when it is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.recipes.saved import save_tiny_base, tiny_config
from toolken.cli import main
from toolken.config import BaseSection, InferenceSection
from toolken.data.questions import read_questions
from toolken.model.head import ToolkenHead
from toolken.recipes.answering_run import load_engine, part_file
from toolken.recipes.training_run import train


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    return train(tiny_config(save_tiny_base(folder / "base"), folder / "run")).directory


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, object]:
    assert main(argv) == 0
    *_, last = capsys.readouterr().out.splitlines()
    found = json.loads(last)
    assert isinstance(found, dict)
    return found


def refuse(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = [line for line in captured.err.splitlines() if line.startswith("error: ")]
    return line


def test_infer_answers_one_question(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "infer", "--toolkens", f"{trained}/toolkens", "--question", "What is 3 + 4?", "--trace")
    assert set(found) == {"id", "question", "text", "answer", "calls", "finish_reason", "usage"}


def test_infer_writes_one_line_for_each_question_in_order(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = tmp_path / "questions.jsonl"
    rows = [{"id": f"q{n}", "question": f"What is {n} + {n}?"} for n in range(9)]
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    output = tmp_path / "answers.jsonl"
    flags = ("infer", "--toolkens", f"{trained}/toolkens", "--input", str(questions), "--output", str(output))
    assert run(capsys, *flags, "--inference.bias", "3")["n"] == 9
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line["id"] for line in lines] == [row["id"] for row in rows]
    for line in lines:
        for call in line["calls"]:
            assert set(call) == {"tool", "arguments", "raw_arguments", "outcome", "start", "end"}
            assert (call["start"] is None) == (call["end"] is None)
    assert [path.name for path in tmp_path.glob("*.part")] == []


def test_a_killed_infer_goes_on_where_it_stopped(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(json.dumps({"id": n, "question": f"{n} + 1?"}) + "\n" for n in range(6)))
    output = tmp_path / "answers.jsonl"
    flags = ("infer", "--toolkens", f"{trained}/toolkens", "--input", str(questions), "--output", str(output))
    run(capsys, *flags)
    whole = [json.loads(line) for line in output.read_text().splitlines()]
    # What a kill leaves: whole lines, and the start of one that was being written.
    loaded = load_engine(trained / "toolkens", tools=None, base=BaseSection(), inference=InferenceSection())
    part = part_file(loaded, read_questions(questions), output)
    kept = "kept\u2028\x85"  # separators that JSON leaves as they are
    marked = [{**line, "text": kept} for line in whole[:2]]
    part.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in marked) + '{"id": 2, "que')
    run(capsys, *flags)
    lines = [json.loads(line) for line in output.read_text().split("\n") if line]
    assert [line["text"] for line in lines] == [kept, kept, *[line["text"] for line in whole[2:]]]


def test_calibrate_report_and_row_operations(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "calibrate", str(trained), "--output", str(tmp_path / "shifted"))
    assert {"shift", "f1_before", "f1_after"} <= set(found)
    before, after = ToolkenHead.load(trained / "toolkens"), ToolkenHead.load(tmp_path / "shifted")
    assert before.weight.equal(after.weight)
    (trained / "report.html").unlink()
    run(capsys, "report", str(trained))
    assert (trained / "report.html").is_file()
    assert len(run(capsys, "tools", "list", f"{trained}/toolkens")["tools"]) == 13  # type: ignore[arg-type]
    run(capsys, "tools", "remove", f"{trained}/toolkens", "--names", "add", "gcd", "--output", str(tmp_path / "few"))
    few = ToolkenHead.load(tmp_path / "few")
    assert few.weight.equal(before.select(few.names).weight) and len(few.names) == 11
    run(capsys, "tools", "remove", f"{trained}/toolkens", "--names", *few.names, "--output", str(tmp_path / "two"))
    merged = run(capsys, "tools", "merge", f"{tmp_path}/few", f"{tmp_path}/two", "--output", f"{tmp_path}/all")
    assert sorted(merged["tools"]) == sorted(before.names)  # type: ignore[arg-type, call-overload]


def test_data_validate_prints_what_calls_cover_and_refuses_misaligned_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.jsonl"
    good = {"question": "gcd of 316 and 196?", "answer": "It is <gcd>(316,196)=4<eoe>4."}
    file.write_text(json.dumps(good) + "\n")
    assert main(["data", "validate", str(file)]) == 0
    captured = capsys.readouterr()
    assert f'{file}:1  <gcd>(316,196) covers "4"' in captured.err
    assert json.loads(captured.out) == {"rows": 1, "calls": 1}
    bad = {"question": "gcd?", "answer": "It is <gcd>(316,196)=4<eoe>5."}
    file.write_text(json.dumps(good) + "\n" + json.dumps(bad) + "\n")
    assert "rows.jsonl:2" in refuse(capsys, "data", "validate", str(file))


def test_data_generate_and_convert_round_trip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    run(capsys, "data", "generate", "--output", str(first), "--per-tool", "2", "--two-hop", "3")
    run(capsys, "data", "convert", str(first), "--output", str(second))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["trian"], "did you mean `train`?"),
        (["tools"], "names no command by itself"),
        (["train", "--solver.l22", "1"], "did you mean"),
        (["train", "--config", "nowhere.yaml"], "nowhere.yaml"),
        (["train", "--solver.l2", "-1"], "solver.l2"),
        (["infer", "--toolkens", "nowhere"], "--question"),
        (["infer", "--toolkens", "nowhere", "--question", "1 + 1?"], "nowhere"),
        (["infer", "--toolkens", "nowhere", "--question", "  "], "is empty"),
        (["infer", "--toolkens", "nowhere", "--input", "x.jsonl"], "--output"),
        (["eval"], "nothing to evaluate"),
        (["report", "nowhere"], "nowhere"),
        (["data", "validate", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_bad_input_is_one_line(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refuse(capsys, *argv)


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().err
    assert all(
        name in shown for name in ("train", "infer", "eval", "calibrate", "report", "tools list", "data validate")
    )


def test_eval_cross_validates_solvers_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = save_tiny_base(tmp_path / "base")
    flags = ["--base.name", str(base), "--base.dtype", "float32", "--data.generate.per_tool", "4"]
    found = run(capsys, "eval", *flags, "--folds", "2", "--methods", "convex:1e-3", "adam:1e-2", "--solver.epochs", "1")
    methods = found["methods"]
    assert isinstance(methods, list) and [record["method"] for record in methods] == ["convex:1e-3", "adam:1e-2"]
    for record in methods:
        for split in ("folds", "validation"):
            counts = record[split]
            assert counts["f1_low"] <= counts["f1"] <= counts["f1_high"]
            assert counts["recall"]["n"] == counts["true_positives"] + counts["false_negatives"] > 0
    assert "no solver" in refuse(capsys, "eval", *flags, "--folds", "2", "--methods", "sgd")
