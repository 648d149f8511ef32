"""What a run's report holds, as typed values that JSON keeps: the page and the plots are drawn from this alone.

Invariant: `load(save(report)) == report`. Numbers that do not exist (`nan`, infinite) become None on the way in, so
that every file is strict JSON. Rates and counts stay counts; values and intervals are worked out where they are shown.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from toolken.errors import UserError
from toolken.files import read_text, write_text
from toolken.metrics import Detection, Rate

FILE_NAME = "run_report.json"


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_finite)]
Counted = Annotated[Rate, PlainSerializer(lambda rate: rate._asdict())]
Detected = Annotated[Detection, PlainSerializer(lambda detection: detection._asdict())]


class Part(BaseModel):
    """A frozen part of the report; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Point(BaseModel):
    """A point of a curve, made from records that may hold more than is drawn."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class SplitMetrics(Part):
    """One split, decided with the calibrated bias."""

    detection: Detected
    """Over all tools."""
    false_calls: Counted
    """Toolkens picked at word positions, out of all word positions."""
    loss: Number = None
    """Mean over positions, nats."""
    examples: int = Field(default=0, ge=0)


class ToolMetrics(Part):
    """One row of the head."""

    tool: str
    trained: bool = True
    examples: int = Field(default=0, ge=0)
    """Training examples with a call of it."""
    train: Detected | None = None
    validation: Detected | None = None
    row_norm: Number = None
    bias: Number = None
    """What decoding adds, calibration included."""


class LossPoint(Point):
    """Loss after some evaluations or epochs."""

    step: float
    train: Number = None
    validation: Number = None


class ShiftPoint(Point):
    """Validation rates at one shared shift of the bias."""

    shift: float
    precision: Number = None
    recall: Number = None
    f1: Number = None
    false_calls_per_1000: Number = None


class StrengthPoint(Point):
    """Held-out loss at one prior strength."""

    l2: float
    loss: Number = None
    f1: Number = None


class Confusion(Part):
    """Counts of gold (rows) against picked (columns) on validation; the last of each is "a word"."""

    labels: list[str]
    matrix: list[list[int]]


class Stage(Part):
    """One step of the run."""

    name: str
    seconds: float
    peak_mb: Number = None
    """Largest resident memory of the process by the end of the stage, MiB."""


class ContextShift(Part):
    """How far training features lie from those of the base's own answers, in standard deviations."""

    value: float
    threshold: float = 0.5
    questions: int = Field(default=0, ge=0)

    @property
    def verdict(self) -> str:
        """A sentence for people."""
        if self.value > self.threshold:
            return (
                f"large (above {self.threshold:g}): the base does not answer these questions the way the training "
                "answers are written, so calls may be missed; put two or three such answers into the prompt template"
            )
        return f"small enough (at most {self.threshold:g}): training sees what decoding sees"


class Sample(Part):
    """A question that was answered at the end of the run."""

    question: str
    text: str
    answer: str | None = None
    calls: list[str] = []
    """`tool(arguments) = result`, one each."""
    finish_reason: str = ""


class RunReport(Part):
    """Everything that the report shows; parts without data are left out of the page."""

    title: str
    base: dict[str, str] = {}
    """Name, fingerprint, dtype, device, ... of the base."""
    tools: list[str] = []
    counts: dict[str, int] = {}
    """Training examples, positions, calls, refused rows, ..."""
    facts: dict[str, str] = {}
    """How the rows were found: solver, l2, convex, gradient norm, evaluations, ..."""
    splits: dict[str, SplitMetrics] = {}
    """By name, in the order of the columns: `train`, `validation`."""
    plain_text: Counted | None = None
    """False calls out of tokens of unseen plain text."""
    per_tool: list[ToolMetrics] = []
    loss_curve: list[LossPoint] = []
    loss_axis: str = "evaluations of loss and gradient"
    shift_curve: list[ShiftPoint] = []
    shift: Number = None
    """The chosen one."""
    shift_calls: int = 0
    """Gold calls behind the shift curve."""
    cross_validation: list[StrengthPoint] = []
    l2: Number = None
    """The chosen one."""
    confusion: Confusion | None = None
    stages: list[Stage] = []
    context_shift: ContextShift | None = None
    warnings: list[str] = []
    samples: list[Sample] = []
    config: str = ""
    """Resolved settings, YAML."""
    command: str = ""
    """What runs this again."""


def save_run_report(directory: Path, report: RunReport) -> Path:
    """Write `run_report.json` into the run directory, all or nothing."""
    path = directory / FILE_NAME
    write_text(path, report.model_dump_json(indent=1) + "\n")
    return path


def load_run_report(directory: Path) -> RunReport:
    """Read `run_report.json` of a run directory.

    Raises:
        UserError: There is none, or it is of another version.
    """
    path = directory / FILE_NAME
    text = read_text(path, "give the directory of a finished run")
    try:
        return RunReport.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = "".join(f"`{part}`: " for part in [".".join(map(str, first["loc"]))] if part)
        raise UserError(str(path), f"{key}{first['msg']}", "train again with this version") from None
