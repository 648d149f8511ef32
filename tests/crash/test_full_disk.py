"""No room left: one line with place, need and remedy, nothing broken, and with room again the bytes are the same."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.conftest import small_config, train_command
from tests.crash.processes import Job, Starter
from tests.crash.test_killed_answering import infer_command, timeless
from tests.crash.test_killed_training import files
from toolken import files as files_module
from toolken.errors import UserError
from toolken.files import TEMPORARY, write_bytes
from toolken.recipes.training_run import train


def no_room(job: Job, place: Path) -> str:
    """Check that a command ended with one line about a place in a folder; return the line."""
    assert job.end() == 2, job.said
    (line,) = [line for line in job.said.splitlines() if line.startswith("error: ")]
    assert line.startswith(f"error: {place}") and "Traceback" not in job.said
    assert re.search(r": (No space left on device|File too large): .*to be written, [\d,]+ are free; free some", line)
    return line


@pytest.fixture(scope="module")
def calm(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(small_config(base, tmp_path_factory.mktemp("calm"))).directory.parent


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 96 kB, or skip."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    done = subprocess.run([mount, "-t", "tmpfs", "-o", "size=96k", "none", str(disk)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_leaves_no_broken_cache_and_with_room_the_features_are_the_same(
    forked: Starter, base: Path, calm: Path, small_disk: Path, tmp_path: Path
) -> None:
    command = train_command(base, tmp_path, features__cache=small_disk)
    # There is less room than the features take: said before anything is computed.
    job = forked(command, tmp_path / "log")
    assert job.end() == 2
    assert re.search(rf"error: {small_disk}.*: features take .* MB, .* MB are free; free some space or set", job.said)
    assert not files(small_disk, "*")
    # There is room at the start, and others take it meanwhile: the shards that were written are whole.
    subprocess.run(["mount", "-o", "remount,size=300k", str(small_disk)], check=True)
    (small_disk / "theirs").write_bytes(b"x" * 100_000)
    line = no_room(forked(command, tmp_path / "log"), small_disk / "features")
    assert line.endswith("free some space or set features.cache to another disk")
    stored = files(small_disk / "features", "*.safetensors")
    whole = files(calm / "cache" / "features", "*.safetensors")
    assert stored and stored.items() < whole.items() and not list(small_disk.rglob(f"{TEMPORARY}*"))
    subprocess.run(["mount", "-o", "remount,size=10m", str(small_disk)], check=True)
    assert forked(command, tmp_path / "log").end() == 0
    assert files(small_disk / "features", "*.safetensors") == whole
    assert files(tmp_path / "run" / "toolkens", "*") == files(calm / "run" / "toolkens", "*")


@pytest.mark.parametrize("largest", [1000, 3000, 9000, 14000, 40000])
def test_a_write_that_breaks_off_anywhere_ends_as_one_line_and_the_next_run_with_the_same_bytes(
    forked: Starter, base: Path, calm: Path, tmp_path: Path, largest: int
) -> None:
    """A limit on the size of any file breaks writes off in the middle: settings, metrics, shards, rows, pictures."""
    command = train_command(base, tmp_path)
    no_room(forked(command, tmp_path / "log", largest=largest), tmp_path)
    assert not list(tmp_path.rglob(f"{TEMPORARY}*"))
    whole = files(calm / "cache", "*.safetensors")
    assert files(tmp_path / "cache", "*.safetensors").items() <= whole.items()
    assert forked(command, tmp_path / "log").end() == 0
    assert files(tmp_path / "cache", "*.safetensors") == whole
    assert files(tmp_path / "run" / "toolkens", "*") == files(calm / "run" / "toolkens", "*")
    for record in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines():
        json.loads(record)


def test_answers_that_find_no_room_are_kept_as_far_as_they_are_whole(
    forked: Starter, calm: Path, tmp_path: Path
) -> None:
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(json.dumps({"id": n, "question": f"{n} + {n}?"}) + "\n" for n in range(8)))
    toolkens = calm / "run" / "toolkens"
    assert forked(infer_command(toolkens, questions, tmp_path / "calm.jsonl"), tmp_path / "log").end() == 0
    size = (tmp_path / "calm.jsonl").stat().st_size
    command = infer_command(toolkens, questions, tmp_path / "answers.jsonl")
    no_room(forked(command, tmp_path / "log", largest=size // 2), tmp_path / "answers.jsonl")
    assert not (tmp_path / "answers.jsonl").exists()
    job = forked(command, tmp_path / "log")
    assert job.end() == 0 and "answers are there already" in job.said
    assert timeless(tmp_path / "answers.jsonl") == timeless(tmp_path / "calm.jsonl")


@pytest.mark.parametrize("code", files_module.FULL)
def test_a_file_that_finds_no_room_midway_keeps_what_it_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    write_bytes(tmp_path / "file", b"old")

    def full(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"file: .*: 3 bytes are to be written, [\d,]+ are free; use another disk"):
        write_bytes(tmp_path / "file", b"new", fix="use another disk")
    assert files(tmp_path, "*") == {"file": b"old"} and not list(tmp_path.glob(f"{TEMPORARY}*"))
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))
    with pytest.raises(OSError, match="broken"):
        write_bytes(tmp_path / "file", b"new")
