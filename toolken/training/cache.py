"""A folder of safetensors shards under the hash of every input.

Shards are written all or nothing, and the manifest comes last, so its presence says that the folder was filled. Every
shard is looked at all the same: one that is missing, cut short or of another shape is a miss and is computed again.
Runs that fill one folder at the same time write the same bytes under the same names, so the last rename wins and
nothing breaks.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
import transformers
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor

from toolken.config import FeaturesSection
from toolken.data.align import Encoded
from toolken.errors import UserError
from toolken.files import TEMPORARY, user_path, write_bytes
from toolken.model.sources import cache_folder

FORMAT = 2
"""Raised whenever the same inputs would give other numbers."""
FULL_DISK = "free some space or set features.cache to another disk"
"""What to do about it."""
STALE_SECONDS = 24 * 3600
"""Age above which temporary files of killed runs are swept away."""


def cache_key(fingerprint: str, device: str, encoded: Sequence[Encoded], section: FeaturesSection) -> str:
    """Return the sha256 of everything that the bytes of the shards depend on.

    The token budget, block and shard sizes count: they decide which rows are multiplied together, and so the last bits.
    """
    digest = hashlib.sha256()
    sizes = section.model_dump(mode="json", exclude={"cache"})
    versions = {"format": FORMAT, "torch": torch.__version__, "transformers": transformers.__version__}
    digest.update(json.dumps([fingerprint, device, sizes, versions], sort_keys=True).encode())
    for e in encoded:
        digest.update(json.dumps([e.prefix, e.ids, e.index, e.target]).encode() + b"\n")
    return digest.hexdigest()


class ShardCache:
    """The shards of one key."""

    def __init__(self, root: Path | None, key: str) -> None:
        self.key = key
        self.directory = user_path(root or cache_folder()) / "features" / key[:40]
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error
        for left in self.directory.glob(f"{TEMPORARY}*"):
            try:
                if time.time() - left.stat().st_mtime > STALE_SECONDS:
                    left.unlink()
            except OSError:
                continue  # another run was faster

    @property
    def manifest(self) -> Path:
        """The file that is written last."""
        return self.directory / "manifest.json"

    def path(self, number: int) -> Path:
        """Return where a shard lies."""
        return self.directory / f"{number:05d}.safetensors"

    def has(self, number: int, rows: int) -> bool:
        """Return whether a shard is there, whole, and of so many rows."""
        try:
            with safe_open(self.path(number), framework="pt") as shard:
                return all(shard.get_slice(name).get_shape()[0] == rows for name in ("hidden", "base_lse"))
        except (OSError, SafetensorError):
            return False

    def read(self, number: int) -> dict[str, Tensor]:
        """Return the columns of a shard."""
        return load_file(self.path(number))

    def write(self, number: int, columns: dict[str, Tensor]) -> None:
        """Store a shard under its name at once or not at all.

        Raises:
            UserError: The disk is full or not writable; no broken shard is left behind.
        """
        self._replace(self.path(number), save(columns))

    def reserve(self, size: int) -> None:
        """Refuse to start what cannot be stored: `size` bytes are still to be written.

        Raises:
            UserError: So much is not free.
        """
        free = shutil.disk_usage(self.directory).free
        if size > free:
            raise UserError(
                str(self.directory),
                f"features take {size / 1e6:,.0f} MB, {free / 1e6:,.0f} MB are free",
                FULL_DISK,
            )

    def finish(self, shards: int, label: str) -> None:
        """Write the manifest, unless it is there."""
        content = {"key": self.key, "shards": shards, "label": label, "format": FORMAT}
        if not self.manifest.exists():
            self._replace(self.manifest, json.dumps(content).encode())

    @contextmanager
    def kept(self, shards: int, label: str) -> Iterator[None]:
        """Note on an interruption how many of so many shards are there to go on from."""
        try:
            yield
        except KeyboardInterrupt as stop:
            there = sum(self.path(number).is_file() for number in range(shards))
            stop.add_note(f"{there} of {shards} shards of features {label} are kept")
            raise

    def _replace(self, path: Path, content: bytes) -> None:
        try:
            write_bytes(path, content, fix=FULL_DISK)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(
            str(self.directory),
            f"cannot be written: {error.strerror or error}",
            "free some space or set features.cache to a folder that you can write to",
        )
