"""`infer`: from an artefact and questions to answers, one JSON line each.

An output file is written beside its final name and renamed when it is complete. What a killed run has answered is kept
in that part file and not answered again, as long as artefact, base, questions and settings are the same. One process at
a time writes an output.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError
from tqdm import tqdm

from toolken.config import BaseSection, InferenceSection
from toolken.data.questions import Question
from toolken.errors import UserError
from toolken.files import room_for
from toolken.inference.engine import Answer, Engine
from toolken.locks import Lock
from toolken.model.artefact import HeadInfo, read_info
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.recipes.preparation import load_tool_set


class Loaded(NamedTuple):
    """An artefact with its base, ready to answer; `key` changes with anything that answers depend on."""

    engine: Engine
    key: str


def load_engine(toolkens: Path, *, tools: str | None, base: BaseSection, inference: InferenceSection) -> Loaded:
    """Load the base that an artefact was trained on, its rows, and the user's tools.

    Args:
        toolkens: Artefact directory.
        tools: `FILE.py:NAME` or `benchmark:NAME` of tools that are not built in.
        base: Settings that are set here win over those that the artefact recorded.
        inference: Limits and sampling.
    """
    info = read_info(toolkens)
    section = _recorded_base(info, str(toolkens)).model_copy(update=base.model_dump(exclude_unset=True))
    model = BaseLM.load(**section.model_dump())
    head = ToolkenHead.load(toolkens, base=model)
    own = load_tool_set(tools, None) if tools else None
    # Who shares a batch changes no answer: after running out of memory, a smaller one goes on with what is there.
    settings = inference.model_dump(mode="json", exclude={"batch_size"})
    state: list[object] = [info.weights_sha256, info.prompt.hash, model.fingerprint, settings]
    state += [own.hash if own is not None else None]
    key = hashlib.sha256(json.dumps(state).encode()).hexdigest()
    return Loaded(Engine(model, head, tools=own, config=inference), key)


def _recorded_base(info: HeadInfo, where: str) -> BaseSection:
    """Return the settings of the base that an artefact was trained on."""
    recorded = info.training.get("base", {"name": info.base_name})
    try:
        return BaseSection.model_validate(recorded)
    except ValidationError as error:
        problem = f"`training.base` in it is no base: {error.errors()[0]['msg']}"
        raise UserError(where, problem, "copy the artefact again, or train it again") from error


def hold_output(output: Path) -> Lock:
    """Hold an output file in a `with` statement; another process that writes it is refused, or refuses us."""
    return Lock(output.with_name(f".{output.name}.lock"), where=output, fix="name another file with `--output`")


def answer_to_file(loaded: Loaded, questions: Sequence[Question], output: Path) -> dict[str, object]:
    """Answer every question and write one line each, in the order of the questions; return a summary.

    Whoever calls this holds the output (`hold_output`).
    """
    part = part_file(loaded, questions, output)
    output.parent.mkdir(parents=True, exist_ok=True)
    done = _complete_lines(part)
    if done:
        print(f"{output}: {len(done)} of {len(questions)} answers are there already", file=sys.stderr)
    try:
        with room_for(part), part.open("a", encoding="utf-8") as handle, loaded.engine:
            for line in _answers(loaded.engine, questions, start=len(done)):
                handle.write(line + "\n")
                handle.flush()
                done.append(line)
    except KeyboardInterrupt as stop:
        stop.add_note(f"{len(done)} of {len(questions)} answers are kept")
        raise
    part.replace(output)
    return _summary(output, [json.loads(line) for line in done])


def part_file(loaded: Loaded, questions: Sequence[Question], output: Path) -> Path:
    """Return where answers wait until all are there; another artefact, setting or question has another place."""
    lines = [json.dumps([question.id, question.question]) for question in questions]
    key = hashlib.sha256("\n".join([loaded.key, *lines]).encode()).hexdigest()
    return output.with_name(f"{output.name}.{key[:12]}.part")


def _answers(engine: Engine, questions: Sequence[Question], *, start: int) -> Iterator[str]:
    """Yield the lines in the order of the questions, each as soon as those before it are complete."""
    waiting: dict[int, str] = {}
    following = start
    with tqdm(total=len(questions), initial=start, desc="answers", unit="question", disable=None) as bar:
        for place, answer in engine.completed([question.question for question in questions[start:]]):
            number = start + place
            if problem := beyond_context(answer, engine):
                tqdm.write(f"warning: question {questions[number].id!r}: {problem}: not answered", file=sys.stderr)
            waiting[number] = json.dumps(answer.as_dict(questions[number].id), ensure_ascii=False)
            bar.update()
            while following in waiting:
                yield waiting.pop(following)
                following += 1


def beyond_context(answer: Answer, engine: Engine) -> str:
    """Return what is wrong with a question that the base's context cannot hold; empty for any other."""
    if answer.finish_reason != "context" or answer.token_ids:
        return ""
    return (
        f"{answer.usage.prompt_tokens:,} tokens with the prompt, and the base's context has {engine.base.max_length:,}"
    )


def _complete_lines(part: Path) -> list[str]:
    """Return the whole lines of a part file, and cut off one that was being written when the run died."""
    if not part.is_file():
        return []
    content = part.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        with part.open("r+b") as handle:
            handle.truncate(len(whole))
    try:
        return whole.decode("utf-8").split("\n")[:-1]  # not splitlines: JSON texts may hold other line separators
    except UnicodeDecodeError as error:
        raise UserError(str(part), "it is damaged", "delete it and start again") from error


def _summary(output: Path, rows: Sequence[dict[str, Any]]) -> dict[str, object]:
    reasons = Counter(row["finish_reason"] for row in rows)
    statuses = Counter(call["outcome"]["status"] for row in rows for call in row["calls"])
    return {"output": str(output), "n": len(rows), "finish_reasons": dict(reasons), "calls": dict(statuses)}
