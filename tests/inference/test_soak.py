"""Many questions of all lengths with failing tools: nothing grows, nothing is lost, nothing is left behind."""

from __future__ import annotations

import gc
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.inference.heads import PLAIN, calling_base, random_head
from tests.inference.scripted import look
from tests.inference.unreliable import moody
from toolken.config import InferenceSection
from toolken.inference.engine import Answer, Engine
from toolken.tools.arithmetic import ARITHMETIC
from toolken.tools.toolset import ToolSet

TOOLS = [moody, ARITHMETIC["add"], look]
LIMITS = InferenceSection(
    max_new_tokens=16, max_argument_tokens=12, max_calls=2, batch_size=16, timeout=1.0, max_repeats=1
)
WORDS = "what is the sum of 7 and 12 apples 316 boxes, how many are there in total? 0.5 answer number costs $".split()
GROWTH = 24 * 2**20
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory and processes are read from /proc")


def resident() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def children() -> set[int]:
    """Processes that this one has started and that are still there."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if parent == os.getpid():
            found.add(int(stat.parent.name))
    return found


def mixed_questions(count: int) -> list[str]:
    """Questions of 1 to 400 tokens, some beyond any context, every one twice, in a random order."""
    draw = random.Random(0)
    half = [" ".join(draw.choices(WORDS, k=draw.randint(1, 250)))[: draw.randint(1, 1000)] for _ in range(count // 2)]
    half[::40] = [question * 20 for question in half[::40]]
    questions = half * 2
    draw.shuffle(questions)
    return questions


def outline(answer: Answer) -> tuple[object, ...]:
    return (answer.token_ids, answer.text, answer.calls, answer.finish_reason)


def soak(count: int) -> Counter[str]:
    """Answer so many questions and check the laws; return how the calls ended."""
    base = calling_base("llama", "merge")
    questions = mixed_questions(count)
    head = random_head(base, TOOLS, bias=6.0, seed=1)
    before, descriptors = children(), len(os.listdir("/proc/self/fd"))
    answers: dict[int, Answer] = {}
    sizes: dict[int, int] = {}
    began = time.monotonic()
    with Engine(base, head, tools=ToolSet([moody, look]), config=LIMITS) as engine:
        fed = engine.backend.fed_tokens  # type: ignore[attr-defined]
        for index, answer in engine.completed(questions):
            assert index not in answers
            answers[index] = answer
            if len(answers) in (count // 4, count):
                sizes[len(answers)] = resident()
        fed = engine.backend.fed_tokens - fed  # type: ignore[attr-defined]
        assert not engine.backend._contexts._slots  # type: ignore[attr-defined]
        prefixes = {PLAIN.prefix_ids(base.tokenizer)}
        prefixes |= {shown.prefix_ids(base.tokenizer) for shown in engine.demonstrations.values()}
    assert children() == before, "a worker process is left"
    assert len(os.listdir("/proc/self/fd")) == descriptors, "a descriptor is left"
    growth = sizes[count] - sizes[count // 4]
    assert growth < GROWTH, f"{growth / 2**20:.1f} MB more after {count} questions than after {count // 4}"
    assert sorted(answers) == list(range(count))
    check_accounts(questions, answers)
    assert fed - sum(answer.usage.fed_tokens for answer in answers.values()) == sum(map(len, prefixes))
    statuses = Counter(call.outcome.status for answer in answers.values() for call in answer.calls)
    reasons = Counter(answer.finish_reason for answer in answers.values())
    assert reasons["context"] and reasons["length"]
    tokens = sorted(answer.usage.prompt_tokens for answer in answers.values())
    print(f"{count} questions of {tokens[0]} to {tokens[-1]} tokens in {time.monotonic() - began:.0f} s")
    print(f"{growth / 2**20:+.1f} MB, {dict(statuses)}, {dict(reasons)}")
    return statuses


def check_accounts(questions: list[str], answers: dict[int, Answer]) -> None:
    first: dict[str, Answer] = {}
    for index, question in enumerate(questions):
        answer = answers[index]
        assert answer.question == question
        assert answer.finish_reason in ("eos", "stop", "length", "context")
        assert answer.usage.new_tokens == len(answer.token_ids)
        assert answer.usage.calls == len(answer.calls)
        for call in answer.calls:
            assert (call.start is None) == (not call.outcome.ok)
        assert outline(answer) == outline(first.setdefault(question, answer)), "equal questions, other answers"


def test_a_soak_is_flat_and_every_question_is_accounted_for() -> None:
    statuses = soak(64)
    assert set(statuses) == {"ok", "refused", "tool_error", "timeout", "crash"}, "the law is empty without failures"


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_two_thousand_questions_are_flat_and_accounted_for() -> None:
    statuses = soak(2000)
    assert min(statuses[status] for status in ("ok", "refused", "tool_error", "timeout", "crash")) >= 10
