"""The README is true: its commands run on small limits, the walk-through with its promised result as it stands."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recipes.saved import save_tiny_base, tiny_config
from toolken.cli import COMMANDS, main
from toolken.config import Config
from toolken.errors import UserError
from toolken.model.sources import resolve
from toolken.recipes.training_run import train
from toolken.settings.loading import load_config

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```bash\n(.*?)^```", README, re.S | re.M)
WALK_THROUGH = next(block for block in BLOCKS if "my_tools.py" in block)
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


SMALL = ["--base.dtype", "float32", "--tracking.mode", "disabled", "--data.limit", "8"]
SMALL += ["--data.generate.per_tool", "1", "--solver.l2", "1e-3", "--inference.max-new-tokens", "8"]


def commands() -> list[list[str]]:
    """Every call of the project's own programs, as words for the command line; the walk-through has its own test."""
    found = []
    for block in BLOCKS:
        lines = [] if block is WALK_THROUGH else block.replace("\\\n", " ").splitlines()
        for line in lines:
            words = shlex.split(os.path.expandvars(line), comments=True)
            if words[:2] in (["python", "train.py"], ["python", "infer.py"]):
                found.append([words[1].removesuffix(".py"), *words[2:]])
            elif words[:1] == ["toolken"]:
                found.append(words[1:])
    return found


def on_small_limits(words: list[str], base: Path) -> list[str]:
    """Train on a tiny base and few rows; answer few questions; measure little."""
    words = [f"{word}[:4]" if word.endswith(("funcqa_oh.json", "funcqa_mh.json")) else word for word in words]
    if words[0] == "train" or "--config" in words:
        place = words.index("--base.name") if "--base.name" in words else len(words)
        quick = ["--quick"] if words[0] == "bench" else []
        if words[0] == "eval" and "--folds" not in words:
            quick = ["--evaluation.limit", "2", "--evaluation.published.epochs", "1"]
        return [*words[:place], *words[place + 2 :], *quick, "--base.name", str(base), *SMALL]
    return words


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_base(tmp_path_factory.mktemp("base"))


@pytest.mark.filterwarnings("ignore:the merged rows were trained after two prompts")
def test_readme_commands_run_one_after_the_other(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    official = bool(os.environ.get("TOOLKEN_DATA"))
    monkeypatch.chdir(tmp_path)
    Path("configs").symlink_to(ROOT / "configs")
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from toolken import ARITHMETIC, ToolSet\n\nTOOLS = ToolSet([ARITHMETIC['log'], ARITHMETIC['ln']])\n"
    )
    train(tiny_config(base, Path("runs/office"), tools=f"{mine}:TOOLS"))
    ran = 0
    for words in commands():
        needs_data = any("funcqa" in word or word in ("--answers", "--data.root") for word in words)
        if needs_data and not official:
            continue
        assert main(on_small_limits(words, base)) == 0, words
        ran += 1
    assert ran >= 8


@pytest.mark.parametrize("file", CONFIGS, ids=lambda path: path.stem)
def test_configs_train(file: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if file.stem != "quickstart" and not os.environ.get("TOOLKEN_DATA"):
        pytest.skip("TOOLKEN_DATA names no folder: the official data sets are not part of the project")
    config = load_config(file, ["--base.name", str(base), *SMALL, "--out", str(tmp_path / "run")])
    assert isinstance(config, Config) and train(config).metrics["val"]


def test_every_command_is_in_the_readme() -> None:
    missing = [name for name in COMMANDS if f"toolken {name}" not in README and f"python {name}.py" not in README]
    assert not missing


@pytest.mark.slow
def test_a_users_own_tool_is_trained_from_ten_lines_and_called(tmp_path: Path, user_cache: Path) -> None:
    try:
        resolve("embedded")
    except UserError as error:
        pytest.skip(f"the embedded base cannot be fetched: {error}")
    for name in ("train.py", "infer.py"):
        shutil.copy(ROOT / name, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "WANDB_MODE": "disabled"}
    environment.pop("OMP_NUM_THREADS", None)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", WALK_THROUGH], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=570
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    (call,) = answer["calls"]
    assert call["tool"] == "extension" and call["arguments"] == {"name": "Barbara"}
    assert answer["text"][call["start"] : call["end"]] == "2008"
