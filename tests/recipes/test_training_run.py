"""Laws of a whole run, on a tiny base."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.recipes.saved import save_tiny_base, tiny_config
from toolken.config import Config, PromptSection
from toolken.errors import UserError
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.recipes import training_run
from toolken.recipes.preparation import Splits, align_splits, load_context, load_splits
from toolken.recipes.solving import SplitFeatures, extract_all, fit
from toolken.recipes.training_run import train
from toolken.settings.loading import dump_config
from toolken.tools.arithmetic import ARITHMETIC

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_base(tmp_path_factory.mktemp("base"))


def artefact(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (directory / "toolkens").iterdir()}


def test_a_run_leaves_everything_that_a_user_reads(base: Path, tmp_path: Path) -> None:
    run = train(tiny_config(base, tmp_path / "run", sample_questions=["What is 3 + 4?"]))
    names = {path.name for path in run.directory.iterdir()}
    assert {"config.yaml", "metrics.jsonl", "report.html", "toolkens", "plots"} <= names
    assert set(run.metrics) >= {"run_dir", "toolkens", "val", "seconds"}
    assert (run.directory / "report.html").read_text().count("<img") >= 3
    info = json.loads((run.directory / "toolkens" / "toolkens.json").read_text())
    assert [tool["name"] for tool in info["tools"]] == list(ARITHMETIC.names)
    assert info["data"]["sha256"] and info["prompt"]["hash"] and info["base_fingerprint"]


@pytest.mark.parametrize("kind", ["convex", "adam"])
def test_law_2_training_leaves_the_base_bit_identical(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    files = {path.name: path.read_bytes() for path in base.iterdir()}
    loaded = BaseLM.load(str(base), dtype="float32")
    before = {name: value.clone() for name, value in loaded.model.state_dict().items()}
    monkeypatch.setattr(training_run, "load_base", lambda *_, **__: loaded)
    train(tiny_config(base, tmp_path / "run", solver__kind=kind, solver__epochs=1, sample_questions=["3 + 4?"]))
    after = loaded.model.state_dict()
    assert before.keys() == after.keys() and all(value.equal(after[name]) for name, value in before.items())
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())
    assert {path.name: path.read_bytes() for path in base.iterdir()} == files


def test_the_same_settings_give_the_same_bytes_and_a_finished_run_is_not_run_again(base: Path, tmp_path: Path) -> None:
    first = train(tiny_config(base, tmp_path / "a"))
    again = train(tiny_config(base, tmp_path / "b", features__cache=tmp_path / "other cache"))
    assert artefact(first.directory) == artefact(again.directory)
    stamp = (first.directory / "toolkens" / "toolkens.safetensors").stat().st_mtime_ns
    done = train(tiny_config(base, tmp_path / "a"))
    assert done.metrics == first.metrics
    assert (first.directory / "toolkens" / "toolkens.safetensors").stat().st_mtime_ns == stamp


def test_law_10_a_killed_run_ends_with_the_bytes_of_an_undisturbed_one(base: Path, tmp_path: Path) -> None:
    calm = train(tiny_config(base, tmp_path / "calm", features__cache=tmp_path / "cache a"))
    config = tiny_config(base, tmp_path / "killed", features__cache=tmp_path / "cache b", features__shard_examples=128)
    file = tmp_path / "config.yaml"
    file.write_text(dump_config(config))
    command = [sys.executable, str(ROOT / "train.py"), "--config", str(file)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shards = tmp_path / "cache b" / "features"
    deadline = time.monotonic() + 120
    while not shards.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    resumed = train(config)
    assert artefact(calm.directory) == artefact(resumed.directory)


def test_law_8_added_tools_leave_the_rows_before_them_as_they_are(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = tmp_path / "few.jsonl"
    first = tiny_config(base, tmp_path / "first")
    tools = tmp_path / "mine.py"
    tools.write_text(
        "from toolken import ToolSet, tool\n\n\n@tool\ndef double(x: float) -> float:\n"
        '    """Twice a number."""\n    return 2 * x\n\n\nTOOLS = ToolSet([double])\n'
    )
    old = train(first)
    lines = [{"question": f"Twice {n}?", "answer": f"It is <double>({n})={2 * n}<eoe>{2 * n}."} for n in range(3, 13)]
    few.write_text("".join(json.dumps(line) + "\n" for line in lines))
    new = train(
        tiny_config(
            base,
            tmp_path / "second",
            tools=f"{tools}:TOOLS",
            init_from=old.directory / "toolkens",
            data__train=[str(few)],
            prompt=PromptSection(),
        )
    )
    before = ToolkenHead.load(old.directory / "toolkens")
    after = ToolkenHead.load(new.directory / "toolkens")
    capsys.readouterr()
    other = train(
        tiny_config(
            base,
            tmp_path / "third",
            tools=f"{tools}:TOOLS",
            init_from=old.directory / "toolkens",
            data__train=[str(few)],
            prompt__template="builtin:one-hop",
        )
    )
    renewed = ToolkenHead.load(other.directory / "toolkens")
    hashes = (renewed.info.prompt.hash[:12], before.info.prompt.hash[:12])
    said = capsys.readouterr().err
    assert hashes[0] != hashes[1] and all(found in said for found in hashes)
    assert torch.equal(renewed.weight[:13], before.weight) and torch.equal(renewed.bias[:13], before.bias)
    assert after.names == (*before.names, "double")
    assert after.info.prompt == before.info.prompt  # no prompt was set: the artefact's own serves
    assert torch.equal(after.weight[:13], before.weight) and torch.equal(after.bias[:13], before.bias)
    assert after.info.tools[13].examples > 0 and bool(after.weight[13].any())


def test_law_13_no_question_of_a_held_out_row_is_trained_on(tmp_path: Path) -> None:
    rows = [{"question": f"What is {n} + 1?", "answer": f"{n}+1=<add>({n},1)={n + 1}<eoe>{n + 1}."} for n in range(30)]
    twins = [{**row, "question": row["question"].replace(" ", "  ")} for row in rows[:10]]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows + twins))
    (tmp_path / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:5]))
    (tmp_path / "test.json").write_text(json.dumps([{"question": row["question"], "answer": 1} for row in rows[5:8]]))
    config = Config.model_validate(
        {
            "data": {
                "root": tmp_path,
                "train": ["train.jsonl"],
                "validation": ["val.jsonl"],
                "exclude": ["test.json"],
            }
        }
    )
    splits = load_splits(config.data, ["add"])
    trained = {"".join(row.question.split()) for row in splits.train}
    held_out = {"".join(row["question"].split()) for row in rows[:8]}
    assert trained and not trained & held_out
    assert len(splits.left_out) == 16  # eight questions, each of them twice
    assert len(splits.validation) == 5


def test_law_13_a_negative_whose_text_is_held_out_is_dropped(tmp_path: Path) -> None:
    call = {"question": "What is 1 + 1?", "answer": "1+1=<add>(1,1)=2<eoe>2."}
    held_out = [{"question": "Who is Ada?", "answer": "A person."}, {"text": "It rains  today."}]
    other = [{"question": "Who is Alan?", "answer": "A person."}, {"text": "It snows today."}]
    for name, rows in {"train": [call], "val": held_out, "calm": held_out + other}.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    sources = {"train": ["train.jsonl"], "validation": ["val.jsonl"], "negatives": ["calm.jsonl"]}
    splits = load_splits(Config.model_validate({"data": {"root": tmp_path, **sources}}).data, ["add"])
    assert [row.question or row.answer for row in splits.negatives] == ["Who is Alan?", "It snows today."]
    assert len(splits.left_out) == 2


@pytest.mark.parametrize("kind", ["convex", "adam"])
def test_law_13_each_choice_reads_the_rows_that_it_may_read(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    seen: dict[str, object] = {}

    def spy(name: str, place: str | int) -> None:
        function = getattr(training_run, name)

        def call(*args: object, **kwargs: object) -> object:
            seen[name] = args[place] if isinstance(place, int) else kwargs[place]
            found = function(*args, **kwargs)
            seen[f"{name} returned"] = found
            return found

        monkeypatch.setattr(training_run, name, call)

    spy("load_splits", 0)
    spy("load_context", "examples")
    spy("extract_all", 0)
    spy("calibrate_head", 1)
    spy("measure_shift", 1)
    run = train(tiny_config(base, tmp_path / "run", solver__kind=kind, solver__epochs=2))
    splits, features = seen["load_splits returned"], seen["extract_all returned"]
    assert isinstance(splits, Splits) and isinstance(features, SplitFeatures)
    assert seen["load_context"] is splits.train
    assert seen["calibrate_head"] is features.validation
    assert seen["measure_shift"] is splits.validation
    shown = "".join(tool.demonstrations for tool in ToolkenHead.load(run.directory / "toolkens").info.tools)
    assert any(row.question in shown for row in splits.train)
    assert splits.validation and not any(row.question in shown for row in splits.validation)


def test_law_13_the_solution_does_not_depend_on_validation_rows(base: Path, tmp_path: Path) -> None:
    config = tiny_config(base, tmp_path / "run", solver__l2="auto", solver__folds=2)
    loaded = BaseLM.load(str(base), dtype="float32")
    splits = load_splits(config.data, ARITHMETIC.names)
    context = load_context(config, base=loaded, tools=ARITHMETIC, examples=splits.train)
    features = extract_all(
        loaded,
        align_splits(splits, context.prompt, base=loaded, tools=ARITHMETIC.names, section=config.data),
        section=config.features,
    )
    wrong = replace(features.validation, toolken=features.validation.toolken.roll(1))
    first, second = (
        fit(each, base=loaded, tools=ARITHMETIC, section=config.solver)
        for each in (features, features._replace(validation=wrong))
    )
    assert first.weight.equal(second.weight) and first.bias.equal(second.bias) and first.l2 == second.l2


def test_law_13_official_splits_do_not_overlap(data_root: Path) -> None:
    config = Config.model_validate(
        {
            "data": {
                "root": data_root,
                "train": ["funcqa/training_data/*.jsonl"],
                "validation": ["funcqa/train.json[611:650]"],
                "on_bad_row": "skip",
            }
        }
    )
    splits = load_splits(config.data, ARITHMETIC.names)
    trained = {"".join(row.question.split()) for row in splits.train}
    for name in ("funcqa_val", "funcqa_oh", "funcqa_mh"):
        rows = json.loads((data_root / "funcqa" / f"{name}.json").read_text())
        assert not trained & {"".join(row["question"].split()) for row in rows}
    assert len(splits.validation) == 39


def test_a_tool_without_examples_is_masked_with_a_warning_or_refused(base: Path, tmp_path: Path) -> None:
    data = tmp_path / "add.jsonl"
    rows = [{"question": f"{n} + 1?", "answer": f"It is <add>({n},1)={n + 1}<eoe>{n + 1}."} for n in range(11, 23)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = train(tiny_config(base, tmp_path / "run", data__train=[str(data)]))
    head = ToolkenHead.load(run.directory / "toolkens")
    assert head.trained.tolist() == [True] + [False] * 12
    assert "masked in decoding" in (run.directory / "report.html").read_text()
    config = tiny_config(base, tmp_path / "strict", data__train=[str(data)], data__require_examples=True)
    with pytest.raises(UserError, match="no row calls <subtract>"):
        train(config)


def test_adam_runs_through_the_same_recipe(base: Path, tmp_path: Path) -> None:
    run = train(tiny_config(base, tmp_path / "run", solver__kind="adam", solver__epochs=2))
    info = ToolkenHead.load(run.directory / "toolkens").info
    assert info.training["solver"] == "adam" and info.training["convex"] is False
