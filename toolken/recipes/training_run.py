"""`train`: from settings to a run directory with trained, calibrated and measured toolkens."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from toolken.config import Config
from toolken.errors import UserError
from toolken.evaluation.report import write_report
from toolken.inference.engine import Answer, Engine
from toolken.inference.trace import printable
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.recipes.alignment import check_alignment, fit_aligned
from toolken.recipes.extension import join, old_features
from toolken.recipes.measurement import build_report, measure_shift, sample_of, stage_records
from toolken.recipes.preparation import (
    Aligned,
    Context,
    Splits,
    align_splits,
    extended_tools,
    load_base,
    load_context,
    load_splits,
    load_tool_set,
)
from toolken.recipes.reporting import headline, log_curve, result_record, track
from toolken.recipes.solving import calibrate_head, extract_all, extract_together, fit, frozen_rows, make_head
from toolken.run_directory import RunDirectory, default_directory
from toolken.settings.loading import dump_config
from toolken.stages import Stages
from toolken.tools.toolset import ToolSet
from toolken.tracking import Tracker
from toolken.training.processes import Processes

DONE = "done"
"""What the first process tells the others where there is nothing to do."""


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        directory: `config.yaml`, `metrics.jsonl`, `report.html`, `toolkens/`, `plots/`.
        metrics: The JSON object that the command line prints last; empty in a process that only helped.
    """

    directory: Path
    metrics: Mapping[str, object]


def train(config: Config) -> Run:
    """Train toolkens as the settings say; the same settings resume a killed run, or return a finished one.

    Where a launcher started several processes of the same command, all of them extract features. Everything else is
    done by the first: it alone holds the run directory, tracks, saves and reports.

    Raises:
        UserError: Settings, data, base or artefact are at fault, another run holds the directory, or another process
            of this run failed.
    """
    with Processes.join() as processes:
        return run_first(config, processes) if processes.first else help_first(config, processes)


class Prepared(NamedTuple):
    """What features are extracted from: `own` tools are those that the settings name, `tools` all that get rows."""

    base: BaseLM
    own: ToolSet
    tools: ToolSet
    old: ToolkenHead | None
    splits: Splits
    context: Context
    rows: Aligned


def prepare(config: Config, stages: Stages, processes: Processes) -> Prepared:
    """Load the base and the tools, and align the rows of every split in the context that inference uses."""
    check_alignment(config)
    with stages("base"):
        base = load_base(processes.on_own_device(config.base), announce=processes.first)
    own = load_tool_set(config.tools, config.data.root)
    old = ToolkenHead.load(config.init_from, base=base) if config.init_from else None
    tools = extended_tools(old, own)
    with stages("data"):
        splits = load_splits(config.data, tools.names)
        _require_examples(config, splits, own)
        context = load_context(config, base=base, tools=tools, examples=splits.train, old=old)
        rows = align_splits(splits, context.prompt, base=base, tools=tools.names, section=config.data)
    return Prepared(base, own, tools, old, splits, context, rows)


def help_first(config: Config, processes: Processes) -> Run:
    """Extract features with the process that owns the run, in silence, unless its run is done already."""
    run = Run(config.out or default_directory(config), {})
    if processes.exchange()[0] != DONE:
        ready = prepare(config, Stages(shown=False), processes)
        extract_together(ready.base, ready.rows, section=config.features, processes=processes)
    return run


def run_first(config: Config, processes: Processes) -> Run:
    """Do the whole run, extracting features with the help of the other processes."""
    with RunDirectory(config) as run:
        processes.exchange(DONE if run.result is not None else "")
        if run.result is not None:
            print(f"{run.path}: this run is done; delete it or change a setting to train again", file=sys.stderr)
            return Run(run.path, run.result)
        stages = Stages()
        with Tracker(run.path, config) as tracker:
            # 1. Base and tools. 2. Rows, in the context that inference uses.
            base, own, tools, old, splits, context, rows = prepare(config, stages, processes)
            _announce(splits)
            tracker.describe({"base_fingerprint": base.fingerprint, "data_sha256": splits.hash})

            # 3. Features of the frozen base, once.
            with stages("features"):
                features = extract_all(base, rows, section=config.features, processes=processes)
                if old is not None and config.init_from is not None:
                    negatives = old_features(config.init_from, old, base=base, prompt=context.prompt, splits=splits)
                    features = features._replace(train=join(features.train, negatives))

            # 4. Rows and biases.
            with stages("solve"):
                if config.align.method != "none":
                    solution = fit_aligned(features, splits, base=base, tools=tools, context=context, config=config)
                else:
                    solution = fit(features, base=base, tools=tools, section=config.solver, frozen=frozen_rows(old))
                head = make_head(
                    solution, base=base, tools=tools, context=context, config=config, splits=splits, old=old
                )
            log_curve(tracker, solution)

            # 5. Calibration on validation rows; never of rows that were there before: those keep their bytes.
            calibration = None
            if config.calibration.enabled and old is None:
                with stages("calibrate"):
                    head, calibration = calibrate_head(head, features.validation, base=base, section=config.calibration)
            elif old is not None:
                print(f"the bias is as solved; `toolken calibrate {run.path}` would calibrate it", file=sys.stderr)

            # 6. Save, measure, answer, report.
            head.save(run.toolkens)
            with stages("measure"):
                shift = measure_shift(features.train, splits.validation, base=base, context=context, config=config)
                report = build_report(
                    config,
                    base=base,
                    head=head,
                    solution=solution,
                    calibration=calibration,
                    features=features,
                    shift=shift,
                    left_out=splits.left_out,
                )
            with stages("samples"):
                answers = answer_samples(config, base=base, head=head, tools=own)
            report = report.model_copy(
                update={
                    "stages": stage_records(stages.done),
                    "samples": [sample_of(answer) for answer in answers],
                    "config": dump_config(config),
                    "command": f"python train.py --config {run.config_file}",
                }
            )
            write_report(run.path, report)
            result = result_record(run, report, seconds=stages.seconds)
            track(tracker, report, answers, run=run, splits=splits, head=head)
        run.finish(result)
        print(headline(report, directory=run.path), file=sys.stderr)
        return Run(run.path, result)


def _require_examples(config: Config, splits: Splits, tools: ToolSet) -> None:
    called = {call.tool for row in splits.train for call in row.calls}
    missing = [name for name in tools.names if name not in called]
    if missing and config.data.require_examples:
        raise UserError("data.train", f"no row calls <{missing[0]}>", "add rows, or set data.require_examples to False")


def _announce(splits: Splits) -> None:
    for line in splits.left_out:
        print(f"left out: {line}", file=sys.stderr)
    calls = sum(len(row.calls) for row in splits.train)
    print(
        f"data: {len(splits.train)} training rows with {calls} calls, {len(splits.validation)} validation rows, "
        f"{len(splits.negatives)} negatives, {len(splits.unseen)} unseen texts, {len(splits.left_out)} left out",
        file=sys.stderr,
    )


def answer_samples(config: Config, *, base: BaseLM, head: ToolkenHead, tools: ToolSet) -> list[Answer]:
    """Answer `sample_questions` and show them on stderr."""
    if not config.sample_questions:
        return []
    with Engine(base, head, tools=tools, config=config.inference) as engine:
        answers = engine.answer(config.sample_questions)
    for answer in answers:
        print(f"Q: {answer.question}\nA: {printable(answer.text.strip())}", file=sys.stderr)
        for call in sample_of(answer).calls:
            print(f"   called {printable(call)}", file=sys.stderr)
    return answers
