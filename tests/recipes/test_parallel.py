"""Law 10 for several processes: a run under a launcher ends with the bytes of a run alone, or with a line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.recipes.saved import save_tiny_base, tiny_config
from tests.training.test_processes import free_port
from toolken.config import Config
from toolken.recipes.training_run import train
from toolken.settings.loading import dump_config

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(torch.get_num_threads())}

DYING = """
import os, signal, sys, time
from toolken.cli import main
from toolken.training.cache import ShardCache
write = ShardCache.write
def dying(self, number, columns):
    write(self, number, columns)
    if os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.1)  # leaves some work to the other one
ShardCache.write = dying
sys.exit(main(["train", *sys.argv[1:]]))
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_base(tmp_path_factory.mktemp("base"))


def settings(base: Path, folder: Path) -> Config:
    """Settings whose features are cut into some twenty shards, in a cache of the folder."""
    return tiny_config(base, folder / "run", features__cache=folder / "cache", features__shard_examples=12)


def written(config: Config) -> str:
    assert config.out is not None
    file = config.out.with_suffix(".yaml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dump_config(config))
    return str(file)


def everything(folder: Path) -> dict[str, bytes]:
    """Return all shards, manifests and the artefact."""
    found = [*(folder / "cache").rglob("*"), *(folder / "run" / "toolkens").iterdir()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found if path.is_file()}


@pytest.fixture(scope="module")
def alone(base: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("alone")
    train(settings(base, folder))
    return everything(folder)


@pytest.mark.slow
def test_law_10_two_launched_processes_end_with_the_bytes_of_one(
    base: Path, alone: dict[str, bytes], tmp_path: Path
) -> None:
    options = ["--multi_gpu", "--num_processes", "2", "--main_process_port", free_port()]
    command = [sys.executable, "-m", "accelerate.commands.launch", *options, str(ROOT / "train.py")]
    command += ["--config", written(settings(base, tmp_path))]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["run_dir"] == str(tmp_path / "run")
    assert "computed by 2 processes" in done.stderr and done.stderr.count("\nbase model: ") == 1
    assert everything(tmp_path) == alone
    again = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0 and again.stdout == done.stdout
    assert "this run is done" in again.stderr


@pytest.mark.slow
def test_law_10_a_killed_process_ends_the_other_with_a_line_and_the_work_of_both_is_kept(
    base: Path, alone: dict[str, bytes], tmp_path: Path
) -> None:
    config = settings(base, tmp_path)
    common = {**ENVIRONMENT, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", DYING, "--config", written(config)],
            env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said, shown = started[0].communicate(timeout=300)
    started[1].communicate(timeout=60)
    assert [process.returncode for process in started] == [2, -signal.SIGKILL]
    assert said == "" and "Traceback" not in shown
    (line,) = [line for line in shown.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: process 0 of 2: another process ended") and "the same command goes on" in line
    shards = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.safetensors")}
    assert shards
    train(config)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in shards.items())
    assert everything(tmp_path) == alone
