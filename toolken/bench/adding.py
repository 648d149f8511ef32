"""Adding a tool to a trained set against training the whole larger set anew, from rows to saved files.

The set is trained first, outside the clock, and leaves what a run leaves: artefact, settings, cached features. Adding
reads all of that back, extracts the new tool's rows and solves for its row beside the old ones, as `train --init-from`
does; it does not calibrate, so validation rows are extracted outside its clock. Training anew starts from an empty
cache.
"""

from __future__ import annotations

import statistics
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from toolken.bench.measure import timed
from toolken.bench.percent import percent, percent_examples
from toolken.bench.workload import Trained, Workload, align_workload, cache_in, fixed_solver, read_splits, train_cold
from toolken.config import Config
from toolken.data.formats import write_examples
from toolken.files import write_text
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.recipes.extension import join, old_features
from toolken.recipes.measurement import measure_split
from toolken.recipes.preparation import Splits, load_tool_set
from toolken.recipes.solving import extract_all, fit, frozen_rows, make_head
from toolken.settings.loading import dump_config
from toolken.training.features import Features

EXAMPLES, QUICK_EXAMPLES = 50, 8
HELD_OUT, QUICK_HELD_OUT = 10, 4
TRAIN_SEED, HELD_OUT_SEED = 0, 1


class Sets(NamedTuple):
    """The tools there are, the new one's rows alone, and all rows of all tools together."""

    old: Workload
    new: Workload
    joint: Workload


def bench_adding(config: Config, base: BaseLM, folder: Path, *, quick: bool) -> dict[str, object]:
    """Return times, F1 and whether the old rows kept their bytes.

    Args:
        config: Settings of a training run: the tools that are there, and their rows.
        base: The frozen base.
        folder: An empty folder for everything that is written.
        quick: Few rows and examples.
    """
    run = folder / "run"
    sets = _sets(config, base, run, quick=quick)
    trained = train_cold(sets.old, fixed_solver(config.solver), run)
    write_text(run / "config.yaml", dump_config(sets.old.config))
    added = [timed(partial(_add, sets.new, run, folder / place)) for place in ("first", "second")]
    joint = train_cold(sets.joint, fixed_solver(config.solver), folder / "joint")
    head = added[0].value
    old = len(trained.head.names)
    kept = torch.equal(head.weight[:old], trained.head.weight) and torch.equal(head.bias[:old], trained.head.bias)
    seconds = statistics.median(each.seconds for each in added)
    return {
        "add_ratio": seconds / joint.total,
        "rows_bit_equal": kept,
        **_rates(trained, head, joint, base=base),
        "examples_added": len(sets.new.splits.train),
        "seconds": {
            "add": seconds,
            "add_rounds": [each.seconds for each in added],
            "joint": joint.total,
            "joint_stages": joint.seconds,
        },
    }


def _sets(config: Config, base: BaseLM, run: Path, *, quick: bool) -> Sets:
    """Align the rows of all three; the rows of the old set are written to files that its settings name.

    Demonstrations have no part in training, and the new tool has no file of them: they are drawn from the rows.
    """
    tools = load_tool_set(config.tools, config.data.root)
    splits = read_splits(config, tools, quick=quick)
    examples, held_out = (QUICK_EXAMPLES, QUICK_HELD_OUT) if quick else (EXAMPLES, HELD_OUT)
    fresh = Splits(percent_examples(examples, seed=TRAIN_SEED), percent_examples(held_out, seed=HELD_OUT_SEED), [], [])
    both = replace(splits, train=splits.train + fresh.train, validation=splits.validation + fresh.validation)
    files = {}
    for name in ("train", "validation", "negatives"):
        rows = getattr(splits, name)
        write_examples(run / f"{name}.jsonl", rows)
        files[name] = [str(run / f"{name}.jsonl")] if rows else []
    changes = {
        "data": config.data.model_copy(update={**files, "exclude": []}),
        "prompt": config.prompt.model_copy(update={"demonstrations": "auto"}),
        "features": cache_in(config, run),
    }
    settings = config.model_copy(update=changes)
    more = tools + [percent]
    return Sets(
        align_workload(settings, splits, base=base, tools=tools),
        align_workload(settings, fresh, base=base, tools=more),
        align_workload(settings, both, base=base, tools=more),
    )


def _add(new: Workload, run: Path, place: Path) -> ToolkenHead:
    """Add the new tool to the artefact of a run and save the larger one in `place`."""
    artefact = run / "toolkens"
    old = ToolkenHead.load(artefact, base=new.base)
    rows = new.rows._replace(validation=[])
    features = extract_all(new.base, rows, section=cache_in(new.config, place))
    negatives = old_features(artefact, old, base=new.base, prompt=new.context.prompt, splits=new.splits)
    solution = fit(
        features._replace(train=join(features.train, negatives)),
        base=new.base,
        tools=new.tools,
        section=fixed_solver(new.config.solver),
        frozen=frozen_rows(old),
    )
    head = make_head(
        solution, base=new.base, tools=new.tools, context=new.context, config=new.config, splits=new.splits, old=old
    )
    head.save(place / "toolkens")
    return head


def _rates(trained: Trained, added: ToolkenHead, joint: Trained, *, base: BaseLM) -> dict[str, object]:
    """Return F1 of the old validation rows before and after, and of all validation rows for both ways."""

    def f1(features: Features, head: ToolkenHead) -> float:
        return measure_split(features, head, base=base).detection.f1

    old, everything = trained.features.validation, joint.features.validation
    return {
        "val_f1_13_before": f1(old, trained.head),
        "val_f1_13_after": f1(old, added),
        "val_f1_14_added": f1(everything, added),
        "val_f1_14_joint": f1(everything, joint.head),
        "val_calls_13": int((old.toolken >= 0).sum()),
        "val_calls_14": int((everything.toolken >= 0).sum()),
    }
