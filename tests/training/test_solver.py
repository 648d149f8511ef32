"""Law 9 (one optimum), blocks, frozen rows, the choice of the prior strength."""

import itertools
from dataclasses import replace

import pytest
import torch

from tests.training.synthetic import synthetic_features
from toolken.config import SolverSection
from toolken.errors import UserError
from toolken.training.convex import Settings
from toolken.training.decisions import decide
from toolken.training.features import Features
from toolken.training.objective import Prior, Terms, loss_and_gradient
from toolken.training.selection import assign_folds, choose_l2, sample_words
from toolken.training.solver import Frozen, Solution, fold, solve


def identity(raw: torch.Tensor) -> torch.Tensor:
    return raw


def cap(raw: torch.Tensor) -> torch.Tensor:
    return 4 * torch.tanh(raw / 4)


def solved(features: Features, tools: int = 3, *, start: torch.Tensor | None = None, **settings: object) -> Solution:
    section = SolverSection.model_validate({"l2": 1e-3} | settings)
    prior = torch.zeros(tools, features.hidden.shape[1])
    return solve(features, tools, section=section, transform=identity, affine=True, prior=prior, start=start)


@pytest.mark.parametrize("l2", [1e-2, 1e-5])
def test_law_9_two_starts_reach_one_optimum(l2: float) -> None:
    features, validation = synthetic_features(seed=1), synthetic_features(seed=2)
    starts = [None, torch.randn(3, 12, generator=torch.Generator().manual_seed(3))]
    settings = {"l2": l2, "precision": "float64", "tolerance": 1e-9}
    first, second = (solved(features, start=start, **settings) for start in starts)
    assert first.convex and first.converged and second.converged
    assert first.loss == pytest.approx(second.loss, abs=1e-6)
    decisions = [decide(validation, s.weight, s.bias, identity).predicted for s in (first, second)]
    assert torch.equal(*decisions)
    assert bool((decisions[0] >= 0).any())
    apart = float((first.weight - second.weight).double().norm())
    assert first.distance_bound is not None and second.distance_bound is not None
    assert apart <= first.distance_bound + second.distance_bound + 1e-6 * float(first.weight.norm())


def test_law_9_the_gradient_at_the_end_bounds_the_distance_to_the_optimum() -> None:
    features = synthetic_features(seed=1)
    exact = solved(features, precision="float64", tolerance=1e-11)
    rough = solved(features, precision="float64", max_iterations=5)
    assert rough.distance_bound is not None and not rough.converged
    assert float((rough.weight - exact.weight).norm()) <= rough.distance_bound
    assert rough.loss >= exact.loss


def test_float32_reaches_the_optimum_of_float64() -> None:
    features = synthetic_features(2000, seed=4, scale=100)
    assert solved(features).loss == pytest.approx(solved(features, precision="float64", tolerance=1e-9).loss, abs=2e-6)


def test_blocks_do_not_change_the_result() -> None:
    features = synthetic_features(seed=1)
    whole, parts = (solved(features, precision="float64", tolerance=1e-9, block=block) for block in (16384, 17))
    assert torch.allclose(whole.weight, parts.weight, atol=1e-5)
    assert torch.allclose(whole.bias, parts.bias, atol=1e-4)


def test_the_optimum_is_that_of_torch_autograd() -> None:
    features = synthetic_features(seed=6)
    found = solved(features, precision="float64", tolerance=1e-10)
    rows = torch.zeros(3, 13, dtype=torch.float64, requires_grad=True)
    hidden = features.hidden.double()

    def loss() -> torch.Tensor:
        z = hidden @ rows[:, :12].T + rows[:, 12]
        target = torch.where(
            features.toolken >= 0, z.gather(1, features.toolken.clamp(min=0)[:, None])[:, 0], features.base_target
        )
        everything = torch.logsumexp(torch.cat([features.base_lse[:, None].double(), z], 1), 1)
        return (everything - target).mean() + 1e-3 * rows[:, :12].square().sum()

    with torch.no_grad():
        rows.copy_(torch.cat([found.weight, found.bias[:, None]], 1))
    value = loss()
    value.backward()
    assert value.item() == pytest.approx(found.loss, abs=1e-9)
    assert float(rows.grad.abs().max()) < 1e-4  # rows are float32 by now


def test_a_tool_without_examples_stays_at_its_prior_and_is_marked() -> None:
    features = synthetic_features(seed=1)
    prior = torch.full((4, 12), 0.5)
    section = SolverSection(l2=1e-3)
    found = solve(features, 4, section=section, transform=identity, affine=True, prior=prior)
    assert found.trained.tolist() == [True, True, True, False]
    assert torch.equal(found.weight[3], prior[3]) and found.bias[3] == 0
    with pytest.raises(UserError, match="no tool"):
        solved(features.select(features.toolken < 0))


def test_without_word_positions_the_bias_is_fixed_at_zero() -> None:
    features = synthetic_features(seed=1)
    assert not solved(features, positions="toolken").bias.any()
    assert not solved(features.select(features.toolken >= 0)).bias.any()
    assert bool(solved(features).bias.all())


