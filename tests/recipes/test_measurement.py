"""What a run warns of, and which rows of an artefact act when tools are added."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.inference.heads import head_of
from tests.tiny import tiny_base
from toolken.config import Config
from toolken.metrics import Rate
from toolken.recipes.measurement import warnings_of
from toolken.recipes.preparation import load_splits
from toolken.recipes.solving import frozen_rows
from toolken.tools.arithmetic import ARITHMETIC
from toolken.training.solver import Solution

GRID = [1e-2, 1e-3, 1e-4]


def solution(l2: float, losses: list[float]) -> Solution:
    tried = [{"l2": strength, "loss": loss} for strength, loss in zip(GRID, losses, strict=False)]
    zero = torch.zeros(1, 4)
    return Solution(zero, zero[0], torch.ones(1).bool(), 1.0, 0.0, None, 1, l2, True, True, [], tried)


@pytest.mark.parametrize(
    ("l2", "losses", "warned"),
    [
        (1e-2, [0.8, 0.9, 1.0], True),
        (1e-4, [1.0, 0.9, 0.8], True),
        (1e-3, [1.0, 0.8, 0.9], False),
        (1e-4, [0.80002, 0.80001, 0.8], False),
    ],
)
def test_a_best_strength_at_an_end_is_worth_a_warning_unless_the_curve_is_flat(
    l2: float, losses: list[float], warned: bool
) -> None:
    head = head_of(tiny_base("llama"), [ARITHMETIC["add"]])
    found = warnings_of(head, solution(l2, losses), None, plain=Rate(0, 100), grid=GRID)
    assert any("l2_grid" in line for line in found) is warned


@pytest.mark.parametrize(("hits", "warned"), [(0, False), (5, False), (6, True)])
def test_many_false_calls_on_plain_text_are_worth_a_warning(hits: int, warned: bool) -> None:
    head = head_of(tiny_base("llama"), [ARITHMETIC["add"]])
    found = warnings_of(head, solution(1e-3, [1.0, 0.8, 0.9]), None, plain=Rate(hits, 1000), grid=GRID)
    assert any("data.negatives" in line for line in found) is warned


def test_a_masked_row_of_an_artefact_does_not_act_on_the_rows_that_are_added() -> None:
    base = tiny_base("llama")
    trained = head_of(base, [ARITHMETIC["add"]])
    masked = head_of(base, [ARITHMETIC["gcd"]], trained=False)
    frozen = frozen_rows(masked.merge(trained))
    assert frozen is not None and frozen.rows.tolist() == [1] and len(frozen.weight) == 1


def test_negatives_and_unseen_text_are_other_texts_than_those_trained_on(tmp_path: Path) -> None:
    document = {"data": {"root": tmp_path, "generate": {"per_tool": 1, "plain": 60}}}
    splits = load_splits(Config.model_validate(document).data, ARITHMETIC.names)
    plain = {(row.question, row.answer) for row in splits.train if not row.calls}
    negatives, unseen = ({(row.question, row.answer) for row in rows} for rows in (splits.negatives, splits.unseen))
    assert plain and negatives and unseen
    assert not unseen & (plain | negatives) and len(negatives - plain) > len(negatives) / 2
