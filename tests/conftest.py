"""What every test gets: no network for models, a cache of its own, and the shared data where it is present."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("WANDB_MODE", "offline")
# Tiny models gain nothing from threads, and lose much where cores are shared; set before torch is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Machines that run tests are shared: a slow example is no failure; what has a time limit says so in its test.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")
# Converted models are keyed by the hash of their file, so tests that need a real base share the user's cache.
USER_CACHE = Path(os.environ.get("TOOLKEN_CACHE") or Path.home() / ".cache" / "toolken")


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Send everything that is cached to a folder that goes away."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOLKEN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def user_cache(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use the user's cache, for tests of the embedded base: it is fetched and converted once."""
    monkeypatch.setenv("TOOLKEN_CACHE", str(USER_CACHE))
    return USER_CACHE


@pytest.fixture
def data_root() -> Path:
    """Return the folder of the official data sets, or skip."""
    root = os.environ.get("TOOLKEN_DATA")
    if not root or not Path(root).is_dir():
        pytest.skip("TOOLKEN_DATA names no folder: the official data sets are not part of the project")
    return Path(root)
