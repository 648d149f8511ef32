"""`bench train`: our training end to end against the published algorithm and against one plain pass over the rows.

Same base, rows, context, dtype and threads, in one process; loading the base and aligning rows stand outside every
timing. The reference's epoch is timed on a sample of the rows and scaled, and its losses come from the `adam` solver
over cached features, which computes the same. Biases are as solved where the two are compared.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import NamedTuple

from toolken.bench.dtypes import compare_dtypes
from toolken.bench.measure import PeakMemory, level_after_warm_up, machine_facts, say, timed
from toolken.bench.plain_forward import plain_forward
from toolken.bench.reference_training import ReferenceTime, time_reference
from toolken.bench.workload import Trained, Workload, align_workload, fixed_solver, read_splits, train_cold, train_from
from toolken.config import Config, SolverSection
from toolken.files import jsonable
from toolken.model.base import BaseLM
from toolken.recipes.measurement import mean_loss, measure_split
from toolken.recipes.preparation import load_base, load_tool_set
from toolken.recipes.solving import SplitFeatures, fit
from toolken.training.decisions import decide, detections, total
from toolken.training.sgd import initial_rows
from toolken.training.solver import Solution

NO_CONTEXT = "builtin:plain"
REFERENCE_ROWS = 60
QUICK_REFERENCE_ROWS = 6
PAIRS = 2


class Rounds(NamedTuple):
    """Our way and the plain pass, in pairs of one run; `trained` is what the first round left."""

    trained: Trained
    ours: list[dict[str, float]]
    forward: list[float]
    peak_mb: float | None

    @property
    def ours_seconds(self) -> float:
        """Median over the rounds, all stages together."""
        return statistics.median(sum(stages.values()) for stages in self.ours)

    @property
    def forward_seconds(self) -> float:
        """Median over the rounds."""
        return statistics.median(self.forward)


def bench_train(config: Config, *, quick: bool = False, dtypes: bool = False) -> dict[str, object]:
    """Measure training on the rows of a configuration.

    Args:
        config: Settings of a training run.
        quick: Few rows, one round: for trials. The record says so.
        dtypes: Extract in the other dtype as well and count the decisions that differ.

    Raises:
        UserError: Settings, data or base are at fault.
    """
    base = load_base(config.base)
    level = level_after_warm_up(base)
    tools = load_tool_set(config.tools, config.data.root)
    splits = read_splits(config, tools, quick=quick)
    plain = config.model_copy(update={"prompt": config.prompt.model_copy(update={"template": NO_CONTEXT})})
    with_context, without = (align_workload(each, splits, base=base, tools=tools) for each in (config, plain))
    pairs, rows = (1, QUICK_REFERENCE_ROWS) if quick else (PAIRS, REFERENCE_ROWS)
    section = fixed_solver(config.solver)
    with tempfile.TemporaryDirectory(prefix="toolken-bench-") as name:
        folder = Path(name)
        say("with the few-shot context: ours and one plain pass")
        first = measure_rounds(with_context, section, folder, pairs=pairs, level=level)
        say("l2: auto, from the same features")
        searching = section.model_copy(update={"l2": "auto"})
        auto = train_from(with_context, first.trained.features, searching, folder)
        say("the reference, on a sample of rows")
        reference = _reference(with_context, rows=rows)
        say("the same without few-shot examples")
        second = measure_rounds(without, section, folder, pairs=1, level=None)
        reference_without = _reference(without, rows=rows)
        record = {
            "quick": quick,
            **machine_facts(base),
            **_sizes(with_context, first.trained.features),
            "l2": section.l2,
            "peak_extra_mb": first.peak_mb,
            **_ratios(first, auto, reference),
            **{f"{key}_no_context": value for key, value in _ratios(second, None, reference_without).items()},
            **quality(with_context, first.trained, config.solver),
        }
        if dtypes:
            say("the same rows in the other dtype")
            record |= compare_dtypes(with_context, first.trained, folder)
    return {key: jsonable(value) for key, value in record.items()}


def measure_rounds(work: Workload, section: SolverSection, folder: Path, *, pairs: int, level: float | None) -> Rounds:
    """Run our way, from an empty cache, and the plain pass after each other, so many times.

    The memory is watched in the first round, before anything else has grown the process; `level` is what it is counted
    from.
    """
    trained: list[Trained] = []
    peak: float | None = None
    forward: list[float] = []
    for number in range(pairs):
        place = folder / f"{work.context.prompt.hash[:8]}-{number}"
        with PeakMemory(level) as watch:
            trained.append(train_cold(work, section, place))
        forward.append(timed(lambda: _plain_pass(work)).seconds)
        peak = watch.extra_mb if number == 0 else peak
        say(f"ours {trained[-1].total:.1f} s, one plain pass {forward[-1]:.1f} s")
    return Rounds(trained[0], [each.seconds for each in trained], forward, peak)


def _plain_pass(work: Workload) -> int:
    """Run the base over what extraction reads: training and validation rows."""
    section = work.config.features
    rows = [*work.rows.train, *work.rows.validation]
    return plain_forward(work.base, rows, token_budget=section.token_budget, block=section.vocabulary_block)


def _reference(work: Workload, *, rows: int) -> ReferenceTime:
    start = initial_rows(len(work.tools), work.base.hidden_size, work.config.solver.seed)
    return time_reference(work.base, work.rows.train, start, section=work.config.solver, rows=rows)


def quality(work: Workload, trained: Trained, section: SolverSection) -> dict[str, object]:
    """Return losses and F1 on validation rows, of our solution and of the reference's recipe, biases as solved."""
    reference = fit(
        trained.features, base=work.base, tools=work.tools, section=section.model_copy(update={"kind": "adam"})
    )
    ours, theirs = (_scores(trained.features, solution, base=work.base) for solution in (trained.solution, reference))
    calibrated = measure_split(trained.features.validation, trained.head, base=work.base)
    return {
        "val_loss": ours[0],
        "reference_val_loss": theirs[0],
        "val_f1": ours[1],
        "reference_val_f1": theirs[1],
        "val_calls": int((trained.features.validation.toolken >= 0).sum()),
        "val_loss_calibrated": calibrated.loss,
        "val_f1_calibrated": calibrated.detection.f1,
        "reference_lr": section.lr,
        "reference_epochs": section.epochs,
    }


