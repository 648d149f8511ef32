"""Whatever a user hands in, one line on stderr says where, what and how; nothing half-written stays."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.bad_input.refusal import TRAIN, Bench, rows
from tests.commands.test_cli import refuse
from toolken import cli
from toolken.tools.arithmetic import ARITHMETIC

ROOT = Path(__file__).parents[3]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"id": 1, "question": "3 + 4?"}\n')
    return file


@pytest.mark.parametrize("name", ["", "a_file/answers.jsonl", "questions.jsonl", "a_folder", "x" * 300])
def test_an_output_that_cannot_be_written_is_refused_before_any_question_is_answered(
    questions: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(questions.parent)
    Path("a_file").write_text("")
    Path("a_folder").mkdir()
    before = {path: path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}
    line = refuse(capsys, "infer", "--toolkens", "nowhere", "--input", "questions.jsonl", "--output", name)
    assert "nowhere" not in line and name[:20] in line
    assert {path: path.read_bytes() if path.is_file() else None for path in Path().rglob("*")} == before


@pytest.mark.parametrize("text", ["What is \ud800?", "\udcff"])
def test_half_characters_are_refused_wherever_they_come_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert "argument 5" in refuse(capsys, "infer", "--toolkens", "nowhere", "--question", text)
    rows = tmp_path / "rows.jsonl"
    good = {"question": "3 + 4?", "answer": "It is <add>(3, 4)=7<eoe>7."}
    for key in good:
        rows.write_text(json.dumps(good) + "\n" + json.dumps({**good, key: text + good[key]}) + "\n")
        assert f"{rows}:2" in refuse(capsys, "data", "validate", str(rows))
    rows.write_text(json.dumps([{"id": 1, "question": "x"}, {"id": 2, "question": text}], indent=1))
    line = refuse(capsys, "infer", "--toolkens", "nowhere", "--input", str(rows), "--output", str(tmp_path / "out"))
    assert f"{rows}:6" in line


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["train", "--inference.result_format", "zz"], "inference.result_format"),
        (["data", "generate", "--per-tool", "1", "--output", "a_folder"], "a_folder"),
        (["data", "generate", "--per-tool", "1", "--output", "/proc/x"], "/proc/x"),
        (["data", "validate", "x" * 5000], "name too long"),
        (["train", "--config", "nul.yaml"], "nul.yaml:1: a text holds a NUL character"),
    ],
)
def test_files_and_values_that_cannot_be_used_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a_folder").mkdir()
    Path("nul.yaml").write_text('out: "a\\0b"\n')
    assert message.lower() in refuse(capsys, *argv).lower()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a_folder", "nul.yaml"]


def test_ctrl_c_is_one_line_also_while_libraries_load(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "import_module", interrupted)
    for argv in (["train"], ["data", "generate"], ["--help"]):
        assert cli.main(argv) == 130
        captured = capsys.readouterr()
        assert captured.out == "" and len(captured.err.splitlines()) == 1
    code = "import sys, toolken.cli; print(len({'torch', 'pydantic', 'tyro', 'yaml'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT).stdout == "0\n"


@pytest.mark.parametrize("base", [5, {"name": 5}, {"nme": "x"}, {"name": "nowhere/at/all"}])
def test_an_artefact_that_records_no_usable_base_is_one_line(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], base: object
) -> None:
    copy = shutil.copytree(trained / "run" / "toolkens", tmp_path / "toolkens")
    content = json.loads((copy / "toolkens.json").read_text())
    content["training"]["base"] = base
    (copy / "toolkens.json").write_text(json.dumps(content))
    line = refuse(capsys, "infer", "--toolkens", str(copy), "--question", "3 + 4?")
    assert "nowhere" in line or "training.base" in line


def test_a_tool_without_examples_is_masked_with_a_warning_unless_examples_are_required(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"question": "3 + 4?", "answer": "It is <add>(3, 4)=7<eoe>7."}
    bench.write({"rows.jsonl": rows(row, {**row, "question": "4 + 3?"}, {**row, "question": "What is 4 and 3?"})})
    flags = bench.fill(TRAIN).split() + ["--data.train", "rows.jsonl", "--data.validation", "rows.jsonl[:1]"]
    flags += ["--solver.l2", "1e-3", "--prompt.template", "builtin:plain", "--data.negatives", "[]"]
    refused = bench.refuse(*flags, "--data.require_examples", "True")
    assert refused == "data.train: no row calls <subtract>; add rows, or set data.require_examples to False"
    assert cli.main(flags) == 0
    masked = ", ".join(f"<{name}>" for name in ARITHMETIC.names if name != "add")
    assert f"warning: no training example calls {masked}: masked in decoding" in capsys.readouterr().err.splitlines()
