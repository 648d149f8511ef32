"""Priors of rows: the mean of the head rows of a tool's words."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.recipes.saved import save_tiny_base, tiny_config
from toolken.config import BaseSection, SolverSection
from toolken.data.encode import encode_piece
from toolken.errors import UserError
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.recipes.preparation import load_base
from toolken.recipes.solving import prior_rows
from toolken.recipes.training_run import train
from toolken.tools.arithmetic import ARITHMETIC
from toolken.tools.tool import tool
from toolken.tools.toolset import ToolSet


@tool
def square_root(x: float) -> float:
    """The root of a number."""
    return x**0.5


@tool
def silent(x: float) -> float:
    return x


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def base(folder: Path) -> BaseLM:
    return load_base(BaseSection(name=str(folder), dtype="float32"))


def section(prior: str, scale: float = 1.0) -> SolverSection:
    return SolverSection.model_validate({"prior": prior, "prior_scale": scale})


@pytest.mark.parametrize(("prior", "text"), [("name", "square root"), ("description", "The root of a number.")])
def test_a_row_scores_by_the_mean_logit_of_its_words(base: BaseLM, prior: str, text: str) -> None:
    rows = prior_rows(base, ToolSet([square_root]), section(prior, 3.0))
    ids = encode_piece(base.tokenizer, f" {text}")
    hidden = torch.randn(5, base.hidden_size, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(hidden @ rows[0], 3.0 * (hidden @ base.head_rows(ids).T).mean(dim=1))


def test_without_a_prior_rows_are_pulled_to_zero(base: BaseLM) -> None:
    assert not prior_rows(base, ToolSet([square_root]), section("zero", 3.0)).any()


def test_a_tool_without_a_description_has_no_such_prior(base: BaseLM) -> None:
    tools = ToolSet([square_root, silent])
    with pytest.raises(UserError, match=r"solver\.prior: <silent> has no description"):
        prior_rows(base, tools, section("description"))
    assert len(prior_rows(base, tools, section("name"))) == 2


def test_under_a_strong_prior_aligned_rows_are_the_rows_of_the_words(
    folder: Path, base: BaseLM, tmp_path: Path
) -> None:
    solver = {"l2": 1e4, "prior": "description", "prior_scale": 2.0}
    run = train(tiny_config(folder, tmp_path / "out", solver=solver, align={"method": "moments"}))
    head = ToolkenHead.load(run.directory / "toolkens", base=base)
    expected = prior_rows(base, ARITHMETIC, section("description", 2.0))
    torch.testing.assert_close(head.weight, expected, atol=1e-3, rtol=1e-3)
    assert (head.info.training["prior"], head.info.training["prior_scale"]) == ("description", 2.0)
