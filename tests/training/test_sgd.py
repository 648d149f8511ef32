"""The published recipe over features is a plain torch loop over dense logits."""

import pytest
import torch

from tests.training.synthetic import synthetic_features
from toolken.config import SolverSection
from toolken.errors import UserError
from toolken.training.features import Features
from toolken.training.sgd import initial_rows, train_adam


def identity(raw: torch.Tensor) -> torch.Tensor:
    return raw


def dense_features(words: torch.Tensor, gold: torch.Tensor) -> Features:
    made = synthetic_features(200)
    logits = made.hidden @ words.T
    return Features(
        made.hidden,
        logits.logsumexp(1),
        logits.amax(1),
        logits.gather(1, gold[:, None])[:, 0],
        made.toolken,
        made.example,
    )


def test_law_1_adam_over_features_replicates_a_plain_loop_on_dense_logits() -> None:
    draw = torch.Generator().manual_seed(0)
    words, gold = torch.randn(50, 12, generator=draw) * 0.1, torch.randint(0, 50, (200,), generator=draw)
    features = dense_features(words, gold)
    section = SolverSection(kind="adam", lr=1e-3, epochs=3, seed=4)
    found = train_adam(features, features.select(torch.zeros(200).bool()), 3, section=section, transform=identity)

    head = torch.nn.Parameter(initial_rows(3, 12, 4))
    optimiser = torch.optim.Adam([head], lr=1e-3)
    order = torch.Generator().manual_seed(4)
    labels = torch.where(features.toolken >= 0, features.toolken + 50, gold)
    for _ in range(3):
        for example in torch.randperm(25, generator=order).tolist():
            at = features.example == example
            logits = torch.cat([features.hidden[at] @ words.T, features.hidden[at] @ head.T], dim=1)
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(logits, labels[at]).backward()
            optimiser.step()
    assert torch.allclose(found.weight, head.detach(), atol=2e-5)
    assert not found.bias.any() and not found.convex


def test_the_best_validation_epoch_is_kept() -> None:
    features, validation = synthetic_features(seed=1), synthetic_features(seed=2)
    section = SolverSection(kind="adam", lr=3e-2, epochs=6)
    found = train_adam(features, validation, 3, section=section, transform=identity)
    best = max(found.log, key=lambda r: (r["validation/f1"], -r["validation/loss"]))
    again = train_adam(
        features,
        validation,
        3,
        section=section.model_copy(update={"epochs": int(best["epoch"])}),
        transform=identity,
    )
    assert len(found.log) == 6
    assert torch.equal(found.weight, again.weight)
    with pytest.raises(UserError, match="no tool"):
        train_adam(features.select(features.toolken < 0), validation, 3, section=section, transform=identity)
