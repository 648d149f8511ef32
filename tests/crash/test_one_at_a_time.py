"""Two commands that would write to one place: the second is refused and told by whom; a dead one blocks nobody."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.crash.conftest import small_config, train_command
from tests.crash.processes import Job, Starter, said
from tests.crash.test_killed_answering import infer_command, part_begun
from toolken.errors import UserError
from toolken.locks import Lock
from toolken.recipes.training_run import train


def refused(job: Job, place: Path, holder: Job, *, fix: str) -> None:
    assert job.end() == 2 and job.result == ""
    (line,) = [line for line in job.said.splitlines() if line.startswith("error: ")]
    assert line.startswith(f"error: {place}: process {holder.pid} on ") and ", since 20" in line
    assert line.endswith(f"is at work on it; wait for it, stop it, or {fix}")


def test_a_second_run_in_one_directory_is_refused_and_a_killed_one_does_not_block(
    forked: Starter, base: Path, tmp_path: Path
) -> None:
    command = train_command(base, tmp_path)
    first = forked(command, tmp_path / "first")
    assert first.until(said("features train: about")), first.said
    second = forked(command, tmp_path / "second")
    refused(second, tmp_path / "run", first, fix="give another `--out`")
    third = forked(["calibrate", str(tmp_path / "run")], tmp_path / "third")
    refused(third, tmp_path / "run", first, fix="write elsewhere with `--output`")
    assert first.end(signal.SIGKILL) == -signal.SIGKILL, "it ended before the others were refused"
    assert (tmp_path / "run" / ".lock").exists()
    assert forked(command, tmp_path / "second").end() == 0


def test_a_second_infer_with_one_output_is_refused_and_a_killed_one_does_not_block(
    forked: Starter, base: Path, tmp_path: Path
) -> None:
    questions, output = tmp_path / "questions.jsonl", tmp_path / "answers.jsonl"
    questions.write_text("".join(json.dumps({"id": n, "question": f"{n} + {n}?"}) + "\n" for n in range(16)))
    toolkens = train(small_config(base, tmp_path)).directory / "toolkens"
    command = infer_command(toolkens, questions, output)
    first = forked(command, tmp_path / "first")
    assert first.until(part_begun), first.said
    other = [*command, "--inference.temperature", "0.5"]  # other settings have another part file, and the same output
    refused(forked(other, tmp_path / "second"), output, first, fix="name another file with `--output`")
    assert first.end(signal.SIGKILL) == -signal.SIGKILL, "it ended before the other was refused"
    assert forked(command, tmp_path / "second").end() == 0
    assert len(output.read_text().splitlines()) == 16 and not list(tmp_path.glob(".*"))


def test_a_lock_is_free_again_after_its_holder_and_only_then(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with Lock(file, where=tmp_path, fix="go away"):
        with pytest.raises(UserError, match="process .* since .*go away"):
            Lock(file, where=tmp_path, fix="go away")
        file.write_text("no holder")  # what is said in it decides nothing
        with pytest.raises(UserError, match="another process is at work"):
            Lock(file, where=tmp_path, fix="go away")
    assert not file.exists()
    file.write_text('{"pid": 1, "host": "gone", "since": "long ago"}\n')
    lock = Lock(file, where=tmp_path, fix="go away")
    assert "gone" not in file.read_text()
    lock.release()
    lock.release()
    assert not file.exists()
