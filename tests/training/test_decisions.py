"""Decisions and their counts against plain loops."""

from dataclasses import replace

import torch

from tests.training.synthetic import synthetic_features
from toolken.metrics import Rate
from toolken.training.decisions import Decisions, confusion, decide, detections, false_calls


def test_a_toolken_must_be_strictly_above_the_best_word_and_allowed() -> None:
    features = synthetic_features(200)
    weight, bias = torch.randn(3, 12, generator=torch.Generator().manual_seed(1)) * 0.3, torch.tensor([1.0, 0.0, 2.0])
    allowed = torch.tensor([True, False, True])
    found = decide(features, weight, bias, lambda raw: raw, allowed=allowed, block=37)
    for t in range(200):
        logits = (features.hidden[t] @ weight.T + bias).tolist()
        row = max((0, 2), key=lambda k: logits[k])
        assert found.predicted[t] == (row if logits[row] > features.base_max[t] else -1)
    exact = replace(features, hidden=torch.zeros_like(features.hidden))
    tied = decide(exact, weight, exact.base_max[:1].expand(3), lambda raw: raw)
    assert tied.predicted[0] == -1


def test_counts_agree_with_loops() -> None:
    draw = torch.Generator().manual_seed(0)
    decisions = Decisions(torch.randint(-1, 3, (500,), generator=draw), torch.randint(-1, 3, (500,), generator=draw))
    pairs = list(zip(decisions.predicted.tolist(), decisions.gold.tolist(), strict=True))
    for tool, found in enumerate(detections(decisions, 3)):
        assert found.true_positives == sum(p == g == tool for p, g in pairs)
        assert found.false_positives == sum(p == tool != g for p, g in pairs)
        assert found.false_negatives == sum(g == tool != p for p, g in pairs)
    assert false_calls(decisions) == Rate(sum(p >= 0 > g for p, g in pairs), sum(g < 0 for _, g in pairs))
    table = confusion(decisions, 3)
    for gold in range(4):
        for predicted in range(4):
            assert table[gold, predicted] == sum((p % 4, g % 4) == (predicted, gold) for p, g in pairs)
