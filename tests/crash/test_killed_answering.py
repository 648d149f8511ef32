"""Law 10 for answers and scores: killed at any moment, the same command ends with what an undisturbed one writes."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.crash.conftest import small_config, train_command
from tests.crash.processes import Job, Phase, Starter, Storm, descendants, ended, gone, said
from toolken.recipes.training_run import train

KILLS = 20
QUESTIONS = 16


@pytest.fixture(scope="module")
def toolkens(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return rows that call tools for every question: whatever the base writes, the bias is above it."""
    return train(small_config(base, tmp_path_factory.mktemp("trained"))).directory / "toolkens"


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("questions") / "questions.jsonl"
    rows = [{"id": n, "question": f"What is {n} + {n * n}?", "answer": str(n + n * n)} for n in range(QUESTIONS)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def infer_command(toolkens: Path, questions: Path, output: Path) -> list[str]:
    limits = ["--inference.max-new-tokens", "16", "--inference.batch-size", "4", "--inference.bias", "6"]
    limits += ["--inference.max-calls", "2"]
    return ["infer", "--toolkens", str(toolkens), "--input", str(questions), "--output", str(output), *limits]


def part_begun(job: Job) -> bool:
    """Whether the first answers are there."""
    return any(path.stat().st_size for path in job.log.parent.glob("*.part"))


def timeless(output: Path) -> list[dict[str, Any]]:
    """Return the lines without the one thing that differs from run to run: seconds."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in output.read_text(encoding="utf-8").split("\n")[:-1]]
    for line in lines:
        del line["usage"]["seconds"]
    return lines


def test_law_10_answers_killed_at_twenty_random_moments_are_those_of_an_undisturbed_run(
    start: Starter, toolkens: Path, questions: Path, tmp_path: Path
) -> None:
    calm = tmp_path / "calm"
    calm.mkdir()
    phase = Phase(part_begun, ended)
    job = start(infer_command(toolkens, questions, calm / "answers.jsonl"), calm / "log")
    seconds = phase.seconds(job)
    assert job.end() == 0, job.said
    wanted = timeless(calm / "answers.jsonl")
    assert len(wanted) == QUESTIONS and sum(len(line["calls"]) for line in wanted) > QUESTIONS / 2
    workers: set[int] = set()

    def begin(folder: Path) -> Job:
        return start(infer_command(toolkens, questions, folder / "answers.jsonl"), folder / "log")

    def begun(job: Job) -> bool:
        there = part_begun(job)
        if there:
            workers.update(descendants(job.pid))
        return there

    def look(folder: Path) -> None:
        for part in folder.glob("*.part"):
            whole, _, _ = part.read_text(encoding="utf-8").rpartition("\n")
            for line, other in zip(whole.split("\n") if whole else [], wanted, strict=False):
                assert json.loads(line)["text"] == other["text"]
        if (folder / "answers.jsonl").exists():
            assert timeless(folder / "answers.jsonl") == wanted

    storm = Storm(begin, Phase(begun, ended), seconds / 4, look)
    for folder in storm.rage(tmp_path, KILLS):
        assert timeless(folder / "answers.jsonl") == wanted
        assert {path.name for path in folder.iterdir()} <= {"answers.jsonl", "log", "log.out"}
    assert workers and gone(workers), "processes of tools outlive the command that started them"


def test_law_10_scores_killed_at_twenty_random_moments_are_those_of_an_undisturbed_run(
    start: Starter, questions: Path, tmp_path: Path
) -> None:
    answers = tmp_path / "answers.jsonl"
    rows = [{"id": n, "answer": str(n + n * n + n % 2), "calls": []} for n in range(QUESTIONS)]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    calm = tmp_path / "calm"
    calm.mkdir()

    def begin(folder: Path) -> Job:
        score = ["--answers", str(answers), "--gold", str(questions), "--output", str(folder / "score.json")]
        return start(["eval", *score], folder / "log")

    job = begin(calm)
    phase = Phase(lambda job: True, ended)
    seconds = phase.seconds(job)
    assert job.end() == 0, job.said
    assert json.loads(job.result) == json.loads((calm / "score.json").read_bytes())
    assert_same_output(Storm(begin, phase, seconds, no_look), tmp_path, "score.json")


def test_law_10_cross_validation_killed_at_twenty_random_moments_ends_with_the_same_numbers(
    start: Starter, base: Path, tmp_path: Path
) -> None:
    calm = tmp_path / "calm"
    calm.mkdir()
    train_command(base, tmp_path)

    def begin(folder: Path) -> Job:
        methods = ["--folds", "2", "--methods", "convex:1e-3", "adam:1e-2", "--solver.epochs", "1"]
        places = ["--features.cache", str(folder / "cache"), "--output", str(folder / "folds.json")]
        return start(["eval", "--config", str(tmp_path / "config.yaml"), *methods, *places], folder / "log")

    job = begin(calm)
    phase = Phase(said("convex:1e-3: 2 folds"), ended)
    seconds = phase.seconds(job)
    assert job.end() == 0, job.said
    assert len(json.loads((calm / "folds.json").read_bytes())["methods"]) == 2
    assert_same_output(Storm(begin, phase, seconds, no_look), tmp_path, "folds.json")


def no_look(folder: Path) -> None:
    """Look at nothing between kills but that an output is absent or whole."""
    for file in folder.glob("*.json"):
        json.loads(file.read_bytes())


def assert_same_output(storm: Storm, folder: Path, name: str) -> None:
    for each in storm.rage(folder, KILLS):
        assert (each / name).read_bytes() == (folder / "calm" / name).read_bytes()


def test_a_tool_at_work_ends_soon_after_the_command_that_is_killed(forked: Starter, base: Path, tmp_path: Path) -> None:
    tools = tmp_path / "slow.py"
    tools.write_text(
        "import time\n\nfrom toolken import ToolSet, tool\n\n\n@tool\ndef double(x: float) -> float:\n"
        '    """Twice a number, after a while."""\n    time.sleep(2)\n    return 2 * x\n\n\nTOOLS = ToolSet([double])\n'
    )
    data = tmp_path / "data.jsonl"
    lines = [{"question": f"Twice {n}?", "answer": f"It is <double>({n})={2 * n}<eoe>{2 * n}."} for n in range(9)]
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    own = f"{tools}:TOOLS"
    toolkens = train(small_config(base, tmp_path, tools=own, data__train=[str(data)])).directory / "toolkens"
    command = ["infer", "--toolkens", str(toolkens), "--tools", own, "--question", "Twice 7?", "--inference.bias", "9"]
    for number, status in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130), (signal.SIGTERM, 143)):
        job = forked(command, tmp_path / "log")
        assert job.until(lambda job: bool(descendants(job.pid))), job.said
        workers = descendants(job.pid)
        assert job.end(number) == status, job.said
        assert gone(workers)
