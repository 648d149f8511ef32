"""Alignment of contexts: folded rows read use as the solved ones read training, and nothing moves for nothing."""

from dataclasses import replace

import pytest
import torch

from tests.training.synthetic import synthetic_features
from toolken.config import AlignSection, SolverSection
from toolken.errors import UserError
from toolken.training.alignment import Alignment
from toolken.training.solver import solve, supervised

KINDS = ["mean", "moments", "covariance"]


def section(method: str, **settings: object) -> AlignSection:
    return AlignSection.model_validate({"method": method} | settings)


def scaled(raw: torch.Tensor) -> torch.Tensor:
    return 0.5 * raw


def hidden(seed: int = 0, count: int = 500) -> torch.Tensor:
    return synthetic_features(count, seed=seed).hidden


def rows(seed: int = 5, tools: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(tools, 12, generator=draw), torch.randn(tools, generator=draw)


def logits_in_training(alignment: Alignment, states: torch.Tensor) -> torch.Tensor:
    weight, bias = rows()
    return scaled(alignment.standardise(states) @ weight.T) + bias


def logits_in_use(alignment: Alignment, states: torch.Tensor) -> torch.Tensor:
    weight, bias = alignment.fold(*rows(), transform=scaled)
    return scaled(states @ weight.T) + bias


@pytest.mark.parametrize("method", KINDS)
def test_equal_contexts_change_no_logit(method: str) -> None:
    states = hidden()
    alignment = Alignment.between(states, states, section=section(method))
    torch.testing.assert_close(
        logits_in_use(alignment, states), logits_in_training(alignment, states), atol=1e-3, rtol=1e-4
    )


@pytest.mark.parametrize(("method", "stretch"), [("mean", 1.0), ("moments", 3.0), ("covariance", 3.0)])
def test_a_context_that_is_moved_and_stretched_is_read_as_if_it_were_not(method: str, stretch: float) -> None:
    states = hidden()
    scale = stretch ** torch.linspace(-1, 1, 12) if method != "covariance" else torch.full((12,), stretch)
    moved = states * scale + torch.linspace(-20, 20, 12)
    alignment = Alignment.between(states, moved, section=section(method))
    torch.testing.assert_close(
        logits_in_use(alignment, moved), logits_in_training(alignment, states), atol=2e-3, rtol=1e-3
    )
    plain = Alignment.between(states, states, section=section(method))
    off = (logits_in_use(plain, moved) - logits_in_training(plain, states)).abs().max()
    assert off > 0.5, "without the moments of use the same rows read something else"


def test_covariance_without_shrinkage_undoes_a_mixture_of_dimensions_up_to_a_rotation() -> None:
    states = hidden(count=4000)
    mixed = states @ torch.randn(12, 12, generator=torch.Generator().manual_seed(1)) + 5
    alignment = Alignment.between(states, mixed, section=section("covariance", shrinkage=0.0))
    standard = (mixed.double() - alignment.use.mean) @ alignment.use.whitening
    torch.testing.assert_close(torch.cov(standard.T), torch.eye(12).double(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("method", KINDS)
def test_a_prior_over_plain_rows_comes_back_as_it_was(method: str) -> None:
    alignment = Alignment.between(hidden(0), hidden(1) * 2 + 3, section=section(method))
    weight, bias = rows()
    back, _ = alignment.fold(alignment.unfold(weight), bias, transform=scaled)
    torch.testing.assert_close(back, weight, atol=1e-4, rtol=1e-4)


def test_a_dimension_that_does_not_vary_leaves_rows_finite() -> None:
    states = hidden()
    states[:, 3] = 7.0
    alignment = Alignment.between(states, states, section=section("moments"))
    weight, bias = alignment.fold(*rows(), transform=scaled)
    assert weight.isfinite().all() and bias.isfinite().all() and alignment.standardise(states).isfinite().all()


def test_the_record_tells_one_context_of_use_from_another() -> None:
    first = Alignment.between(hidden(0), hidden(1), section=section("moments")).record
    again = Alignment.between(hidden(0), hidden(1), section=section("moments")).record
    other = Alignment.between(hidden(0), hidden(2), section=section("moments")).record
    assert first == again and first["sha256"] != other["sha256"] and first["use"] == 500


def test_too_few_positions_have_no_moments() -> None:
    with pytest.raises(UserError, match="align: 500 training and 1 use positions have no moments"):
        Alignment.between(hidden(), hidden()[:1], section=section("moments"))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_hidden_states_that_are_not_finite_are_refused(value: float) -> None:
    broken = hidden(1)
    broken[7, 2] = value
    for training, use in ((hidden(0), broken), (broken, hidden(0))):
        with pytest.raises(UserError, match="align: hidden states are not finite"):
            Alignment.between(training, use, section=section("covariance"))


def test_a_prior_that_all_toolkens_share_changes_no_choice_among_them() -> None:
    features = synthetic_features(seed=3)
    choice = SolverSection(l2=1e-3, positions="toolken", softmax="toolkens", precision="float64")
    shared = torch.linspace(-3, 3, 12).repeat(3, 1)
    plain, moved = (
        solve(features, 3, section=choice, transform=scaled, affine=True, prior=prior).weight
        for prior in (torch.zeros(3, 12), shared)
    )
    torch.testing.assert_close(moved - shared, plain, atol=1e-2, rtol=0)


def test_a_softmax_over_toolkens_alone_does_not_see_the_words() -> None:
    features = synthetic_features(seed=3)
    louder = replace(features, base_lse=features.base_lse + torch.linspace(0, 50, len(features)))
    choice = SolverSection(l2=1e-3, positions="toolken", softmax="toolkens", precision="float64")

    def found(over: object) -> torch.Tensor:
        prior = torch.zeros(3, 12)
        return solve(over, 3, section=choice, transform=scaled, affine=True, prior=prior).weight  # type: ignore[arg-type]

    assert torch.equal(found(features), found(louder))
    rows_ = found(features)
    kept = supervised(features, choice)
    right = (kept.hidden @ rows_.T).argmax(dim=1) == kept.toolken
    assert float(right.float().mean()) > 0.9
    with pytest.raises(UserError, match=r"solver\.softmax: `toolkens` has no loss at the positions of words"):
        supervised(features, choice.model_copy(update={"positions": "all"}))
