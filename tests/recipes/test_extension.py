"""Tools that are added to an artefact learn from the cached rows of the tools that are there."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.recipes.saved import save_tiny_base, tiny_config
from toolken.config import Config, PromptSection
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.recipes.extension import join, old_features
from toolken.recipes.preparation import Splits, align_splits, load_splits
from toolken.recipes.solving import extract_all
from toolken.recipes.training_run import Run, train

TOOL = '''from toolken import ToolSet, tool


@tool
def double(x: float) -> float:
    """Twice a number."""
    return 2 * x


TOOLS = ToolSet([double])
'''


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def first(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tiny_config(base, tmp_path_factory.mktemp("first") / "run"))


def adding(base: Path, folder: Path, artefact: Path) -> Config:
    (folder / "mine.py").write_text(TOOL)
    rows = [{"question": f"Twice {n}?", "answer": f"It is <double>({n})={2 * n}<eoe>{2 * n}."} for n in range(3, 13)]
    (folder / "few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tiny_config(
        base,
        folder / "run",
        tools=f"{folder / 'mine.py'}:TOOLS",
        init_from=artefact,
        data__train=[str(folder / "few.jsonl")],
        prompt=PromptSection(),
    )


def test_old_rows_are_negatives_with_their_own_gold(base: Path, first: Run) -> None:
    artefact = first.directory / "toolkens"
    loaded = BaseLM.load(str(base), dtype="float32")
    old = ToolkenHead.load(artefact, base=loaded)
    config = tiny_config(base, first.directory)
    splits = load_splits(config.data, old.names)
    prompt = old.info.prompt.prompt()
    rows = align_splits(splits, prompt, base=loaded, tools=old.names, section=config.data)
    expected = extract_all(loaded, rows, section=config.features).train
    none = Splits([], [], [], [])
    found = old_features(artefact, old, base=loaded, prompt=prompt, splits=none)
    assert torch.equal(found.hidden, expected.hidden) and torch.equal(found.toolken, expected.toolken)
    held_out = Splits([], [splits.train[0]], [], [])
    fewer = old_features(artefact, old, base=loaded, prompt=prompt, splits=held_out)
    same = sum(row.question == splits.train[0].question for row in splits.train)
    assert len(found.example.unique()) - len(fewer.example.unique()) == same > 0
    assert not len(old_features(artefact, old, base=loaded, prompt=prompt, splits=splits)), "they are there already"
    both = join(found, fewer)
    assert len(both.example.unique()) == len(found.example.unique()) + len(fewer.example.unique())


@pytest.mark.parametrize("fault", ["none", "prompt", "settings", "data", "cache"])
def test_what_does_not_fit_or_is_not_cached_is_named_and_not_used(
    base: Path, first: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(first.directory, run)
    loaded = BaseLM.load(str(base), dtype="float32")
    old = ToolkenHead.load(run / "toolkens", base=loaded)
    prompt = old.info.prompt.prompt()
    settings = (run / "config.yaml").read_text()
    if fault == "prompt":
        prompt = replace(prompt, before="Other: ")
    elif fault == "settings":
        (run / "config.yaml").unlink()
    elif fault == "data":
        (run / "config.yaml").write_text(settings.replace("per_tool: 3", "per_tool: 2"))
    elif fault == "cache":
        (run / "config.yaml").write_text(settings.replace("cache: null", f"cache: {tmp_path / 'empty'}"))
    capsys.readouterr()
    found = old_features(run / "toolkens", old, base=loaded, prompt=prompt, splits=Splits([], [], [], []))
    said = capsys.readouterr().err
    assert (len(found) > 0) == (fault == "none")
    assert ("negatives: " in said) == (fault == "none") and ("are no negatives here" in said) == (fault != "none")


def test_a_run_that_adds_a_tool_uses_them(
    base: Path, first: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = ToolkenHead.load(first.directory / "toolkens")
    after = train(adding(base, tmp_path, first.directory / "toolkens"))
    assert "negatives: " in capsys.readouterr().err
    head = ToolkenHead.load(after.directory / "toolkens")
    assert torch.equal(head.weight[:13], before.weight) and torch.equal(head.bias[:13], before.bias)
    assert bool(head.weight[13].any())
    shutil.copytree(first.directory / "toolkens", tmp_path / "alone")
    alone = adding(base, tmp_path, tmp_path / "alone").model_copy(update={"out": tmp_path / "other"})
    assert "are no negatives here" in (train(alone) and capsys.readouterr().err)
    other = ToolkenHead.load(tmp_path / "other" / "toolkens")
    assert not torch.equal(other.weight[13], head.weight[13])
