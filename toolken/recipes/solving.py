"""From aligned rows to a trained head: features, solve, calibration.

Every step is deterministic in the settings and the rows, so a run that is killed and started again ends with the same
bytes. Incremental training keeps the rows of an artefact as they are and solves for the new ones beside them.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import NamedTuple

import torch
from pydantic import JsonValue
from torch import Tensor

from toolken.config import CalibrationSection, Config, FeaturesSection, SolverSection
from toolken.data.align import Encoded
from toolken.data.encode import encode_piece
from toolken.errors import UserError
from toolken.model.artefact import HeadInfo, PromptRecord, ToolRecord
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.recipes.preparation import Aligned, Context, Splits
from toolken.tools.toolset import ToolSet
from toolken.training.calibrate import Calibration, calibrate
from toolken.training.features import Features, extract
from toolken.training.parallel import fill_together
from toolken.training.processes import Processes
from toolken.training.sgd import train_adam
from toolken.training.solver import Frozen, Solution, solve

LABELS = ("train", "validation", "unseen text")
"""What the splits are called in messages."""


class SplitFeatures(NamedTuple):
    """Features of every split; negatives are part of `train`."""

    train: Features
    validation: Features
    unseen: Features


def extract_all(
    base: BaseLM, rows: Aligned, *, section: FeaturesSection, processes: Processes | None = None
) -> SplitFeatures:
    """Extract every split, through the cache, with the help of other processes; one without rows has no positions."""
    if processes is not None and processes.world > 1:
        extract_together(base, rows, section=section, processes=processes)

    def features(encoded: list[Encoded], label: str) -> Features:
        if not encoded:
            return Features.empty(base.hidden_size, base.dtype)
        return extract(base, encoded, section=section, label=label)

    return SplitFeatures(*(features(encoded, label) for label, encoded in zip(LABELS, rows, strict=True)))


def extract_together(base: BaseLM, rows: Aligned, *, section: FeaturesSection, processes: Processes) -> None:
    """Take part in filling the cache for all splits."""
    fill_together(base, dict(zip(LABELS, rows, strict=True)), section=section, processes=processes)


def prior_rows(base: BaseLM, tools: ToolSet, section: SolverSection) -> Tensor:
    """Return `w0` (K, d): zero, or `prior_scale` times the mean of the head rows of each tool's words.

    A row that is the mean of the rows of words scores a position by the mean logit of those words there: high where
    the base itself is about to speak of what the tool is for. Words stand as in a sentence.

    Raises:
        UserError: A tool has no description to read.
    """
    if section.prior == "zero":
        return torch.zeros(len(tools), base.hidden_size)
    texts = {tool.name: tool.name if section.prior == "name" else tool.description.strip() for tool in tools}
    for name, text in texts.items():
        if not text:
            raise UserError("solver.prior", f"<{name}> has no description", "describe it, or use the prior `name`")
    words = [encode_piece(base.tokenizer, " " + text.replace("_", " ")) for text in texts.values()]
    return section.prior_scale * torch.stack([base.head_rows(ids).float().mean(dim=0).cpu() for ids in words])


def fit(
    features: SplitFeatures, *, base: BaseLM, tools: ToolSet, section: SolverSection, frozen: Frozen | None = None
) -> Solution:
    """Find the rows with the solver that the settings name.

    Raises:
        UserError: The solver cannot add to frozen rows, or there is too little to choose `l2` from.
    """
    if section.kind == "adam":
        if frozen is not None:
            raise UserError("solver.kind", "adam cannot add tools to an artefact", "use `--solver.kind convex`")
        return train_adam(
            features.train,
            features.validation,
            len(tools),
            section=section,
            transform=base.transform,
            progress=True,
        )
    return solve(
        features.train,
        len(tools),
        section=section,
        transform=base.transform,
        affine=base.affine,
        prior=prior_rows(base, tools, section),
        frozen=frozen,
        progress=True,
    )


def frozen_rows(old: ToolkenHead | None) -> Frozen | None:
    """Return the rows of an artefact that new rows are solved beside; masked ones are not in decoding, nor here."""
    if old is None:
        return None
    rows = old.trained.nonzero().squeeze(1)
    return Frozen(old.weight[rows], old.bias[rows], rows)


def make_head(
    solution: Solution,
    *,
    base: BaseLM,
    tools: ToolSet,
    context: Context,
    config: Config,
    splits: Splits,
    old: ToolkenHead | None = None,
) -> ToolkenHead:
    """Put the solution and everything that an artefact says about itself into a head, not yet calibrated.

    New rows of an artefact `old` are merged into it, so that it keeps its rows and the history of both. The prompt is
    the one that the new rows were trained after; where that is another than the old one, a warning names both.
    """
    counts = Counter(call.tool for row in splits.train for call in row.calls)
    records = [
        ToolRecord.of(tool, demonstrations=context.demonstrations[tool.name].text, examples=counts[tool.name])
        for tool in tools
    ]
    data: dict[str, JsonValue] = {
        "sha256": splits.hash,
        "licence": config.data.licence or "unknown",
        "train": len(splits.train),
        "validation": len(splits.validation),
    }
    known = len(old.names) if old is not None else 0
    info = HeadInfo.for_base(
        base,
        records[known:],
        prompt=PromptRecord.of(context.prompt),
        training=training_record(solution, config),
        data=data,
    )
    head = ToolkenHead(solution.weight[known:], solution.bias[known:], info)
    if old is None:
        return head
    if old.info.prompt.hash != info.prompt.hash:
        print(
            f"warning: the prompt is now {info.prompt.hash[:12]}; {', '.join(f'<{name}>' for name in old.names)} were "
            f"trained after {old.info.prompt.hash[:12]} and may be called less well",
            file=sys.stderr,
        )
    renewed = old.info.model_copy(update={"prompt": info.prompt})
    return ToolkenHead(old.weight, old.bias, renewed).merge(head)


def training_record(solution: Solution, config: Config) -> dict[str, JsonValue]:
    """Return how rows were found, as an artefact and the report say it."""
    return {
        "solver": config.solver.kind,
        "positions": config.solver.positions,
        "l2": solution.l2,
        "prior": config.solver.prior,
        "prior_scale": config.solver.prior_scale,
        "align": dict(solution.alignment) if solution.alignment is not None else None,
        "convex": solution.convex,
        "converged": solution.converged,
        "loss": solution.loss,
        "gradient_norm": solution.gradient_norm,
        "distance_bound": solution.distance_bound,
        "evaluations": solution.evaluations,
        "base": config.base.model_dump(mode="json"),
    }


def calibrate_head(
    head: ToolkenHead, features: Features, *, base: BaseLM, section: CalibrationSection
) -> tuple[ToolkenHead, Calibration]:
    """Shift the solved bias by what validation features say; the rows stay as they are."""
    found = calibrate(
        features, head.weight, head.solved_bias, section=section, transform=base.transform, allowed=head.trained
    )
    record: dict[str, JsonValue] = {
        "target": section.target,
        "false_calls_per_1000": section.false_calls_per_1000 if section.target == "recall" else None,
        "shift": found.shift,
        "positions": len(features),
        "calls": int((features.toolken >= 0).sum()),
    }
    if not record["calls"]:
        print("calibration: no validation row has a call; the bias stays as solved", file=sys.stderr)
    own = found.per_tool - found.shift
    return head.calibrated(found.shift, own, record=record), found
