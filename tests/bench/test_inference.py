"""`bench infer` on a tiny base: every key, finite numbers, and a bar that does not depend on the machine."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.inference.heads import random_head
from tests.recipes.saved import save_tiny_base, tiny_config
from toolken.bench import inference
from toolken.bench.inference import OFFICIAL, QUICK_QUESTIONS, bench_infer, load_questions
from toolken.config import Config
from toolken.data.values import read_value
from toolken.recipes.preparation import load_base
from toolken.tools.arithmetic import ARITHMETIC

KEYS = {
    "speedup_vs_reference",
    "fed_ratio",
    "correct",
    "reference_correct",
    "n",
    "quick",
    "reference_rows_timed",
    "fed_tokens",
    "trie_nodes",
    "reference_fed_tokens",
    "seconds",
    "reference_seconds",
    "accuracy",
    "reference_accuracy",
    "threads",
    "dtype",
}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    folder = tmp_path_factory.mktemp("bench")
    base = save_tiny_base(folder / "base")
    return tiny_config(
        base,
        folder / "unused",
        data__root=folder,
        data__negatives=[],
        features__cache=folder / "cache",
        inference__max_argument_tokens=12,
        inference__max_calls=2,
    )


def numbers(value: object) -> list[float]:
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers(item)]
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [float(value)] if isinstance(value, (int, float)) else []


def check(record: dict[str, Any]) -> None:
    assert set(record) >= KEYS
    assert all(math.isfinite(number) for number in numbers(json.loads(json.dumps(record))))
    assert record["speedup_vs_reference"] > 0
    assert 1 <= record["fed_ratio"] <= 1.1, "tokens are fed that were fed before"


def test_a_quick_run_has_every_key_and_feeds_hardly_a_token_twice(config: Config) -> None:
    record = bench_infer(config, quick=True)
    check(record)
    assert record["quick"] is True and record["questions"] == "generated"
    assert record["n"] == record["rows"] == record["reference_rows_timed"] == QUICK_QUESTIONS
    assert record["calls"] > 0 and record["reference_fed_tokens"] > record["fed_tokens"]
    assert not (config.out or Path()).exists()


def test_rows_of_an_artefact_and_questions_of_the_official_file_are_taken_where_they_are(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = load_base(config.base)
    head = random_head(base, list(ARITHMETIC), bias=3.0)
    head.save(tmp_path / "toolkens")
    official = tmp_path / OFFICIAL
    official.parent.mkdir()
    official.write_text(json.dumps([{"question": f"What is {n} + 1?", "answer": n + 1} for n in range(12)]))
    monkeypatch.setattr(inference, "REFERENCE_SECONDS", 0.0)
    data = config.data.model_copy(update={"root": tmp_path})
    record = bench_infer(config.model_copy(update={"init_from": tmp_path / "toolkens", "data": data}))
    check(record)
    assert record["questions"] == OFFICIAL and record["rows"] == 12
    assert record["n"] == record["reference_rows_timed"] == 1, "the reference stops when its time is up"
    assert record["calls"] > 0 and record["reference_calls"] > 0
    assert len(record["seconds"]) == 2


def test_without_official_questions_our_own_are_asked_with_their_answers(config: Config) -> None:
    questions, source = load_questions(config, ARITHMETIC, quick=False)
    assert source == "generated" and len(questions) == 4 * len(ARITHMETIC)
    assert all(question.answer and read_value(question.answer) is not None for question in questions)
    assert len({question.id for question in questions}) == len(questions)
