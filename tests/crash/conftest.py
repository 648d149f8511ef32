"""One way to start commands for all tests here, and a tiny base that they run on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.processes import Starter, forks, fresh
from tests.recipes.saved import save_tiny_base, tiny_config
from toolken.config import Config
from toolken.settings.loading import dump_config


@pytest.fixture(scope="session")
def forked() -> Iterator[Starter]:
    """Start commands as forks."""
    with forks() as start:
        yield start


@pytest.fixture(
    scope="session",
    params=["forked", pytest.param("fresh", marks=[pytest.mark.long, pytest.mark.timeout(3600)])],
)
def start(request: pytest.FixtureRequest) -> Starter:
    """Start commands as forks; in the long run as fresh interpreters, too."""
    return request.getfixturevalue("forked") if request.param == "forked" else fresh


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny base."""
    return save_tiny_base(tmp_path_factory.mktemp("base"))


def small_config(base: Path, folder: Path, **changes: object) -> Config:
    """Settings of a run `folder/run` that takes a second, over twenty shards in `folder/cache`."""
    plain = folder / "plain.txt"
    plain.write_text("It rains today.\n\nThe bus was late, and nobody minded.\n")
    few: dict[str, object] = {
        "features__cache": folder / "cache",
        "features__shard_examples": 2,
        "data__generate": {"per_tool": 3, "plain": 0},
        "data__negatives": [],
        "data__unseen_text": [str(plain)],
        "data__validation_share": 0.1,
    }
    return tiny_config(base, folder / "run", **(few | changes))


def train_command(base: Path, folder: Path, **changes: object) -> list[str]:
    """Return the command that trains with `small_config`."""
    file = folder / "config.yaml"
    file.write_text(dump_config(small_config(base, folder, **changes)))
    return ["train", "--config", str(file)]
