"""A tiny base and a run on it, made once; an empty folder for every row of a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.bad_input.refusal import Bench
from tests.recipes.saved import save_tiny_base, tiny_config
from toolken.recipes.training_run import train


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    train(tiny_config(save_tiny_base(folder / "base"), folder / "run"))
    return folder


@pytest.fixture
def bench(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOOLKEN_DATA", raising=False)
    return Bench(tmp_path, trained / "base", trained / "run", capsys)
