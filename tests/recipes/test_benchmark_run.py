"""Methods on a benchmark: the same questions for all, records that survive a kill, settings that may not change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recipes.saved import save_tiny_base, tiny_config
from toolken.config import Config, SolverSection
from toolken.data.prompts import Prompt
from toolken.errors import UserError
from toolken.evaluation.methods.catalogue import METHODS, choose_method
from toolken.evaluation.methods.zero_shot import without_examples
from toolken.evaluation.records import RECORDS, Record, read_records
from toolken.inference.engine import Answer, Engine
from toolken.recipes import benchmark_run
from toolken.recipes.benchmark_heads import rows_config
from toolken.recipes.benchmark_run import FACTS, evaluate_benchmark, load_questions
from toolken.recipes.training_run import train

QUESTIONS = 9
SPECS = ("base", "zero-shot", "react", "icl", "toolken", "toolken-adam:1")
WORKED = "Use <add> and <multiply>.\n\nQ: What is 1 and 2?\nA: <add>(1, 2)=3 in all. So, the answer is 3."


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_base(tmp_path_factory.mktemp("base"))


@pytest.fixture
def config(base: Path, tmp_path: Path) -> Config:
    folder = tmp_path / "data" / "funcqa"
    folder.mkdir(parents=True)
    rows = [
        {"question": f"What is {n} and {n + 1}?", "answer": 2 * n + 1, "func": f"<add>({n}, {n + 1})={2 * n + 1}"}
        for n in range(QUESTIONS)
    ]
    (folder / "funcqa_oh.json").write_text(json.dumps(rows))
    (folder / "react.txt").write_text(f"{WORKED}\n\nQ: [QUESTION]\nA:")
    return tiny_config(
        base,
        tmp_path / "out",
        data__root=tmp_path / "data",
        evaluation__benchmark="funcqa_oh",
        evaluation__react_template="funcqa/react.txt",
        evaluation__icl_tokens=1500,
        evaluation__published={"lr": 1e-2, "epochs": 2, "bias": 1.5},
        inference__max_new_tokens=10,
    )


def untimed(records: list[Record]) -> dict[tuple[str, str | int], object]:
    """What a record says but for the seconds."""
    return {
        (one.method, one.id): (one.text, one.calls, one.verdict, one.cause, one.finish_reason, one.usage["new_tokens"])
        for one in records
    }


def test_every_method_answers_every_question_once(config: Config) -> None:
    result = evaluate_benchmark(config, SPECS, command="toolken eval")
    out = Path(str(result["out"]))
    records = read_records(out / RECORDS)
    assert {(one.method, one.id) for one in records} == {(spec, n) for spec in SPECS for n in range(QUESTIONS)}
    assert len(records) == len(SPECS) * QUESTIONS
    facts = json.loads((out / FACTS).read_text())
    assert (facts["items"], facts["of"], facts["benchmark"], facts["tools"]) == (QUESTIONS, QUESTIONS, "funcqa_oh", 13)
    assert list(facts["methods"]) == list(SPECS)
    assert facts["methods"]["toolken"]["head"]["solver"] == "convex"
    assert facts["methods"]["icl"]["notes"][0].startswith("the prompt describes 13 of 13 tools and has ")
    assert facts["methods"]["toolken-adam:1"]["head"]["solver"] == "adam" and facts["methods"]["base"]["head"] is None
    assert {path.name for path in (out / "heads").iterdir()} == {"toolken", "toolken-adam-1"}
    assert not any(one.calls for one in records if one.method in ("base", "zero-shot"))
    assert {path.name for path in (out / "cells").iterdir()} == {spec.replace(":", "-") for spec in SPECS}
    lines = (out / "cells" / "react" / "metrics.jsonl").read_text().splitlines()
    assert any("eval/accuracy" in line for line in lines)


def test_a_run_that_was_killed_goes_on_and_ends_with_the_same_records(
    config: Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = evaluate_benchmark(config, ("base", "react"))
    stopped = config.model_copy(update={"out": tmp_path / "stopped"})
    completed = Engine.completed

    def dies(engine: Engine, questions: list[str]) -> Iterator[tuple[int, Answer]]:
        for number, found in enumerate(completed(engine, questions)):
            if number == QUESTIONS // 2:
                raise KeyboardInterrupt
            yield found

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "completed", dies)
        with pytest.raises(KeyboardInterrupt) as stop:
            evaluate_benchmark(stopped, ("base", "react"))
    assert stop.value.__notes__ == [f"{QUESTIONS // 2} of {QUESTIONS} answers of base are kept"]
    path = tmp_path / "stopped" / RECORDS
    kept = path.read_bytes()
    path.write_bytes(kept + b'{"benchmark": "funcqa_oh", "met')  # and a power cut in the middle of a line
    evaluate_benchmark(stopped, ("base", "react"))
    assert path.read_bytes().startswith(kept)
    assert untimed(read_records(path)) == untimed(read_records(Path(str(whole["out"])) / RECORDS))


def test_answers_that_are_there_are_not_asked_again(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluate_benchmark(config, ("base",))
    before = (config.out / RECORDS).read_bytes()  # type: ignore[operator]
    monkeypatch.setattr(benchmark_run, "_answer", lambda *_: pytest.fail("a question was asked again"))
    assert evaluate_benchmark(config, ("base",)) == first
    assert (config.out / RECORDS).read_bytes() == before  # type: ignore[operator]


def test_answers_of_other_rows_are_not_gone_on_with(config: Config, tmp_path: Path) -> None:
    evaluate_benchmark(config, ("toolken",))
    other = train(rows_config(config, tmp_path / "other").model_copy(update={"solver": SolverSection(l2=1e-1)}))
    with pytest.raises(UserError, match="--methods toolken: its answers so far are those of other rows"):
        evaluate_benchmark(config, ("toolken",), toolkens=other.directory / "toolkens")


def test_a_slice_is_fixed_by_the_seed(config: Config) -> None:
    def ids(**changes: object) -> list[str | int]:
        section = config.evaluation.model_copy(update=changes)
        return [item.id for item in load_questions(config.model_copy(update={"evaluation": section})).items]

    assert ids(limit=4) == ids(limit=4) == sorted(ids(limit=4), key=int) and len(set(ids(limit=4))) == 4
    assert ids(limit=4) != ids(limit=4, seed=1)
    assert ids(limit=400) == ids() == list(range(QUESTIONS))


def test_another_slice_needs_another_folder(config: Config) -> None:
    evaluate_benchmark(config, ("base",))
    section = config.evaluation.model_copy(update={"limit": 3})
    with pytest.raises(UserError, match=r"evaluation\.limit: null -> 3"):
        evaluate_benchmark(config.model_copy(update={"evaluation": section}), ("base",))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("recat", "--methods: no method recat; did you mean `react`?"),
        ("base:1", "--methods: base takes no seed; write `base`"),
        ("toolken-adam:x", "--methods: `toolken-adam:x` has no number after the colon; write `toolken-adam:1`"),
    ],
)
def test_a_method_that_is_none_is_refused(spec: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        choose_method(spec)
    assert str(error.value).startswith(message)


def test_what_settings_lack_is_named_before_anything_stays(config: Config) -> None:
    section = config.evaluation.model_copy(update={"benchmark": None})
    with pytest.raises(UserError, match=r"evaluation\.benchmark: is unset"):
        evaluate_benchmark(config.model_copy(update={"evaluation": section}), ("base",))
    assert config.out is not None and not config.out.exists()
    section = config.evaluation.model_copy(update={"react_template": None})
    with pytest.raises(UserError, match=r"evaluation\.react_template: is unset, and `react` needs it"):
        evaluate_benchmark(config.model_copy(update={"evaluation": section}), ("react",))


def test_a_prompt_without_examples_keeps_frame_and_instruction() -> None:
    def prompt(before: str, conclusion: str = " So, the answer is [RESULT].") -> Prompt:
        return Prompt(before, "\nA:", False, "answer is", ("\n",), conclusion)

    bare = without_examples(prompt("Q: one\nA: 1\n\nQ: two\nA: 2\n\nQ: "))
    assert bare.before == 'Answer the question step by step. End with "So, the answer is X."\n\nQ: '
    assert without_examples(prompt("Think.\n\nQ: one\nA: 1\n\nQ: ")).before == "Think.\n\nQ: "
    assert without_examples(prompt("Q: ")).before == "Q: "


def test_every_method_is_listed_under_its_name() -> None:
    assert all(name == method.name for name, method in METHODS.items())
