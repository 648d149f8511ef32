"""`eval --methods`: a benchmark's questions answered by several methods, each answer marked and kept as it comes.

Invariant: the answers are in `records.jsonl`, how each method is run in `evaluation.json`. Questions that a method has
answered are never asked again, so a killed run goes on where it was and ends with the same records; who shares a batch
changes no answer. Heads are training runs of their own in `heads/`. Test questions are answered and reported, nothing
is chosen by them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tqdm import tqdm

from toolken.config import Config
from toolken.data.rows import data_root
from toolken.errors import UserError
from toolken.evaluation.benchmarks.benchmark import Benchmark, Item
from toolken.evaluation.benchmarks.catalogue import load_benchmark
from toolken.evaluation.comparison.evaluations import FACTS, load_evaluation
from toolken.evaluation.comparison.report import write_comparison
from toolken.evaluation.methods.catalogue import Chosen, choose_method
from toolken.evaluation.methods.method import Setting
from toolken.evaluation.records import RECORDS, RecordFile, record_of
from toolken.files import write_json
from toolken.model.head import ToolkenHead
from toolken.recipes.benchmark_heads import train_rows
from toolken.recipes.cell_tracking import accuracy, track_cell
from toolken.recipes.preparation import load_base, load_splits, load_tool_set
from toolken.run_directory import EVALUATION_IGNORES, RunDirectory, default_directory, stored_record


class Asked(NamedTuple):
    """What is asked: a benchmark and its items, out of `of` in the split."""

    benchmark: Benchmark
    items: list[Item]
    of: int


def evaluate_benchmark(
    config: Config, methods: Sequence[str], *, toolkens: Path | None = None, command: str = ""
) -> dict[str, object]:
    """Answer a benchmark's questions with every method; records, facts and reports stay in the folder.

    Args:
        config: Settings; `evaluation.benchmark` names the benchmark, `out` the folder.
        methods: `base`, `toolken`, `toolken-adam:1`, ...
        toolkens: Artefact for the method `toolken`; trained as the settings say if None.
        command: How this was asked for, kept with the facts.

    Returns:
        The folder, and the accuracy of every method with n and interval.

    Raises:
        UserError: Settings, data, base, artefact or a name is at fault, or the folder belongs to another evaluation.
    """
    chosen = [choose_method(spec) for spec in dict.fromkeys(methods)]
    asked = load_questions(config)
    named = config.model_copy(update={"name": f"eval-{config.name}"})
    config = config.model_copy(update={"out": config.out or default_directory(named, ignored=EVALUATION_IGNORES)})
    with RunDirectory(config, ignored=EVALUATION_IGNORES) as run:
        rows = {one.spec: train_rows(config, one, run.path, toolkens=toolkens) for one in chosen}
        setting = open_setting(config, asked.benchmark)
        with RecordFile(run.path / RECORDS) as records:
            facts = _facts(asked, setting, stored_record(run.path / FACTS))
            for one in chosen:
                artefact = rows[one.spec]
                head = ToolkenHead.load(artefact, base=setting.base) if artefact is not None else None
                begin(one, head, facts=facts, command=command)
                write_json(run.path / FACTS, facts)
                answer_all(one, asked, replace(setting, head=head), records=records, facts=facts)
                write_json(run.path / FACTS, facts)
                answered = [record for record in records.records if record.method == one.spec]
                track_cell(config, one.spec, answered, folder=run.path)
            page = write_comparison([load_evaluation(run.path)], run.path)
            print(f"report: {page}", file=sys.stderr)
            return {
                "out": str(run.path),
                "benchmark": asked.benchmark.name,
                "methods": {one.spec: accuracy(records.records, one.spec).as_dict() for one in chosen},
            }


def load_questions(config: Config) -> Asked:
    """Return the questions that the settings ask for: all of a split, or a slice of it that the seed fixes.

    Raises:
        UserError: No benchmark is named, none has that name, or its files are missing or malformed.
    """
    section = config.evaluation
    if section.benchmark is None:
        raise UserError("evaluation.benchmark", "is unset", "name one, or take a config that does: configs/funcqa.yaml")
    benchmark = load_benchmark(section.benchmark)
    items = benchmark.items(data_root(config.data.root), section.split)
    if section.limit is None or section.limit >= len(items):
        return Asked(benchmark, items, len(items))
    kept = sorted(Random(section.seed).sample(range(len(items)), section.limit))
    return Asked(benchmark, [items[place] for place in kept], len(items))


def open_setting(config: Config, benchmark: Benchmark) -> Setting:
    """Load what all methods share."""
    root = data_root(config.data.root)
    examples = load_splits(config.data, load_tool_set(config.tools, config.data.root).names).train
    return Setting(config, load_base(config.base), benchmark, benchmark.tools(root), root, examples, None)


def begin(one: Chosen, head: ToolkenHead | None, *, facts: dict[str, Any], command: str) -> None:
    """Note how a method is run, before its first answer; answers of other rows are not gone on with.

    Raises:
        UserError: It was begun with another artefact.
    """
    rows = head.info.weights_sha256 if head is not None else None
    earlier = facts["methods"].get(one.spec)
    if earlier is None:
        training = head.info.training if head is not None else None
        facts["methods"][one.spec] = {"command": command, "seconds": 0.0, "rows": rows, "head": training, "notes": []}
    elif earlier.get("rows") != rows:
        raise UserError(f"--methods {one.spec}", "its answers so far are those of other rows", "give another `--out`")


def answer_all(one: Chosen, asked: Asked, setting: Setting, *, records: RecordFile, facts: dict[str, Any]) -> None:
    """Answer the questions that a method has not answered yet, and add what it took to the facts."""
    done = records.ids(one.spec)
    waiting = [item for item in asked.items if item.id not in done]
    start = time.perf_counter()
    if waiting:
        if done:
            print(f"{one.spec}: {len(done)} of {len(asked.items)} answers are there already", file=sys.stderr)
        try:
            facts["methods"][one.spec]["notes"] = list(_answer(one, asked, setting, waiting, records))
        except KeyboardInterrupt as stop:
            stop.add_note(f"{len(records.ids(one.spec))} of {len(asked.items)} answers of {one.spec} are kept")
            raise
        seconds = facts["methods"][one.spec]["seconds"] + time.perf_counter() - start
        facts["methods"][one.spec]["seconds"] = round(seconds, 1)
    print(f"{one.spec}: {accuracy(records.records, one.spec)}", file=sys.stderr)


def _answer(one: Chosen, asked: Asked, setting: Setting, waiting: Sequence[Item], records: RecordFile) -> Sequence[str]:
    """Ask what is waiting, keep the answers, and return what the engine has to say about itself."""
    questions = [item.question for item in waiting]
    bar = tqdm(total=len(asked.items), initial=len(asked.items) - len(waiting), desc=one.spec, unit="q", disable=None)
    with bar, one.method.open(setting, asked.items) as engine:
        for place, answer in engine.completed(questions):
            item = waiting[place]
            mark = asked.benchmark.mark(item, answer)
            records.append(record_of(asked.benchmark.name, one.spec, item, answer, mark))
            bar.update()
        return engine.notes


def _facts(asked: Asked, setting: Setting, earlier: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what is known before the first answer, and what an earlier process noted about its methods."""
    config = setting.config
    return {
        "name": config.name,
        "benchmark": asked.benchmark.name,
        "base": setting.base.name,
        "base_fingerprint": setting.base.fingerprint,
        "split": config.evaluation.split,
        "items": len(asked.items),
        "of": asked.of,
        "tools": len(setting.tools),
        "per_tool": config.data.per_tool,
        "measures": list(asked.benchmark.measures),
        "methods": dict((earlier or {}).get("methods", {})),
    }
