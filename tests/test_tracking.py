from __future__ import annotations

import json
import math
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from toolken.config import Config
from toolken.settings.loading import load_config
from toolken.tracking import Tracker, git_revision, has_key, run_id


@pytest.fixture(autouse=True)
def _no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("WANDB_MODE", "WANDB_PROJECT", "WANDB_API_KEY", "WANDB_RUN_ID", "WANDB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))


def config(*flags: str) -> Config:
    return load_config(None, ["--name", "my run", *flags])


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def test_metrics_are_one_json_object_a_line_whatever_the_mode(tmp_path: Path) -> None:
    with Tracker(tmp_path, config("--tracking.mode", "disabled")) as tracker:
        tracker.log({"train/loss": 0.5, "validation/f1": math.nan}, step=3)
        assert lines(tmp_path)[0].items() >= {"step": 3, "train/loss": 0.5, "validation/f1": None}.items()
        tracker.table("per_tool", ["tool", "f1"], [["add", math.inf]])
    assert all("time" in line for line in lines(tmp_path))
    assert json.loads((tmp_path / "tables" / "per_tool.json").read_text()) == {
        "columns": ["tool", "f1"],
        "rows": [["add", None]],
    }
    assert not (tmp_path / "wandb").exists()


def test_a_half_written_last_line_is_cut_off_and_the_rest_is_kept(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2, "tr')
    with Tracker(tmp_path, config("--tracking.mode", "disabled")) as tracker:
        tracker.log({}, step=2)
    assert [line["step"] for line in lines(tmp_path)] == [1, 2]


class Failing(types.ModuleType):
    """A W&B in which everything fails."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"the service\nis down: {name}")


def use_everything(tracker: Tracker, artefact: Path) -> None:
    tracker.log({"train/loss": 1.0}, step=0)
    tracker.describe({"base_fingerprint": "abc", "data_hash": "d" * 64})
    tracker.table("per_tool", ["tool", "f1"], [["add", 1.0], ["gcd", None]])
    tracker.predictions(
        [{"id": 1, "question": "2+2?", "text": "4", "answer": "4", "calls": [{"tool": "add"}], "finish_reason": "stop"}]
    )
    tracker.log({"train/loss": 0.5, "validation/f1": 0.75}, step=1)
    tracker.log({"train/loss": 0.7, "validation/f1": 0.25}, step=2)
    tracker.artifact(artefact, metadata={"f1": 0.75}, data={"hash": "d" * 64, "sources": ["train.json"]})
    tracker.summary({"validation/recall": 0.5})


@pytest.fixture
def artefact(tmp_path: Path) -> Path:
    folder = tmp_path / "toolkens"
    folder.mkdir()
    (folder / "toolkens.json").write_text("{}")
    return folder


@pytest.mark.parametrize("module", [Failing("wandb"), None], ids=["fails", "missing"])
@pytest.mark.parametrize("mode", ["online", "offline", "auto"])
def test_a_failing_service_never_ends_a_run_and_is_reported_once_on_stderr(
    tmp_path: Path,
    artefact: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    module: types.ModuleType | None,
    mode: str,
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", module)
    with Tracker(tmp_path, config("--tracking.mode", mode)) as tracker:
        use_everything(tracker, artefact)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert "W&B failed at `start`" in shown.err
    assert [line["step"] for line in lines(tmp_path) if "step" in line] == [0, 1, 2]


class FailsLater:
    """A run that starts well; every later use fails."""

    offline = False
    url = "https://example.org/run"
    id = "x"

    def define_metric(self, *_: object, **__: object) -> None: ...

    def log(self, data: dict[str, object]) -> None:
        print("chatter on stdout")
        raise OSError("gone")

    finish = log_artifact = use_artifact = log


def test_a_service_that_fails_later_never_ends_a_run_either(
    tmp_path: Path, artefact: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = Failing("wandb")
    fake.init = lambda **_: FailsLater()  # type: ignore[attr-defined]
    fake.Settings = dict  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", fake)
    with Tracker(tmp_path, config("--tracking.mode", "offline")) as tracker:
        use_everything(tracker, artefact)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("W&B failed at `log`") == 1
    assert shown.err.count("failed") == 1


def test_an_unreachable_server_falls_back_to_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    modes: list[str] = []

    def init(*, mode: str, **_: object) -> FailsLater:
        modes.append(mode)
        if mode == "online":
            raise ConnectionError("no route")
        return FailsLater()

    fake = types.ModuleType("wandb")
    fake.__dict__.update(
        init=init,
        Settings=dict,
        setup=lambda: types.SimpleNamespace(settings=types.SimpleNamespace(base_url="https://h")),
    )
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    Tracker(tmp_path, config()).finish()
    assert modes == ["online", "offline"]
    assert "no route" in capsys.readouterr().err


PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.test_tracking import config, use_everything
from toolken.tracking import Tracker
folder = Path(sys.argv[1])
with Tracker(folder, config(*sys.argv[2:])) as tracker:
    use_everything(tracker, folder / "toolkens")
    run = tracker._run
    import json
    values = dict(project=run.project, config=dict(run.config), offline=run.offline, id=run.id)
    Path(folder / "seen.json").write_text(json.dumps(values))
"""


def in_a_process(folder: Path, *flags: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(root=root), str(folder), *flags],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done, json.loads((folder / "seen.json").read_text())


def test_without_a_key_a_run_is_recorded_offline_and_the_upload_command_is_printed(
    tmp_path: Path, artefact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    done, seen = in_a_process(tmp_path)
    assert done.stdout == ""
    (piece,) = (tmp_path / "wandb").glob("offline-run-*")
    assert done.stderr.splitlines()[-1] == f"W&B: `wandb sync {piece}`"
    assert "failed" not in done.stderr
    assert (seen["project"], seen["offline"]) == ("mine", True)
    assert seen["config"]["solver"]["l2"] == "auto"
    assert seen["config"]["base_fingerprint"] == "abc"
    assert "git_sha" in seen["config"]
    assert list(piece.glob("files/media/table/per_tool*"))
    assert list(piece.glob("files/media/table/predictions*"))
    again, second = in_a_process(tmp_path)
    assert second["id"] == seen["id"]
    assert again.stderr.count("offline-run-") == 2


def test_the_environment_may_switch_it_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")
    monkeypatch.setitem(sys.modules, "wandb", Failing("wandb"))
    Tracker(tmp_path, config()).finish()
    assert not (tmp_path / "wandb").exists()


def test_the_run_id_is_kept_unless_a_sweep_agent_gives_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_id(tmp_path)
    assert run_id(tmp_path) == first
    monkeypatch.setenv("WANDB_RUN_ID", "agent")
    assert run_id(tmp_path) == "agent"


def test_a_key_is_found_in_the_environment_or_for_this_host_in_netrc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not has_key("https://api.wandb.ai")
    file = tmp_path / "netrc"
    file.write_text("machine api.wandb.ai login user password secret\n")
    file.chmod(0o600)
    monkeypatch.setenv("NETRC", str(file))
    assert has_key("https://api.wandb.ai")
    assert not has_key("https://wandb.example.org")
    monkeypatch.setenv("WANDB_API_KEY", "k")
    assert has_key("https://wandb.example.org")


def test_outside_of_a_checkout_there_is_no_revision(tmp_path: Path) -> None:
    assert git_revision(tmp_path) is None
