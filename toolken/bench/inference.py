"""`bench infer`: answering with the engine against the published decoding loop, on the same base, head and questions.

Same prompt, demonstrations, limits, dtype and threads, in one process; loading the base and training the head stand
outside every timing, starting the worker that runs calls is part of both. The engine answers all questions, before and
after the reference, each time with nothing cached. The reference takes them in a seeded order until its time is up;
right answers are counted on the rows that both have.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from toolken.bench.measure import level_after_warm_up, machine_facts, say, timed
from toolken.bench.reference_decoding import ReferenceAnswer, ReferenceDecoder
from toolken.bench.trie import Recorder, trie_nodes
from toolken.bench.workload import align_workload, evenly, fixed_solver, read_splits, train_from
from toolken.config import Config, GenerateSection, InferenceSection
from toolken.data.generate import generate_examples
from toolken.data.questions import Question, read_questions
from toolken.data.rows import data_root
from toolken.evaluation.scoring import Rule, Verdict, default_rule, score
from toolken.files import jsonable
from toolken.inference.engine import Answer, Engine
from toolken.inference.hf import HFBackend
from toolken.metrics import Rate
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.recipes.preparation import load_base, load_tool_set
from toolken.recipes.solving import extract_all
from toolken.tools.executor import Executor
from toolken.tools.toolset import ToolSet

OFFICIAL = "funcqa/funcqa_oh.json"
"""The one-hop questions, under the data root; without them problems of our own are asked."""
GENERATED = GenerateSection(per_tool=4)
GENERATED_SEED = 700_001
"""Seed of our own problems, which no training run draws from."""
QUICK_QUESTIONS = 5
QUICK_TOKENS = 48
"""Tokens of an answer, on both sides: rows of few examples call again and again."""
ORDER_SEED = 0
REFERENCE_SECONDS = 480.0
QUICK_SECONDS = 20.0


class EngineRun(NamedTuple):
    """One pass of the engine over all questions; `contexts` are all that its backend was asked to rank."""

    seconds: float
    answers: list[Answer]
    fed_tokens: int
    contexts: list[tuple[int, ...]]


class ReferenceRun(NamedTuple):
    """The reference's answers by the place of their question, and the seconds of all of them."""

    seconds: float
    answers: dict[int, ReferenceAnswer]


class Subject(NamedTuple):
    """What both sides share."""

    base: BaseLM
    head: ToolkenHead
    tools: ToolSet
    section: InferenceSection
    questions: list[Question]


def bench_infer(config: Config, *, quick: bool = False) -> dict[str, object]:
    """Measure answering with rows that are trained for it, or with those of the artefact `init_from`.

    Args:
        config: Settings of a training run; `inference` holds for both sides, with greedy decoding.
        quick: Few rows and few questions, one round: for trials. The record says so.

    Raises:
        UserError: Settings, data, base or artefact are at fault.
    """
    base = load_base(config.base)
    tools = load_tool_set(config.tools, config.data.root)
    head = prepare_head(config, base=base, tools=tools, quick=quick)
    questions, source = load_questions(config, tools, quick=quick)
    limits: dict[str, object] = {"max_new_tokens": QUICK_TOKENS} if quick else {}
    section = config.inference.model_copy(update={"temperature": 0.0, **limits})
    subject = Subject(base, head, tools, section, questions)
    level_after_warm_up(base)
    rounds = [run_engine(subject)]
    say(f"the engine: {len(questions)} questions in {rounds[0].seconds:.1f} s; now the reference")
    reference = run_reference(subject, limit=QUICK_SECONDS if quick else REFERENCE_SECONDS)
    say(f"the reference: {len(reference.answers)} questions in {reference.seconds:.1f} s")
    if not quick:
        rounds.append(run_engine(subject))
    record = {
        "quick": quick,
        **machine_facts(base),
        "questions": source,
        "batch_size": section.batch_size,
        **compare(questions, rounds, reference),
    }
    return {key: jsonable(value) for key, value in record.items()}


def prepare_head(config: Config, *, base: BaseLM, tools: ToolSet, quick: bool) -> ToolkenHead:
    """Load the rows of the artefact that `init_from` names, or train rows as the settings say.

    A quick run takes a fixed strength of the prior: there are too few rows to search for one.
    """
    if config.init_from is not None:
        return ToolkenHead.load(config.init_from, base=base)
    say("training rows, outside of the timing")
    work = align_workload(config, read_splits(config, tools, quick=quick), base=base, tools=tools)
    features = extract_all(base, work.rows, section=config.features)
    with tempfile.TemporaryDirectory(prefix="toolken-bench-") as folder:
        solver = fixed_solver(config.solver) if quick else config.solver
        return train_from(work, features, solver, Path(folder)).head


