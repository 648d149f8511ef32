"""What a run says about itself: rates of every split, the context shift, and the report that holds them.

Every rate carries its n. Validation numbers are those of the rows that calibration saw; test rows never come here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from toolken.config import Config
from toolken.data.example import Example
from toolken.evaluation.run_report import (
    Confusion,
    ContextShift,
    LossPoint,
    RunReport,
    Sample,
    ShiftPoint,
    SplitMetrics,
    Stage,
    StrengthPoint,
    ToolMetrics,
)
from toolken.inference.engine import Answer
from toolken.metrics import Rate
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.recipes.alignment import own_answers
from toolken.recipes.preparation import Context, align_all
from toolken.recipes.solving import SplitFeatures, training_record
from toolken.stages import StageTime
from toolken.training.calibrate import Calibration
from toolken.training.context_shift import WARN_ABOVE, context_shift
from toolken.training.decisions import Decisions, confusion, decide, detections, false_calls, total
from toolken.training.features import Features, extract
from toolken.training.objective import loss_and_gradient
from toolken.training.solver import Solution

SHIFT_QUESTIONS = 32
"""Validation questions that the base answers by itself to measure the context shift."""

SHIFT_TOKENS = 96
"""Tokens of such an answer at most."""

FLAT = 1e-3
"""Relative fall of a held-out loss that is worth a wider grid."""

FALSE_CALLS = 5
"""False calls per 1,000 tokens of unseen plain text above which a run warns."""


PLAIN = "false calls per 1,000 tokens of plain text"
"""How the warning that they are many goes on."""

RECALIBRATED = (
    "the bias was calibrated again after the run: rates, biases and the curve of shifts are those of the new one; "
    "context shift, sample answers and times are those of the run"
)


def mean_loss(features: Features, weight: Tensor, bias: Tensor, *, base: BaseLM) -> float | None:
    """Return the mean loss in nats over all positions, without a prior; None over nothing."""
    if not len(features):
        return None
    return loss_and_gradient(features.terms(), weight, bias, transform=base.transform).loss


def decide_split(features: Features, head: ToolkenHead, *, base: BaseLM) -> Decisions:
    """Return what decoding would pick at every position of a split."""
    return decide(features, head.weight, head.bias, base.transform, allowed=head.trained)


def measure_split(features: Features, head: ToolkenHead, *, base: BaseLM) -> SplitMetrics:
    """Return the rates and the loss of a split, with the bias that decoding adds."""
    return _split_metrics(decide_split(features, head, base=base), features, head, base=base)


def _split_metrics(decisions: Decisions, features: Features, head: ToolkenHead, *, base: BaseLM) -> SplitMetrics:
    return SplitMetrics(
        detection=total(detections(decisions, len(head.names))),
        false_calls=false_calls(decisions),
        loss=mean_loss(features, head.weight, head.bias, base=base),
        examples=len(torch.unique(features.example)),
    )


def measure_shift(
    train: Features, validation: Sequence[Example], *, base: BaseLM, context: Context, config: Config
) -> ContextShift | None:
    """Let the base answer validation questions by itself, and compare its hidden states with those of training."""
    questions = list(dict.fromkeys(row.question for row in validation if row.question.strip()))[:SHIFT_QUESTIONS]
    if not questions:
        return None
    tokens = min(SHIFT_TOKENS, config.inference.max_new_tokens)
    texts = own_answers(questions, base=base, context=context, section=config.inference, tokens=tokens)
    plain = context.prompt_without_conclusion()
    # A base may write what its tokenizer does not give back; such answers are passed over.
    aligned = align_all(texts, plain, base=base, tools=(), left_out=[])
    if not any(row.index for row in aligned) or len(train) < 2:
        return None
    use = extract(base, aligned, section=config.features, label="own answers")
    return ContextShift(value=context_shift(train.hidden, use.hidden), threshold=WARN_ABOVE, questions=len(questions))


def build_report(
    config: Config,
    *,
    base: BaseLM,
    head: ToolkenHead,
    solution: Solution,
    calibration: Calibration | None,
    features: SplitFeatures,
    shift: ContextShift | None,
    left_out: Sequence[str],
) -> RunReport:
    """Put together everything but what the end of the run adds: stages, samples and settings."""
    report = RunReport(
        title=config.name,
        base={"name": base.name, "dtype": str(base.dtype), "device": str(base.device), "fingerprint": base.fingerprint},
        tools=list(head.names),
        counts={
            "training positions": len(features.train),
            "training calls": int((features.train.toolken >= 0).sum()),
            "validation positions": len(features.validation),
            "validation calls": int((features.validation.toolken >= 0).sum()),
            "rows left out": len(left_out),
        },
        facts={key: _short(value) for key, value in training_record(solution, config).items() if key != "base"},
        loss_curve=_loss_curve(solution),
        loss_axis="epochs" if solution.log else "evaluations of loss and gradient",
        cross_validation=[StrengthPoint.model_validate(point) for point in solution.cross_validation],
        l2=solution.l2,
        context_shift=shift,
    )
    report = with_bias(report, head, calibration, base=base, features=features)
    plain = report.plain_text or Rate(0, 0)
    warnings = warnings_of(head, solution, shift, plain=plain, grid=config.solver.l2_grid)
    return report.model_copy(update={"warnings": warnings})


def with_bias(
    report: RunReport, head: ToolkenHead, calibration: Calibration | None, *, base: BaseLM, features: SplitFeatures
) -> RunReport:
    """Return a report with everything that depends on the bias as this head has it."""
    train, validation, unseen = (decide_split(split, head, base=base) for split in features)
    found = {
        "splits": {
            "train": _split_metrics(train, features.train, head, base=base),
            "validation": _split_metrics(validation, features.validation, head, base=base),
        },
        "plain_text": false_calls(unseen),
        "per_tool": _tool_metrics(head, train, validation),
        "shift_curve": [ShiftPoint.model_validate(point) for point in calibration.curve] if calibration else [],
        "shift": calibration.shift if calibration else None,
        "shift_calls": int((features.validation.toolken >= 0).sum()),
        "confusion": Confusion(labels=[*head.names, "a word"], matrix=confusion(validation, len(head.names)).tolist()),
    }
    return report.model_copy(update=found)


def recalibrated(
    report: RunReport, head: ToolkenHead, calibration: Calibration, *, base: BaseLM, features: SplitFeatures
) -> RunReport:
    """Return the report of a run whose bias was calibrated again, with a remark on what is still of before."""
    renewed = with_bias(report, head, calibration, base=base, features=features)
    kept = [line for line in report.warnings if PLAIN not in line and line != RECALIBRATED]
    found = [*kept, *_plain_warning(renewed.plain_text or Rate(0, 0)), RECALIBRATED]
    return renewed.model_copy(update={"warnings": found})


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _tool_metrics(head: ToolkenHead, train: Decisions, validation: Decisions) -> list[ToolMetrics]:
    of_train, of_validation = (detections(split, len(head.names)) for split in (train, validation))
    return [
        ToolMetrics(
            tool=record.name,
            trained=record.trained,
            examples=record.examples,
            train=of_train[row],
            validation=of_validation[row],
            row_norm=float(head.weight[row].norm()),
            bias=float(head.bias[row]),
        )
        for row, record in enumerate(head.info.tools)
    ]


def _loss_curve(solution: Solution) -> list[LossPoint]:
    if solution.log:
        return [
            LossPoint(step=record["epoch"], train=record["train/loss"], validation=record.get("validation/loss"))
            for record in solution.log
        ]
    return [LossPoint(step=at, train=loss) for at, loss in solution.curve]


def _at_an_end(solution: Solution, grid: Sequence[float]) -> bool:
    """Whether a prior beyond the grid would be clearly better: the held-out loss still falls at the end it lies at."""
    tried = solution.cross_validation
    if len(tried) < 2 or solution.l2 not in (max(grid), min(grid)):
        return False
    first, second = (tried[0], tried[1]) if solution.l2 == tried[0]["l2"] else (tried[-1], tried[-2])
    return first["loss"] < (1 - FLAT) * second["loss"]


def warnings_of(
    head: ToolkenHead, solution: Solution, shift: ContextShift | None, *, plain: Rate, grid: Sequence[float]
) -> list[str]:
    """Return what a reader of the numbers must know, one sentence each."""
    untrained = [record.name for record in head.info.tools if not record.trained]
    found = []
    if untrained:
        found.append(f"no training example calls {', '.join(f'<{name}>' for name in untrained)}: masked in decoding")
    if _at_an_end(solution, grid):
        found.append(f"the best l2, {solution.l2:g}, lies at an end of solver.l2_grid: widen the grid")
    if not solution.log and not solution.converged:
        found.append("the solver stopped before its tolerance: raise solver.max_iterations or solver.l2")
    if not solution.log and not solution.convex:
        found.append("the base caps its logits, so the rows are a stationary point, not the one optimum")
    found += _plain_warning(plain)
    if shift is not None and shift.value > shift.threshold:
        found.append(f"context shift {shift.value:.2f}: {shift.verdict}")
    for line in found:
        print(f"warning: {line}", file=sys.stderr)
    return found


def _plain_warning(plain: Rate) -> list[str]:
    if not plain.n or 1000 * plain.value <= FALSE_CALLS:
        return []
    rate = f"{1000 * plain.value:.0f} {PLAIN}"
    return [f"{rate}: add text like that of your users to data.negatives (`generated` has some)"]


def stage_records(stages: Sequence[StageTime]) -> list[Stage]:
    """Return the stages as the report holds them."""
    return [Stage(name=stage.name, seconds=stage.seconds, peak_mb=stage.peak_mb) for stage in stages]


def sample_of(answer: Answer) -> Sample:
    """Return an answer as the report shows it."""
    calls = []
    for call in answer.calls:
        shown = answer.text[call.start : call.end] if call.start is not None else call.outcome.status
        calls.append(f"{call.tool}({call.raw_arguments.strip()}) = {shown}")
    return Sample(
        question=answer.question,
        text=answer.text,
        answer=answer.answer,
        calls=calls,
        finish_reason=answer.finish_reason,
    )