def test_a_soft_cap_is_solved_to_a_stationary_point_and_says_so() -> None:
    features = synthetic_features(seed=1)
    features = replace(features, base_lse=features.base_lse - 10, base_target=features.base_target - 10)
    section = SolverSection(l2=1e-4, precision="float64", tolerance=1e-7)
    prior = torch.zeros(3, 12)
    found = solve(features, 3, section=section, transform=cap, affine=False, prior=prior)
    assert not found.convex and found.distance_bound is None and found.converged
    terms = Terms(features.hidden, features.base_lse, features.base_target, features.toolken, None, len(features))
    at = loss_and_gradient(
        terms, found.weight.double(), found.bias.double(), transform=cap, prior=Prior(1e-4, prior.double())
    )
    start = loss_and_gradient(terms, prior.double(), torch.zeros(3).double(), transform=cap)
    assert float(at.weight.abs().max()) < 1e-5
    assert at.loss < start.loss - 0.1


def test_law_8_rows_that_are_frozen_keep_their_bytes_and_act_in_the_softmax() -> None:
    features = synthetic_features(800, tools=4, seed=1)
    old = torch.tensor([0, 2])
    draw = torch.Generator().manual_seed(7)
    frozen = Frozen(torch.randn(2, 12, generator=draw), torch.randn(2, generator=draw), old)
    section = SolverSection(l2=1e-3, precision="float64", tolerance=1e-9)
    found = solve(
        features, 4, section=section, transform=identity, affine=True, prior=torch.zeros(4, 12), frozen=frozen
    )
    assert torch.equal(found.weight[old], frozen.weight) and torch.equal(found.bias[old], frozen.bias)
    assert bool(found.trained.all())
    terms = Terms(features.hidden, features.base_lse, features.base_target, features.toolken, None, len(features))
    whole = loss_and_gradient(terms, found.weight.double(), found.bias.double(), transform=identity)
    new = torch.tensor([1, 3])
    stationary = whole.weight[new] + 2e-3 * found.weight[new].double()
    assert float(stationary.abs().max()) < 1e-4 and float(whole.bias[new].abs().max()) < 1e-5
    assert float(whole.weight[old].abs().max()) > 1e-3


def test_folding_frozen_rows_keeps_the_loss() -> None:
    features = synthetic_features(tools=2, seed=1)
    draw = torch.Generator().manual_seed(7)
    weight, bias = torch.randn(2, 12, generator=draw).double(), torch.randn(2, generator=draw).double()
    folded = fold(features, Frozen(weight, bias, torch.tensor([0, 1])), identity)
    terms = Terms(features.hidden, features.base_lse, features.base_target, features.toolken, None, len(features))
    dense = loss_and_gradient(terms, weight, bias, transform=identity).loss
    assert float((folded.base_lse - folded.base_target).double().mean()) == pytest.approx(dense, abs=1e-6)


def test_folds_hold_out_whole_examples_and_spread_every_tool() -> None:
    features = synthetic_features(1600, seed=1)
    folds = assign_folds(features, 5)
    assert torch.equal(folds, assign_folds(features, 5))
    for example in features.example.unique():
        assert len(folds[features.example == example].unique()) == 1
    for number, tool in itertools.product(range(5), range(3)):
        assert bool(((folds == number) & (features.toolken == tool)).any())


def test_auto_takes_the_strength_with_the_smallest_held_out_loss() -> None:
    features = synthetic_features(600, seed=1)
    found = solved(features, l2="auto", folds=3)
    records = found.cross_validation
    assert found.l2 == min(records, key=lambda r: r["loss"])["l2"]
    by_hand = 0.0
    folds = assign_folds(features, 3)
    for number in range(3):
        part = solved(features.select(folds != number), l2=found.l2, precision="float64", tolerance=1e-9)
        held = features.select(folds == number)
        terms = Terms(held.hidden, held.base_lse, held.base_target, held.toolken, None, 1.0)
        by_hand += loss_and_gradient(terms, part.weight, part.bias, transform=identity).loss
    assert min(r["loss"] for r in records) == pytest.approx(by_hand / len(features), abs=1e-3)
    with pytest.raises(UserError, match="two examples"):
        solved(features.select(features.example == 0), l2="auto")


def test_a_weighted_sample_of_words_is_unbiased_and_finds_the_same_strength() -> None:
    features = synthetic_features(6000, seed=1, share=0.03)
    settings = Settings(identity, 1e-4, 200, 16384, True)
    section = SolverSection(sample_words=1500)
    mean = torch.zeros(3, 12)
    data, folds = sample_words(features, assign_folds(features, 5), mean, section=section, settings=settings, l2=1e-3)
    words = data.features.toolken < 0
    assert data.weights is not None and len(folds) == len(data.features)
    assert int((~words).sum()) == int((features.toolken >= 0).sum())
    assert 1000 < int(words.sum()) < 1900
    all_words = int((features.toolken < 0).sum())
    assert float(data.weights[words].sum()) == pytest.approx(all_words, rel=0.1)
    sampled, _ = choose_l2(features, mean, section=section, settings=settings)
    full, records = choose_l2(features, mean, section=SolverSection(), settings=settings)
    losses = {r["l2"]: r["loss"] for r in records}
    assert sampled in losses and losses[sampled] <= losses[full] * 1.02