def load_questions(config: Config, tools: ToolSet, *, quick: bool) -> tuple[list[Question], str]:
    """Return the official one-hop questions, or problems of our own where they are not there; and their name."""
    root = data_root(config.data.root)
    if (root / OFFICIAL).is_file():
        questions, source = read_questions(OFFICIAL, root=root), OFFICIAL
    else:
        questions, source = _generated_questions(tools), "generated"
    return evenly(questions, QUICK_QUESTIONS) if quick else questions, source


def _generated_questions(tools: ToolSet) -> list[Question]:
    examples = generate_examples(GENERATED, tools.names, seed=GENERATED_SEED)
    results = [example.answer[example.calls[-1].start : example.calls[-1].end] for example in examples]
    return [
        Question(number, example.question, result)
        for number, (example, result) in enumerate(zip(examples, results, strict=True))
    ]


def run_engine(subject: Subject) -> EngineRun:
    """Answer all questions with a new engine."""
    with Engine(subject.base, subject.head, tools=subject.tools, config=subject.section) as engine:
        backend = engine.backend
        if not isinstance(backend, HFBackend):
            raise TypeError("the engine runs on another backend, whose fed tokens are not known")
        recorder = Recorder(backend)
        engine.backend = recorder
        answers, seconds = timed(lambda: engine.answer([question.question for question in subject.questions]))
        return EngineRun(seconds, answers, backend.fed_tokens, recorder.contexts)


def run_reference(subject: Subject, *, limit: float) -> ReferenceRun:
    """Answer questions in a seeded order, until all are done or `limit` seconds are over."""
    order = list(range(len(subject.questions)))
    Random(ORDER_SEED).shuffle(order)
    answers: dict[int, ReferenceAnswer] = {}
    section = subject.section
    # The engine is only asked which rows are bound to which tool, and what is shown for them.
    engine = Engine(subject.base, subject.head, tools=subject.tools, config=section)
    with Executor(timeout=section.timeout, memory_mb=section.memory_mb, max_output=section.max_output) as executor:
        decoder = ReferenceDecoder(
            subject.base,
            subject.head,
            tools=engine.tools,
            demonstrations=engine.demonstrations,
            prompt=engine.prompt_of(""),
            config=section,
            executor=executor,
        )
        start = time.perf_counter()
        for place in order:
            answers[place] = decoder.answer(subject.questions[place].question)
            if time.perf_counter() - start > limit:
                break
        return ReferenceRun(time.perf_counter() - start, answers)


def compare(questions: Sequence[Question], rounds: Sequence[EngineRun], reference: ReferenceRun) -> dict[str, object]:
    """Return ratios, and right answers on the rows that both sides answered."""
    rule = default_rule(questions)
    first, seconds = rounds[0], statistics.mean(run.seconds for run in rounds)
    places = sorted(reference.answers)
    asked = [questions[place] for place in places]
    ours = _right(asked, [first.answers[place].answer for place in places], rule)
    theirs = _right(asked, [reference.answers[place].answer for place in places], rule)
    every = _right(questions, [answer.answer for answer in first.answers], rule)
    nodes = trie_nodes(first.contexts)
    a_second, reference_a_second = len(questions) / seconds, len(places) / reference.seconds
    return {
        "n": len(places),
        "correct": ours.hits,
        "reference_correct": theirs.hits,
        "accuracy": ours.as_dict(),
        "reference_accuracy": theirs.as_dict(),
        "accuracy_all": every.as_dict(),
        "same_text": sum(first.answers[place].text == reference.answers[place].text for place in places),
        "speedup_vs_reference": a_second / reference_a_second,
        "questions_per_second": a_second,
        "reference_questions_per_second": reference_a_second,
        "rows": len(questions),
        "reference_rows_timed": len(places),
        "seconds": [run.seconds for run in rounds],
        "reference_seconds": reference.seconds,
        "fed_ratio": first.fed_tokens / nodes,
        "fed_tokens": first.fed_tokens,
        "trie_nodes": nodes,
        "new_tokens": sum(len(answer.token_ids) for answer in first.answers),
        "calls": sum(len(answer.calls) for answer in first.answers),
        **_reference_counts(list(reference.answers.values())),
    }


def _reference_counts(answers: Sequence[ReferenceAnswer]) -> dict[str, int]:
    return {
        "reference_fed_tokens": sum(answer.fed_tokens for answer in answers),
        "reference_prefills": sum(answer.prefills for answer in answers),
        "reference_new_tokens": sum(len(answer.token_ids) for answer in answers),
        "reference_calls": sum(answer.calls for answer in answers),
    }


def _right(questions: Sequence[Question], answers: Sequence[str | None], rule: Rule) -> Rate:
    """Count right answers; a question without a gold number cannot be asked here."""
    verdicts = [
        score(answer, question.answer or "", rule=rule) for question, answer in zip(questions, answers, strict=True)
    ]
    return Rate(sum(verdict is Verdict.RIGHT for verdict in verdicts), len(verdicts))
