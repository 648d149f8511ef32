"""What a run tells about itself while it goes: `metrics.jsonl` always, Weights & Biases on top.

W&B never ends a run: whatever goes wrong there is caught at this boundary and reported once on stderr. Without a key
it works offline and the command that uploads the run is printed. A run that is started again after a kill keeps its
W&B id, and its steps are absolute. Nothing is printed on stdout, and no raw data is uploaded: data appears as its
hash, sources and licences.
"""

from __future__ import annotations

import contextlib
import json
import netrc
import os
import re
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TextIO
from urllib.parse import urlsplit

from toolken.config import Config, TrackingSection
from toolken.files import jsonable, room_for, write_json, write_text

if TYPE_CHECKING:
    from wandb import Run

STEP = "train/global_step"
BEST = {"train/loss": "min", "validation/loss": "min", "validation/f1": "max"}
"""Metrics whose best value, not the last, is the run's summary."""


class Tracker:
    """Records one run; use it in a `with` statement, so that W&B learns whether the run failed.

    Attributes:
        directory: The run directory; `metrics.jsonl`, `tables/` and `wandb/` live in it.
    """

    def __init__(self, directory: Path, config: Config, *, job: Literal["train", "eval"] = "train") -> None:
        self.directory = directory
        self._job = job
        self._name = config.name
        self._section = config.tracking
        self._reported = False
        self._file = _open_lines(directory / "metrics.jsonl")
        self._run: Run | None = None
        with self._boundary("start"):
            facts = {"git_sha": git_revision(Path.cwd())}
            self._run = self._start({**config.model_dump(mode="json"), **facts})

    def log(self, metrics: Mapping[str, object], *, step: int) -> None:
        """Record numbers at an absolute step: epochs, solver evaluations, whatever the curve's axis is.

        Names have a group: `train/loss`, `validation/f1`. Values without a number (`nan`) are null in the file and
        left out of W&B.
        """
        plain = {name: jsonable(value) for name, value in metrics.items()}
        self._write({"step": step, **plain})
        with self._boundary("log") as run:
            if run is not None:
                run.log({STEP: step, **{name: value for name, value in plain.items() if value is not None}})

    def describe(self, facts: Mapping[str, object]) -> None:
        """Add what is known only after the start to the run's settings: fingerprint of the base, hash of the data."""
        plain = {name: jsonable(value) for name, value in facts.items()}
        self._write({"facts": plain})
        with self._boundary("describe") as run:
            if run is not None:
                update: Callable[..., None] = run.config.update  # untyped in wandb
                update(plain, allow_val_change=True)

    def summary(self, values: Mapping[str, object]) -> None:
        """Record final values: the chosen ones, not the last of a curve."""
        plain = {name: jsonable(value) for name, value in values.items()}
        self._write({"summary": plain})
        with self._boundary("summary") as run:
            if run is not None:
                run.summary.update(plain)

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Record a table, as `tables/<name>.json` and in W&B."""
        plain = [[jsonable(cell) for cell in row] for row in rows]
        folder = self.directory / "tables"
        folder.mkdir(exist_ok=True)
        write_json(folder / f"{name}.json", {"columns": list(columns), "rows": plain})
        with self._boundary("table") as run:
            if run is not None:
                import wandb

                cells = [[_cell(cell) for cell in row] for row in plain]
                run.log({name: wandb.Table(columns=list(columns), data=cells, allow_mixed_types=True)})

    def predictions(self, answers: Sequence[Mapping[str, object]]) -> None:
        """Record answers, one row each, from their JSON form (`Answer.as_dict`)."""
        columns = ["question", "text", "answer", "calls", "finish_reason"]
        self.table("predictions", columns, [[answer.get(column) for column in columns] for answer in answers])

    def artifact(self, directory: Path, *, metadata: Mapping[str, object], data: Mapping[str, object]) -> None:
        """Version the trained rows as a W&B artifact of type `model`, with the data they come from as lineage.

        Args:
            directory: Folder whose files are uploaded.
            metadata: Numbers and names shown beside the version.
            data: At least `hash`; sources, counts and licences beside it. Only this description is uploaded.
        """
        with self._boundary("artifact") as run:
            if run is None:
                return
            import wandb

            described = {name: jsonable(value) for name, value in data.items()}
            source = wandb.Artifact(f"data-{str(data['hash'])[:12]}", type="dataset", metadata=described)
            with source.new_file("data.json", encoding="utf-8") as handle:
                json.dump(described, handle, indent=2, allow_nan=False)
            # Only a server can record an input, so offline the data is versioned beside the rows.
            if run.offline:
                run.log_artifact(source)
            else:
                run.use_artifact(source)
            lineage = {"data_artifact": source.name, "data_hash": str(data["hash"])}
            plain = {name: jsonable(value) for name, value in metadata.items()}
            name = re.sub(r"[^\w.-]+", "-", f"model-{self._name}")[:128]
            model = wandb.Artifact(name, type="model", metadata={**plain, **lineage})
            model.add_dir(str(directory))
            run.log_artifact(model, aliases=["latest", "best"])

    def finish(self, exit_code: int = 0) -> None:
        """Close the files and the W&B run; afterwards nothing more is recorded."""
        with contextlib.suppress(OSError):  # only what a write has failed at, and said so, is still to be written
            self._file.close()
        with self._boundary("finish") as run:
            self._run = None
            if run is not None:
                place = run.url if not run.offline else f"`{self._sync_command(run.id)}`"
                run.finish(exit_code=exit_code)
                _say(f"W&B: {place}" if place else "W&B: finished")

    def __enter__(self) -> Tracker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish(exit_code=0 if kind is None else 1)

    def _write(self, record: Mapping[str, object]) -> None:
        line = json.dumps({**record, "time": round(time.time(), 3)}, ensure_ascii=False, allow_nan=False)
        with room_for(self.directory / "metrics.jsonl", len(line) + 1):
            self._file.write(line + "\n")
            self._file.flush()

    @contextlib.contextmanager
    def _boundary(self, what: str) -> Iterator[Run | None]:
        """Hand out the W&B run, if there is one, and let nothing that fails there through."""
        try:
            with contextlib.redirect_stdout(sys.stderr):
                yield self._run
        # The one place that catches everything: a service must not cost anyone a finished solve.
        except Exception as error:
            if not self._reported:
                self._reported = True
                line = " ".join(str(error).split()) or type(error).__name__
                _say(f"W&B failed at `{what}` and may lack data; metrics.jsonl has everything: {line[:300]}")

    def _start(self, config: dict[str, object]) -> Run | None:
        mode: str = self._section.mode
        if mode == "auto":
            mode = _environment_mode() or "online"
        if mode == "disabled":
            return None
        import wandb

        if mode == "online" and not has_key(wandb.setup().settings.base_url):
            mode = "offline"
        try:
            run = self._init(config, mode)
        except Exception as error:  # no network, a stale key: what is recorded offline can be uploaded later
            if mode == "offline":
                raise
            _say(f"W&B cannot be reached ({' '.join(str(error).split())[:200]}); recording offline")
            run = self._init(config, "offline")
        run.define_metric(STEP)
        run.define_metric("*", step_metric=STEP, step_sync=True)
        for name, best in BEST.items():
            run.define_metric(name, step_metric=STEP, step_sync=True, summary=best)
        return run

    def _init(self, config: dict[str, object], mode: str) -> Run:
        import wandb

        section = self._section
        # The default project gives way to the environment, as W&B users and sweep agents expect.
        own_project = section.project != TrackingSection().project or "WANDB_PROJECT" not in os.environ
        return wandb.init(
            id=run_id(self.directory),
            resume="allow",
            mode="offline" if mode == "offline" else "online",
            project=section.project if own_project else None,
            entity=section.entity,
            group=section.group,
            tags=section.tags or None,
            name=self._name,
            job_type=self._job,
            dir=str(self.directory),
            config=config,
            settings=wandb.Settings(console="off", silent=True, init_timeout=60),
        )

    def _sync_command(self, identifier: str) -> str:
        """Return the command that uploads every piece of this run, oldest first: each start after a kill is a piece."""
        pieces = sorted(self.directory.glob(f"wandb/offline-run-*-{identifier}"))
        return shlex.join(["wandb", "sync", *(str(piece) for piece in pieces)])


def run_id(directory: Path) -> str:
    """Return the W&B id of the run in `directory`: a sweep agent's, else the stored one, else a new one, stored."""
    stored = directory / "wandb-id.txt"
    if given := os.environ.get("WANDB_RUN_ID"):
        return given
    if stored.is_file() and (known := stored.read_text(encoding="utf-8").strip()):
        return known
    fresh = secrets.token_hex(4)
    write_text(stored, fresh + "\n")
    return fresh


