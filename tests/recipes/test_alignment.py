"""Training runs whose rows are aligned with the context of use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.recipes.saved import save_tiny_base, tiny_config
from toolken.data.example import Example
from toolken.errors import UserError
from toolken.model.artefact import read_info
from toolken.recipes.alignment import check_alignment, questions_of_use
from toolken.recipes.benchmark_heads import published_config
from toolken.recipes.folds_run import cross_validate
from toolken.recipes.training_run import train


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_base(tmp_path_factory.mktemp("base"))


@pytest.mark.parametrize("positions", ["question", "decoding"])
def test_a_run_aligns_its_rows_and_says_so(base: Path, tmp_path: Path, positions: str) -> None:
    align = {"method": "moments", "positions": positions}
    plain = train(tiny_config(base, tmp_path / "plain"))
    run = train(tiny_config(base, tmp_path / "aligned", align=align))
    record = read_info(run.directory / "toolkens").training["align"]
    assert isinstance(record, dict) and record["method"] == "moments" and record["positions"] == positions
    assert int(str(record["use"])) >= 2
    assert read_info(plain.directory / "toolkens").training["align"] is None
    rows = [(folder / "toolkens" / "toolkens.safetensors").read_bytes() for folder in (plain.directory, run.directory)]
    assert rows[0] != rows[1]
    again = train(tiny_config(base, tmp_path / "again", align=align))
    assert (again.directory / "toolkens" / "toolkens.safetensors").read_bytes() == rows[1]


def test_answers_of_the_questions_of_use_are_not_read(base: Path, tmp_path: Path) -> None:
    def weights(answer: str) -> bytes:
        questions = tmp_path / f"{answer}.jsonl"
        lines = [json.dumps({"question": f"What is {n} and 3?", "answer": answer}) for n in range(6)]
        questions.write_text("\n".join(lines) + "\n")
        align = {"method": "moments", "questions": [str(questions)]}
        run = train(tiny_config(base, tmp_path / f"run-{answer}", align=align))
        return (run.directory / "toolkens" / "toolkens.safetensors").read_bytes()

    assert weights("12") == weights("999")


def test_questions_are_spread_evenly_and_each_is_taken_once(base: Path, tmp_path: Path) -> None:
    rows = [Example(f"question {n % 20}", "an answer", origin="here") for n in range(40)]
    config = tiny_config(base, tmp_path / "out", align={"method": "mean", "limit": 5})
    assert questions_of_use(config, rows) == [f"question {n}" for n in (0, 4, 8, 12, 16)]
    with pytest.raises(UserError, match=r"align\.questions: there is no question"):
        questions_of_use(config, [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"solver__kind": "adam"}, "align.method: only the convex solver aligns rows; set align.method to none"),
        ({"init_from": "toolkens"}, "align.method: rows beside those of an artefact are not aligned"),
    ],
)
def test_what_cannot_be_aligned_is_refused_at_once(
    base: Path, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError) as error:
        train(tiny_config(base, tmp_path / "out", align={"method": "moments"}, **changes))
    assert str(error.value).startswith(message)
    assert not (tmp_path / "out").exists()


def test_cross_validation_refuses_what_it_would_leave_out(base: Path, tmp_path: Path) -> None:
    config = tiny_config(base, tmp_path / "out", align={"method": "moments"})
    with pytest.raises(UserError, match=r"align\.method: cross-validation does not align rows"):
        cross_validate(config, ["convex"], 2)


def test_the_published_recipe_is_neither_aligned_nor_spared_the_words(base: Path, tmp_path: Path) -> None:
    solver = {"positions": "toolken", "softmax": "toolkens"}
    config = tiny_config(base, tmp_path / "out", align={"method": "moments"}, solver=solver)
    published = published_config(config, tmp_path / "adam", seed=1)
    check_alignment(published)
    assert published.align.method == "none"
    assert (published.solver.softmax, published.solver.positions) == ("all", "toolken")
