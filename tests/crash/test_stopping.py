"""Ctrl-C and SIGTERM: one line that says what is kept and how to go on, and the same command does go on."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import time
from pathlib import Path

import pytest

from tests.crash.conftest import small_config, train_command
from tests.crash.processes import Job, Starter, descendants, fresh, gone, said
from tests.crash.test_killed_answering import infer_command, part_begun, timeless
from tests.crash.test_killed_training import files
from toolken.cli import main
from toolken.files import TEMPORARY
from toolken.recipes.training_run import train

SIGNALS = {signal.SIGINT: ("Ctrl-C", 130), signal.SIGTERM: ("SIGTERM", 143)}


def last_line(job: Job, number: signal.Signals, command: list[str]) -> str:
    """Check how a command that got a signal ended, and return its last line."""
    name, status = SIGNALS[number]
    assert job.end() == status, job.said
    *_, line = job.said.splitlines()
    assert line.startswith(f"stopped by {name}; ") and line.endswith(shlex.join(["toolken", *command]))
    assert "Traceback" not in job.said and job.said.count("stopped by") == 1 and job.result == ""
    return line


@pytest.fixture(scope="module")
def calm(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(small_config(base, tmp_path_factory.mktemp("calm"))).directory


def shard_stored(job: Job) -> bool:
    """Whether the first features are in the cache."""
    return any((job.log.parent / "cache").rglob("*.safetensors"))


@pytest.mark.parametrize("number", SIGNALS)
def test_training_that_is_stopped_says_what_is_kept_and_goes_on(
    forked: Starter, base: Path, calm: Path, tmp_path: Path, number: signal.Signals
) -> None:
    command = train_command(base, tmp_path)
    for moment in (shard_stored, said("\nfeatures: "), said("\nsamples: ")):
        job = forked(command, tmp_path / "log")
        assert job.until(moment), job.said
        os.kill(job.pid, number)
        line = last_line(job, number, command)
        if moment is shard_stored:
            (kept, shards) = re.findall(r"; (\d+) of (\d+) shards of features train are kept; ", line)[0]
            stored = [path for path in tmp_path.rglob("*.safetensors") if path.parent.name != "toolkens"]
            assert 0 < int(kept) == len(stored) < int(shards)
        assert not list(tmp_path.rglob(f"{TEMPORARY}*")) and not (tmp_path / "run" / ".lock").exists()
    assert forked(command, tmp_path / "log").end() == 0
    assert files(tmp_path / "run" / "toolkens", "*") == files(calm / "toolkens", "*")


@pytest.mark.parametrize("number", SIGNALS)
def test_answering_that_is_stopped_says_what_is_kept_and_goes_on(
    forked: Starter, calm: Path, tmp_path: Path, number: signal.Signals
) -> None:
    questions, output = tmp_path / "questions.jsonl", tmp_path / "answers.jsonl"
    questions.write_text("".join(json.dumps({"id": n, "question": f"{n} + {n}?"}) + "\n" for n in range(16)))
    command = infer_command(calm / "toolkens", questions, output)
    job = forked(command, tmp_path / "log")
    assert job.until(part_begun), job.said
    workers = descendants(job.pid)
    assert workers
    os.kill(job.pid, number)
    line = last_line(job, number, command)
    assert gone(workers, 2.0)
    (part,) = tmp_path.glob("*.part")
    assert f"; {len(part.read_text().splitlines())} of 16 answers are kept; " in line
    assert not output.exists() and not list(tmp_path.glob(".*"))
    job = forked(command, tmp_path / "log")
    assert job.end() == 0 and "answers are there already" in job.said
    assert [row["id"] for row in timeless(output)] == list(range(16))


def test_evaluation_that_is_stopped_leaves_no_output_and_goes_on(forked: Starter, base: Path, tmp_path: Path) -> None:
    train_command(base, tmp_path)
    flags = ["--folds", "2", "--methods", "adam:1e-3", "--output", str(tmp_path / "folds.json")]
    command = ["eval", "--config", str(tmp_path / "config.yaml"), *flags]
    job = forked(command, tmp_path / "log")
    assert job.until(said("adam:1e-3: 2 folds")), job.said
    os.kill(job.pid, signal.SIGINT)
    last_line(job, signal.SIGINT, command)
    assert not (tmp_path / "folds.json").exists() and not list(tmp_path.rglob(f"*{TEMPORARY}*"))
    assert forked(command, tmp_path / "log").end() == 0
    assert json.loads((tmp_path / "folds.json").read_bytes())["folds"] == 2


def test_an_impatient_user_gets_the_same_one_line(base: Path, tmp_path: Path) -> None:
    command = train_command(base, tmp_path)
    job = fresh(command, tmp_path / "log")
    assert job.until(said("features train: about")), job.said
    while job.poll() is None:
        os.kill(job.pid, signal.SIGINT)
        time.sleep(0.002)
    last_line(job, signal.SIGINT, command)


def test_an_interruption_that_a_library_turns_into_its_own_error_is_the_same_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(*_: object, **__: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)
        except BaseException as error:
            raise ValueError("could not be serialised") from error

    monkeypatch.setattr("toolken.cli._command", lambda name: command)
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        assert main(["train"]) == 143
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN  # the process is about to end
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    captured = capsys.readouterr()
    assert captured.err == "stopped by SIGTERM; what was complete is kept; to go on: toolken train\n"


def test_the_line_repeats_what_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("toolken.cli._command", interrupted)
    monkeypatch.setattr("sys.argv", ["train.py", "--out", "my run"])
    before = [signal.getsignal(number) for number in SIGNALS]
    assert main(["train", "--out", "my run"]) == 130
    assert capsys.readouterr().err.endswith("to go on: python train.py --out 'my run'\n")
    assert main(["eval", "--folds", "5"]) == 130
    assert capsys.readouterr().err.endswith("to go on: toolken eval --folds 5\n")
    assert [signal.getsignal(number) for number in SIGNALS] == before
