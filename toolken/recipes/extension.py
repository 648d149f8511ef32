"""What the rows of an artefact teach a tool that is added to it: their cached features serve as negatives.

The settings of the run that left the artefact lie beside it. Where its data is still there and every shard of its
features is cached, they cost no pass of the base; else the new rows are trained on their own examples alone, and a
line says so. The settings of the other run name data and a cache
only: nothing of theirs is imported or run.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path

import torch

from toolken.data.prompts import Prompt
from toolken.data.splits import drop_overlap
from toolken.errors import UserError
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.recipes.preparation import Splits, align_all, load_splits
from toolken.settings.loading import load_config
from toolken.training.features import Features, extract, plan


def old_features(artefact: Path, old: ToolkenHead, *, base: BaseLM, prompt: Prompt, splits: Splits) -> Features:
    """Return the training features of an artefact's own rows, where they are cached; else no positions.

    Args:
        artefact: The `toolkens` directory of a run.
        old: The artefact; its tools are the first rows of the new head, in the same order.
        base: The base of both.
        prompt: What the new rows are trained after; features of another prompt are of no use.
        splits: The new rows; old ones of the same question are left out: held-out ones must not be trained on, and
            the others are there already.
    """
    try:
        found = _read(artefact, old, base=base, prompt=prompt, splits=splits)
    except UserError as error:
        print(f"the rows of {artefact} are no negatives here: {error}", file=sys.stderr)
        return Features.empty(base.hidden_size, base.dtype)
    print(f"negatives: {len(found):,} cached positions of {artefact}", file=sys.stderr)
    return found


def _read(artefact: Path, old: ToolkenHead, *, base: BaseLM, prompt: Prompt, splits: Splits) -> Features:
    if old.info.prompt.hash != prompt.hash:
        raise UserError("prompt", "it is not the one that they were trained after")
    config = load_config(artefact.parent / "config.yaml")
    before = load_splits(config.data, old.names)
    if before.hash != old.info.data.get("sha256"):
        raise UserError(str(artefact.parent / "config.yaml"), "its data are not those that they were trained on")
    rows = [
        (row, encoded)
        for row in before.train + before.negatives
        for encoded in align_all([row], prompt, base=base, tools=old.names, left_out=[])
    ]
    aligned = [encoded for _, encoded in rows]
    if plan(base, aligned, config.features).missing:
        raise UserError("features", "they are not all in the cache")
    found = extract(base, aligned, section=config.features, progress=False)
    known = [row.question or row.answer for row in splits.validation + splits.train + splits.negatives]
    kept = drop_overlap((row for row, _ in rows), known).kept
    ids = {id(row) for row in kept}
    return found.select(torch.tensor([id(row) in ids for row, _ in rows])[found.example])


def join(first: Features, second: Features) -> Features:
    """Return the positions of both; the examples of the second are counted behind those of the first."""
    shift = int(first.example.max()) + 1 if len(first) else 0
    columns = {
        column.name: torch.cat([getattr(first, column.name), getattr(second, column.name)]) for column in fields(first)
    }
    columns["example"] = torch.cat([first.example, second.example + shift])
    return Features(**columns)
