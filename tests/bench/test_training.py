"""`bench train` on a tiny base: the reference is the law, the record is whole, samples are scaled as they should."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from tests.recipes.saved import save_tiny_base, tiny_config
from toolken.bench.measure import PeakMemory, in_turns, memory_mb, scaled, spread_sample
from toolken.bench.plain_forward import plain_forward
from toolken.bench.reference_training import ReferenceTraining
from toolken.bench.training import bench_train
from toolken.bench.workload import Workload, align_workload, cache_in, evenly, read_splits
from toolken.config import SolverSection
from toolken.model.base import BaseLM
from toolken.recipes.solving import extract_all
from toolken.tools.arithmetic import ARITHMETIC
from toolken.training.sgd import initial_rows, train_adam

KEYS = {
    "speedup_vs_reference",
    "speedup_vs_reference_no_context",
    "ratio_to_forward",
    "ratio_to_forward_auto",
    "peak_extra_mb",
    "features_mb",
    "val_loss",
    "reference_val_loss",
    "val_f1",
    "reference_val_f1",
    "reference_rows_timed",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def work(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Workload:
    config = tiny_config(folder, tmp_path_factory.mktemp("run"), data__generate={"per_tool": 1, "plain": 2})
    base = BaseLM.load(str(folder), dtype="float32")
    return align_workload(config, read_splits(config, ARITHMETIC, quick=False), base=base, tools=ARITHMETIC)


@pytest.mark.parametrize("positions", ["all", "toolken"])
def test_law_1_the_published_algorithm_takes_the_steps_of_adam_over_cached_features(
    work: Workload, tmp_path: Path, positions: str
) -> None:
    section = SolverSection(kind="adam", lr=1e-2, epochs=3, positions=positions)
    features = extract_all(work.base, work.rows, section=cache_in(work.config, tmp_path))
    cached = train_adam(features.train, features.validation, 13, section=section, transform=work.base.transform)
    training = ReferenceTraining(work.base, initial_rows(13, work.base.hidden_size, section.seed), section)
    order = torch.Generator().manual_seed(section.seed)
    rows = [row for row in work.rows.train if any(at >= 0 for at in row.toolken) or positions == "all"]
    losses = training.train(
        rows, epochs=section.epochs, order=lambda count: torch.randperm(count, generator=order).tolist()
    )
    assert losses == pytest.approx([record["train/loss"] for record in cached.log], rel=1e-4)
    assert losses[-1] < losses[0]
    assert not any(parameter.requires_grad for parameter in work.base.model.parameters())


def test_the_plain_pass_computes_logits_at_every_supervised_position(work: Workload) -> None:
    rows = [*work.rows.train, *work.rows.validation]
    for budget in (1, 700, 100_000):
        assert plain_forward(work.base, rows, token_budget=budget, block=7) == sum(len(row.index) for row in rows)


def test_a_quick_record_is_whole_and_finite_and_says_that_it_is_quick(folder: Path, tmp_path: Path) -> None:
    record = bench_train(tiny_config(folder, tmp_path / "run"), quick=True, dtypes=True)
    assert record["quick"] is True and record.keys() >= KEYS | {"threads", "torch", "base", "dtype", "rows", "l2"}
    for key in KEYS:
        value = record[key]
        assert isinstance(value, (int, float)) and math.isfinite(value) and value >= 0, key
    seconds = record["seconds"]
    assert isinstance(seconds, dict)
    assert record["speedup_vs_reference"] == pytest.approx(seconds["reference"] / seconds["ours"])
    assert record["ratio_to_forward"] == pytest.approx(seconds["ours"] / seconds["forward"])
    assert record["ratio_to_forward_auto"] == pytest.approx(seconds["auto"] / seconds["forward"])
    rows, timed = record["rows"], record["reference_rows_timed"]
    assert isinstance(rows, int) and isinstance(timed, int) and timed == 6 < rows
    assert seconds["reference"] == pytest.approx(10 * seconds["reference_timed"] * rows / timed)
    differ, decisions = record["dtype_decisions_differ"], record["dtype_decisions"]
    assert isinstance(differ, int) and isinstance(decisions, int) and 0 <= differ <= decisions
    assert decisions == record["positions"] + record["validation_positions"]  # type: ignore[operator]
    assert not (tmp_path / "run").exists()


def test_a_sample_spreads_over_all_sizes_and_scales_to_the_sum_of_all() -> None:
    sizes = [1 + (n * 37) % 600 for n in range(700)]
    whole = sum(sizes)
    for seed in range(20):
        sample = spread_sample(sizes, 50, seed=seed)
        assert len(set(sample)) == 50
        assert scaled(sum(sizes[place] for place in sample), measured=50, of=700) == pytest.approx(whole, rel=0.03)
    assert spread_sample(sizes, 50, seed=1) == spread_sample(sizes, 50, seed=1) != spread_sample(sizes, 50, seed=2)
    assert spread_sample([5, 3], 7, seed=0) == [0, 1]
    assert evenly(list(range(10)), 4) == [0, 2, 5, 7] and evenly([1, 2], 5) == [1, 2]


def test_turns_give_every_side_every_place() -> None:
    order: list[str] = []
    seconds = in_turns({name: lambda name=name: order.append(name) for name in "abc"}, 3)  # type: ignore[misc]
    assert order == list("abcbcacab")
    assert {name: len(times) for name, times in seconds.items()} == {"a": 3, "b": 3, "c": 3}


@pytest.mark.skipif(memory_mb() is None, reason="the system does not tell what a process holds")
def test_the_peak_sees_memory_that_is_gone_at_the_end() -> None:
    with PeakMemory(memory_mb()) as watch:
        torch.ones(2**26)  # 256 MiB, freed at once
    assert watch.extra_mb is not None and 200 < watch.extra_mb < 400
    with PeakMemory(None) as blind:
        pass
    assert blind.extra_mb is None