def _scores(features: SplitFeatures, solution: Solution, *, base: BaseLM) -> tuple[float | None, float]:
    """Return mean loss and F1 over all validation positions."""
    weight, bias = solution.weight, solution.bias
    decisions = decide(features.validation, weight, bias, base.transform, allowed=solution.trained)
    return mean_loss(features.validation, weight, bias, base=base), total(detections(decisions, len(weight))).f1


def _ratios(rounds: Rounds, auto: Trained | None, reference: ReferenceTime) -> dict[str, object]:
    """Return what is compared, and the seconds behind it."""
    ours, forward = rounds.ours_seconds, rounds.forward_seconds
    seconds: dict[str, object] = {
        "ours": ours,
        "ours_rounds": rounds.ours,
        "forward": forward,
        "forward_rounds": rounds.forward,
        "reference": reference.seconds,
        "reference_timed": reference.seconds_timed,
    }
    record = {
        "speedup_vs_reference": reference.seconds / ours,
        "ratio_to_forward": ours / forward,
        "reference_rows_timed": reference.rows_timed,
        "seconds": seconds,
    }
    if auto is not None:  # the median extraction, and a solve, calibration and saving of its own
        with_auto = statistics.median(stages["extraction"] for stages in rounds.ours) + auto.total
        seconds |= {"auto": with_auto, "auto_stages": auto.seconds}
        record["ratio_to_forward_auto"] = with_auto / forward
    return record


def _sizes(work: Workload, features: SplitFeatures) -> dict[str, object]:
    columns = [column for part in (features.train, features.validation) for column in vars(part).values()]
    return {
        "rows": len(work.rows.train),
        "validation_rows": len(work.rows.validation),
        "positions": len(features.train),
        "validation_positions": len(features.validation),
        "prompt_tokens": max((len(e.prefix) for e in work.rows.train), default=0),
        "features_mb": sum(column.numel() * column.element_size() for column in columns) / 2**20,
    }
