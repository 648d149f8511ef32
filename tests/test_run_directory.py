from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from toolken.config import Config
from toolken.errors import UserError
from toolken.run_directory import RunDirectory, default_directory, identity
from toolken.settings.loading import load_config


def config(out: Path | None = None, *flags: str) -> Config:
    return load_config(None, [*flags, *(["--out", str(out)] if out else [])])


def finished(folder: Path, *flags: str) -> None:
    with RunDirectory(config(folder, *flags)) as run:
        run.toolkens.mkdir()
        run.finish({"f1": 0.5, "nothing": float("nan")})


def test_a_new_run_writes_its_resolved_settings(tmp_path: Path) -> None:
    settings = config(tmp_path / "a" / "b", "--solver.l2", "1e-5")
    with RunDirectory(settings) as run:
        assert not run.resumed
        assert run.result is None
        assert load_config(run.config_file) == settings


def test_the_default_folder_is_named_by_name_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = config(None, "--name", "my run/1")
    with RunDirectory(first) as run:
        assert run.path == Path("runs") / f"my-run-1-{identity(first)[:8]}"
    assert default_directory(config()) != default_directory(config(None, "--solver.l2", "1e-5"))


@pytest.mark.parametrize(
    "flags", [("--name", "x"), ("--tracking.mode", "disabled"), ("--features.cache", "/elsewhere")]
)
def test_labels_tracking_and_cache_do_not_make_another_run(tmp_path: Path, flags: tuple[str, ...]) -> None:
    finished(tmp_path)
    with RunDirectory(config(tmp_path, *flags)) as run:
        assert run.resumed
        assert run.result == {"f1": 0.5, "nothing": None}


def test_an_unfinished_run_of_the_same_settings_is_resumed(tmp_path: Path) -> None:
    with RunDirectory(config(tmp_path)) as run:
        (run.path / "metrics.jsonl").write_text("{}\n")
    with RunDirectory(config(tmp_path)) as run:
        assert run.resumed
        assert run.result is None


@pytest.mark.parametrize("damage", ["half", "artefact"])
def test_a_run_without_a_complete_result_and_artefact_is_not_done(tmp_path: Path, damage: str) -> None:
    finished(tmp_path)
    if damage == "half":
        (tmp_path / "result.json").write_text('{"f1": ')
    else:
        (tmp_path / "toolkens").rmdir()
    with RunDirectory(config(tmp_path)) as run:
        assert run.result is None


def test_other_settings_in_the_same_folder_are_refused_and_change_nothing(tmp_path: Path) -> None:
    finished(tmp_path, "--data.train", "a.json")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with pytest.raises(
        UserError, match=r"data.train: \[\"a.json\"\] -> \[\"generated\"\].*solver.l2: \"auto\" -> 0.001.*--out"
    ):
        RunDirectory(config(tmp_path, "--solver.l2", "1e-3"))
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert {**before, ".lock": b""} == {**after, ".lock": b""}


@pytest.mark.parametrize("done", [True, False])
def test_a_run_does_not_go_on_with_files_that_hold_something_else(tmp_path: Path, done: bool) -> None:
    rows, prompt = tmp_path / "rows_1.jsonl", tmp_path / "prompt.txt"
    rows.write_text("one\n")
    prompt.write_text("Q: [QUESTION]\nA:")
    flags = ("--data.root", str(tmp_path), "--data.train", "rows_*.jsonl[:9]", "--prompt.template", str(prompt))
    with RunDirectory(config(tmp_path / "run", *flags)) as run:
        (run.path / "metrics.jsonl").write_text("{}\n")
        if done:
            run.toolkens.mkdir()
            run.finish({"f1": 0.5})
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()}
    for file, message in ((rows, "data.train: rows_1.jsonl has changed"), (prompt, "prompt.txt has changed")):
        content = file.read_text()
        file.write_text(content + "more")
        with pytest.raises(UserError, match=f"{message} since this run began; put it back.*--out"):
            RunDirectory(config(tmp_path / "run", *flags))
        file.write_text(content)
        RunDirectory(config(tmp_path / "run", *flags)).close()
    (tmp_path / "rows_2.jsonl").write_text("two\n")
    with pytest.raises(UserError, match=r"rows_2.jsonl has come since"):
        RunDirectory(config(tmp_path / "run", *flags))
    (tmp_path / "rows_2.jsonl").unlink()
    rows.unlink()  # what is gone is missed by whoever reads it; a finished run reads nothing
    with RunDirectory(config(tmp_path / "run", *flags)) as run:
        assert run.resumed and (run.result is not None) is done
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()} == before


