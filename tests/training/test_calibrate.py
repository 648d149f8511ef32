"""The sweep is exact: no shift on a fine grid, nor any between two margins, does better."""

import pytest
import torch

from tests.training.synthetic import synthetic_features
from toolken.config import CalibrationSection
from toolken.training.calibrate import calibrate
from toolken.training.decisions import decide, detections, false_calls, total
from toolken.training.features import Features


def identity(raw: torch.Tensor) -> torch.Tensor:
    return raw


def rows(tools: int = 3, width: int = 12, seed: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(tools, width, generator=draw) * 0.3, torch.randn(tools, generator=draw)


def measured(features: Features, weight: torch.Tensor, bias: torch.Tensor) -> tuple[float, float, float]:
    decisions = decide(features, weight.double(), bias.double(), identity)
    found = total(detections(decisions, len(bias)))
    return found.f1, found.recall.value, false_calls(decisions).value * 1000


def candidate_shifts(features: Features, weight: torch.Tensor, bias: torch.Tensor) -> list[float]:
    margins = (features.hidden.double() @ weight.double().T + bias).max(dim=1).values - features.base_max
    edges = (-margins).sort().values
    return [float(edges[0]) - 1, *((edges[1:] + edges[:-1]) / 2).tolist(), float(edges[-1]) + 1]


@pytest.mark.parametrize("seed", range(8))
def test_the_shift_is_as_good_as_brute_force_for_f1(seed: int) -> None:
    features = synthetic_features(150, seed=seed)
    weight, bias = rows(seed=seed)
    best = max(measured(features, weight, bias + s)[0] for s in candidate_shifts(features, weight, bias))
    section = CalibrationSection(per_tool_positives=10_000)
    found = calibrate(features, weight.double(), bias.double(), section=section, transform=identity)
    assert measured(features, weight, bias + found.shift)[0] == pytest.approx(best, abs=1e-12)
    assert torch.equal(found.per_tool, torch.full((3,), found.shift))


@pytest.mark.parametrize("limit", [0.0, 5.0, 50.0])
def test_recall_is_as_good_as_brute_force_within_the_limit(limit: float) -> None:
    features = synthetic_features(300, seed=3)
    weight, bias = rows(seed=3)
    scores = [measured(features, weight, bias + s) for s in candidate_shifts(features, weight, bias)]
    best = max(recall for _, recall, calls in scores if calls <= limit)
    section = CalibrationSection(target="recall", false_calls_per_1000=limit, per_tool_positives=10_000)
    found = calibrate(features, weight.double(), bias.double(), section=section, transform=identity)
    _, recall, calls = measured(features, weight, bias + found.shift)
    assert calls <= limit
    assert recall == pytest.approx(best, abs=1e-12)


def test_coordinate_sweeps_end_where_no_single_tool_can_do_better() -> None:
    features = synthetic_features(300, seed=1, share=0.4)
    weight, bias = rows(seed=1)
    shared = calibrate(
        features, weight, bias, section=CalibrationSection(per_tool_positives=10_000), transform=identity
    )
    found = calibrate(features, weight, bias, section=CalibrationSection(per_tool_positives=5), transform=identity)
    assert bool(found.own.all())
    reached = measured(features, weight, bias + found.per_tool)[0]
    assert reached >= measured(features, weight, bias + shared.shift)[0]
    for tool in range(3):
        for shift in torch.linspace(-15, 15, 401):
            moved = bias + found.per_tool
            moved[tool] += shift
            assert measured(features, weight, moved)[0] <= reached + 1e-12


def test_a_separated_set_gets_the_middle_of_the_gap() -> None:
    hidden = torch.tensor([[2.0], [3.0], [-5.0], [-4.0]])
    zero = torch.zeros(4)
    features = Features(hidden, zero + 1, zero, zero, torch.tensor([0, 0, -1, -1]), torch.arange(4))
    found = calibrate(features, torch.ones(1, 1), torch.zeros(1), section=CalibrationSection(), transform=identity)
    assert found.shift == pytest.approx(1.0)  # margins 2 and -4: calls are right for shifts in (-2, 4]


def test_the_curve_has_few_points_and_holds_the_chosen_shift() -> None:
    features = synthetic_features(2000, seed=2)
    weight, bias = rows(seed=2)
    found = calibrate(features, weight, bias, section=CalibrationSection(), transform=identity)
    assert len(found.curve) <= 400
    assert any(point["shift"] == found.shift for point in found.curve)
    for point in found.curve[::57]:
        f1, recall, calls = measured(features, weight, bias.double() + point["shift"])
        assert point["f1"] == pytest.approx(f1, abs=0.02)
        assert point["recall"] == pytest.approx(recall, abs=0.02)
        assert point["false_calls_per_1000"] == pytest.approx(calls, abs=2)


def test_untrained_rows_and_empty_sets_leave_the_bias_alone() -> None:
    features = synthetic_features(100)
    weight, bias = rows()
    for part, allowed in ((features.select(features.toolken < 0), None), (features, torch.zeros(3, dtype=torch.bool))):
        found = calibrate(part, weight, bias, section=CalibrationSection(), transform=identity, allowed=allowed)
        assert found.shift == 0 and not found.per_tool.any() and not found.curve