def has_key(base_url: str) -> bool:
    """Return whether W&B credentials for this server exist, without reading them out."""
    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    host = urlsplit(base_url).hostname or ""
    candidates = [os.environ["NETRC"]] if "NETRC" in os.environ else ["~/.netrc", "~/_netrc"]
    for candidate in candidates:
        try:
            if host in netrc.netrc(Path(candidate).expanduser()).hosts:
                return True
        except (OSError, netrc.NetrcParseError):
            continue
    return False


def git_revision(folder: Path) -> str | None:
    """Return the commit of the checkout around `folder`, `-dirty` where tracked files differ; None outside of one."""
    try:
        head = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return head + ("-dirty" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout.strip()


def _environment_mode() -> str | None:
    """Return what `WANDB_MODE` asks for, None where it asks for nothing that exists here."""
    mode = os.environ.get("WANDB_MODE", "")
    return {"online": "online", "offline": "offline", "dryrun": "offline", "disabled": "disabled"}.get(mode)


def _open_lines(path: Path) -> TextIO:
    """Open for appending; a line that a killed process left half-written is cut off first."""
    if path.is_file():
        content = path.read_bytes()
        complete = content[: content.rfind(b"\n") + 1]
        if complete != content:
            os.truncate(path, len(complete))
    return path.open("a", encoding="utf-8")


def _cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