def test_a_run_killed_before_it_noted_its_files_notes_them_when_it_goes_on(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("one\n")
    flags = ("--data.train", str(rows))
    RunDirectory(config(tmp_path / "run", *flags)).close()
    (tmp_path / "run" / "inputs.json").unlink()
    RunDirectory(config(tmp_path / "run", *flags)).close()
    rows.write_text("two\n")
    with pytest.raises(UserError, match="rows.jsonl has changed"):
        RunDirectory(config(tmp_path / "run", *flags))


def test_settings_written_by_another_version_are_compared_by_what_is_there(tmp_path: Path) -> None:
    with RunDirectory(config(tmp_path)) as run:
        run.config_file.write_text(run.config_file.read_text() + "removed: 1\n")
    with pytest.raises(UserError, match='removed: 1 -> "unset"'):
        RunDirectory(config(tmp_path))


def test_settings_that_are_no_text_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"name: \xff\n")
    with pytest.raises(UserError, match="config.yaml:1: not UTF-8 text"):
        RunDirectory(config(tmp_path))


def test_a_folder_with_files_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(UserError, match="no run directory.*thesis.tex"):
        RunDirectory(config(tmp_path))


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UserError, match="is a file"):
            RunDirectory(config(path))


def test_a_run_killed_before_its_settings_were_written_leaves_a_usable_folder(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("")
    (tmp_path / ".partial-x").write_text("half")
    with RunDirectory(config(tmp_path)) as run:
        assert not run.resumed
        assert not (tmp_path / ".partial-x").exists()


def test_a_second_run_in_this_process_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    with RunDirectory(config(tmp_path)), pytest.raises(UserError, match=f"process {os.getpid()} on"):
        RunDirectory(config(tmp_path))
    RunDirectory(config(tmp_path)).close()


HOLDER = """
import sys, time
from pathlib import Path
from toolken.config import Config
from toolken.run_directory import RunDirectory
run = RunDirectory(Config(out=Path(sys.argv[1])))
print("held", flush=True)
time.sleep(60)
"""


def test_a_live_run_of_another_process_holds_the_folder_and_a_kill_releases_it(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UserError, match=rf"process {other.pid} on .*, since 20\d\d-.* is at work on it"):
            RunDirectory(config(tmp_path))
        other.send_signal(signal.SIGKILL)
        other.wait()
    with RunDirectory(config(tmp_path)) as run:
        assert run.resumed


def test_the_result_is_strict_json(tmp_path: Path) -> None:
    finished(tmp_path)

    def refuse(name: str) -> None:
        raise ValueError(name)

    assert json.loads((tmp_path / "result.json").read_text(), parse_constant=refuse) == {"f1": 0.5, "nothing": None}


@pytest.mark.parametrize("existing", [False, True])
def test_a_run_that_is_refused_early_leaves_nothing_and_its_folder_takes_the_mended_settings(
    tmp_path: Path, existing: bool
) -> None:
    folder = tmp_path / "a" / "b"
    if existing:
        folder.mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match="no such base"), RunDirectory(config(folder)) as run:
        (run.path / "metrics.jsonl").write_text("{}\n")
        (run.path / "wandb").mkdir()
        (run.path / "wandb" / "run").write_text("")
        raise UserError("base.name", "no such base")
    assert sorted(tmp_path.rglob("*")) == before
    with RunDirectory(config(folder, "--solver.l2", "1e-5")) as run:
        assert not run.resumed


def test_what_a_refused_run_has_worked_out_stays(tmp_path: Path) -> None:
    for name in ("toolkens", "features"):
        folder = tmp_path / name
        with pytest.raises(UserError), RunDirectory(config(folder)) as run:
            (run.path / name).mkdir()
            raise UserError("disk", "full")
        assert sorted(path.name for path in folder.iterdir()) == sorted(["config.yaml", "inputs.json", name])
    with pytest.raises(ZeroDivisionError), RunDirectory(config(tmp_path / "crash")):
        raise ZeroDivisionError
    assert (tmp_path / "crash" / "config.yaml").is_file()
    with pytest.raises(UserError), RunDirectory(config(tmp_path / "crash")):
        raise UserError("base.name", "no such base")
    assert (tmp_path / "crash" / "config.yaml").is_file(), "it was there before"
