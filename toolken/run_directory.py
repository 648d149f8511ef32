"""One folder for one run: its settings, its lock, its result.

Invariant: every file in it belongs to the settings in `config.yaml`. The same settings resume, or find the stored
result; other settings are refused with the keys that differ. While a run is alive it holds a lock that the operating
system releases with the process, however it dies. A run that is refused (`UserError`) before it has anything to keep
leaves nothing: the command can be given again with the setting mended and the same folder.

Which settings make a run "the same": all but those that cannot change a number in the result: `name`, `out`,
`tracking`, where features are cached, and `evaluation` unless the run is an evaluation. The files that they name must
hold the same, too. The result is written last, so that its existence proves that everything else is complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from toolken.config import Config
from toolken.data.inputs import input_digests
from toolken.errors import UserError
from toolken.files import read_text, sweep, write_json, write_text
from toolken.locks import Lock
from toolken.settings.loading import dump_config
from toolken.settings.yaml_files import parse_yaml

EVALUATION_IGNORES = ("name", "out", "tracking", "features.cache")
TRAINING_IGNORES = (*EVALUATION_IGNORES, "evaluation")
"""Settings that change no number in the result of an evaluation, and of a training run."""
_LOCK = ".lock"
RESULT = "result.json"
TOOLKENS = "toolkens"
_FOLDERS = (TOOLKENS, "plots", "tables")
_INPUTS = "inputs.json"
_BEGINNING = ("metrics.jsonl", "wandb-id.txt", "wandb", _INPUTS, "config.yaml")


def identity(config: Config, *, ignored: Sequence[str] = TRAINING_IGNORES) -> str:
    """Return the hash (64 hex digits) of the settings that decide whether two runs are the same."""
    settings = _comparable(dump_config(config), "settings", ignored)
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def default_directory(config: Config, *, ignored: Sequence[str] = TRAINING_IGNORES) -> Path:
    """Return `runs/<name>-<first 8 digits of the identity>`."""
    name = re.sub(r"[^\w.-]+", "-", config.name).strip("-.") or "run"
    return Path("runs") / f"{name}-{identity(config, ignored=ignored)[:8]}"


class RunDirectory:
    """The folder of a run, locked while it is open; use it in a `with` statement.

    Attributes:
        path: The folder.
        resumed: Whether an earlier, unfinished run of the same settings left files here.
        result: What a finished run of the same settings stored, else None.
    """

    def __init__(self, config: Config, *, ignored: Sequence[str] = TRAINING_IGNORES) -> None:
        """Create or enter the folder of `config` and lock it.

        Args:
            config: Settings of the run.
            ignored: Settings that may differ from those of an earlier run in the same folder.

        Raises:
            UserError: It cannot be written, belongs to other settings or to no run at all, or another run holds it.
        """
        self.path = config.out or default_directory(config, ignored=ignored)
        self._ignored = ignored
        self._made = _create(self.path)
        self._lock = lock_run(self.path)
        try:
            self.resumed = self._enter(config)
            self.result = stored_result(self.path)
        except BaseException:
            self.close()
            raise

    @property
    def config_file(self) -> Path:
        """The resolved settings."""
        return self.path / "config.yaml"

    @property
    def result_file(self) -> Path:
        """Written last: the run is done."""
        return self.path / RESULT

    @property
    def toolkens(self) -> Path:
        """The artefact."""
        return self.path / TOOLKENS

    def finish(self, result: Mapping[str, object]) -> None:
        """Store the result and thereby mark the run as done; call it after everything else is written."""
        write_json(self.result_file, result)
        self.result = dict(result)

    def close(self) -> None:
        """Release the lock; the folder stays."""
        self._lock.release()

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, UserError) and not self.resumed and _only_begun(self.path):
            _empty(self.path)
            self.close()
            _remove_empty(self._made)
        self.close()

    def _enter(self, config: Config) -> bool:
        """Compare with the settings that are there, or write them; return whether some were there."""
        entries = {entry.name for entry in self.path.iterdir()}
        if self.config_file.name not in entries:
            foreign = sorted(name for name in entries if name != _LOCK)
            if foreign:
                problem = (
                    f"is no run directory, yet holds files ({', '.join(foreign[:3])}{', ...' * (len(foreign) > 3)})"
                )
                raise UserError(str(self.path), problem, "give a new or empty folder with `--out`")
            write_text(self.config_file, dump_config(config))
            write_json(self.path / _INPUTS, input_digests(config))
            return False
        differing = differences(self.config_file, config, ignored=self._ignored)
        if differing:
            shown = "; ".join(differing[:5]) + (f"; and {len(differing) - 5} more" if len(differing) > 5 else "")
            raise UserError(
                str(self.path),
                f"holds a run with other settings ({shown})",
                "give another folder with `--out`, leave `--out` away, or delete this one",
            )
        write_text(self.config_file, dump_config(config))
        self._check_inputs(input_digests(config))
        return True

    def _check_inputs(self, digests: Mapping[str, str]) -> None:
        """Refuse to go on with files that do not hold what they held; those that are gone are for reading to miss."""
        known = stored_record(self.path / _INPUTS)
        if known is None:  # killed before it was written, or finished by a release that wrote none
            if stored_result(self.path) is None:
                write_json(self.path / _INPUTS, digests)
            return
        for name, digest in digests.items():
            if known.get(name) != digest:
                raise UserError(
                    str(self.path),
                    f"{name} {'has changed' if name in known else 'has come'} since this run began",
                    "put it back, give another folder with `--out`, or delete this one",
                )


def stored_result(folder: Path) -> dict[str, object] | None:
    """Return the result of a finished run; one whose artefact is gone counts as unfinished."""
    if not (folder / RESULT).is_file() or not (folder / TOOLKENS).is_dir():
        return None
    return stored_record(folder / RESULT)


def stored_record(file: Path) -> dict[str, object] | None:
    """Return the JSON object that a file holds; None where there is none."""
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return stored if isinstance(stored, dict) else None


def lock_run(path: Path, *, fix: str = "give another `--out`") -> Lock:
    """Lock the folder of a run for whoever is about to write into it, and clear away what a killed one left half-done.

    Raises:
        UserError: A live process holds it.
    """
    lock = Lock(path / _LOCK, where=path, fix=fix)
    for folder in (path, *(path / name for name in _FOLDERS)):
        sweep(folder)
    return lock


def differences(config_file: Path, config: Config, *, ignored: Sequence[str] = TRAINING_IGNORES) -> list[str]:
    """Return `key: old -> new` for every setting that differs and matters."""
    text = read_text(config_file, "delete the folder, or give another one with `--out`")
    old = _comparable(text, str(config_file), ignored)
    new = _comparable(dump_config(config), "settings", ignored)
    return [
        f"{key}: {_short(old.get(key, 'unset'))} -> {_short(new.get(key, 'unset'))}"
        for key in dict.fromkeys([*new, *old])
        if key not in old or key not in new or old[key] != new[key]
    ]


def _comparable(text: str, where: str, ignored: Sequence[str]) -> dict[str, object]:
    """Return the dotted settings of a resolved YAML that count for the identity."""
    flat = _flatten(parse_yaml(text, where).content)
    return {
        key: value
        for key, value in flat.items()
        if not any(key == name or key.startswith(name + ".") for name in ignored)
    }


def _flatten(section: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in section.items():
        if isinstance(value, Mapping):
            flat.update(_flatten(value, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _only_begun(folder: Path) -> bool:
    """Return whether a folder holds nothing but what a run begins with, and no feature, row or result."""
    return all(entry.name in (*_BEGINNING, _LOCK) for entry in folder.iterdir())


def _empty(folder: Path) -> None:
    """Remove what a run begins with."""
    for name in _BEGINNING:
        if (folder / name).is_dir():
            shutil.rmtree(folder / name, ignore_errors=True)
        else:
            (folder / name).unlink(missing_ok=True)


def _remove_empty(folders: Sequence[Path]) -> None:
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _create(path: Path) -> list[Path]:
    """Make a folder and those above it; return the ones that were not there, the innermost first."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UserError(str(path), "is a file, or lies under one", "give a folder with `--out`") from None
    except OSError as error:
        raise UserError(
            str(path), f"cannot be created ({error.strerror})", "give a folder you can write to with `--out`"
        ) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise UserError(str(path), "cannot be written to", "give a folder you can write to with `--out`")
    return missing
