"""Law 10: a training run that is killed at any moment ends, started again, with the bytes of an undisturbed one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.crash.conftest import train_command
from tests.crash.processes import Job, Phase, Starter, Storm, ended, said
from toolken.files import TEMPORARY
from toolken.model.head import ToolkenHead

KILLS = 20


class Calm(NamedTuple):
    """An undisturbed run: its folder, and the seconds that its phases take."""

    folder: Path
    seconds: dict[str, float]


def artefact_saved(job: Job) -> bool:
    """Whether the run whose log this is has saved its rows."""
    return (job.log.parent / "run" / "toolkens" / "toolkens.json").exists()


PHASES = {
    "extraction": Phase(said("\nfeatures train: "), said("\nfeatures: ")),
    "solving": Phase(said("\nfeatures: "), said("\nsolve: ")),
    "saving": Phase(said("\nsolve: "), artefact_saved),
    "reporting": Phase(said("\nsamples: "), ended),
}
# Once rows have been saved in a folder they stay there: what follows on standard error says that a save is over.
KILLED_IN = PHASES | {"saving": Phase(PHASES["saving"].begun, said("\nfeatures own answers"))}
CHANGES: dict[str, object] = {"solver__l2": "auto", "solver__folds": 2, "solver__l2_grid": [1e-2, 1e-3, 1e-4]}


@pytest.fixture(scope="module")
def calm(start: Starter, base: Path, tmp_path_factory: pytest.TempPathFactory) -> Calm:
    folder = tmp_path_factory.mktemp("calm")
    job = start(train_command(base, folder, **CHANGES), folder / "log")
    seconds = {name: phase.seconds(job) for name, phase in PHASES.items()}
    assert job.end() == 0, job.said
    return Calm(folder, seconds)


def files(folder: Path, pattern: str) -> dict[str, bytes]:
    """Return the files that a run leaves under their own names, by path."""
    found = (path for path in folder.rglob(pattern) if path.is_file() and not path.name.startswith(TEMPORARY))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def look_at_anything(calm: Calm) -> Callable[[Path], None]:
    """Return what holds at any moment: each file is absent or whole, and says what it says in the undisturbed run."""
    shards, rows = files(calm.folder / "cache", "*.safetensors"), files(calm.folder / "run" / "toolkens", "*")

    def look(folder: Path) -> None:
        for name, content in files(folder / "cache", "*.safetensors").items():
            assert content == shards[name], name
        if (folder / "run" / "toolkens" / "toolkens.json").exists():
            ToolkenHead.load(folder / "run" / "toolkens")
        for name, content in files(folder / "run" / "toolkens", "*").items():
            assert content == rows[name.replace("next.", "")], name
        for file in [*folder.glob("run/result.json"), *folder.glob("run/run_report.json")]:
            json.loads(file.read_bytes())

    return look


def assert_same_end(folder: Path, calm: Calm) -> None:
    assert files(folder / "cache", "*.safetensors") == files(calm.folder / "cache", "*.safetensors")
    assert files(folder / "run" / "toolkens", "*") == files(calm.folder / "run" / "toolkens", "*")
    results = [json.loads((one / "run" / "result.json").read_bytes())["val"] for one in (folder, calm.folder)]
    assert results[0] == results[1]
    assert not [*(folder / "run").rglob(f"{TEMPORARY}*")] and not (folder / "run" / ".lock").exists()
    for line in (folder / "run" / "metrics.jsonl").read_text().splitlines():
        json.loads(line)


@pytest.mark.parametrize(
    ("name", "share", "kills"),
    [("extraction", 0.25, KILLS), ("solving", 1.1, KILLS), ("saving", 1.5, KILLS), ("reporting", 1, 4)],
)
def test_law_10_killed_at_twenty_random_moments_a_run_ends_with_the_same_bytes(
    start: Starter, base: Path, calm: Calm, tmp_path: Path, name: str, share: float, kills: int
) -> None:
    """Extraction gets a share of its time for each kill, because it goes on where it was killed."""

    def begin(folder: Path) -> Job:
        return start(train_command(base, folder, **CHANGES), folder / "log")

    storm = Storm(begin, KILLED_IN[name], share * calm.seconds[name], look_at_anything(calm), seed=len(name))
    for folder in storm.rage(tmp_path, kills):
        assert_same_end(folder, calm)


def test_law_10_killed_before_any_step_on_the_files_of_a_save_a_run_ends_with_the_same_bytes(
    forked: Starter, base: Path, calm: Calm, tmp_path: Path
) -> None:
    saving = str(tmp_path / "run" / "toolkens")
    command = train_command(base, tmp_path, **CHANGES, features__cache=calm.folder / "cache")
    look = look_at_anything(calm)
    saw_the_artefact: set[bool] = set()
    for last in range(1, 20):
        job = forked(command, tmp_path / "log", folder=saving, last=last)
        status = job.end()
        look(tmp_path)
        if status == 0:
            break
        saw_the_artefact.add(artefact_saved(job))
    assert status == 0 and last > 5 and saw_the_artefact == {True, False}
    assert files(tmp_path / "run" / "toolkens", "*") == files(calm.folder / "run" / "toolkens", "*")
