"""Aligned rows: hidden states of use from unlabelled questions, the solve between the two contexts, plain rows out.

Invariant: of the questions nothing but their text is read, never an answer; what comes out is a head like any other,
which is calibrated, saved and used in the same way.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from tqdm import tqdm

from toolken.config import Config, InferenceSection
from toolken.data.example import Example
from toolken.data.questions import read_questions
from toolken.errors import UserError
from toolken.inference.engine import Engine
from toolken.model.base import BaseLM
from toolken.recipes.preparation import Context, Splits, align_all
from toolken.recipes.solving import SplitFeatures, prior_rows
from toolken.tools.toolset import ToolSet
from toolken.training.alignment import Alignment
from toolken.training.features import extract
from toolken.training.solver import Solution, solve, supervised

ANSWER = "."
"""Stands where an answer would begin: a text needs one for its question to have a position behind it."""
DECODED_TOKENS = 128


def questions_of_use(config: Config, validation: Sequence[Example]) -> list[str]:
    """Return the distinct questions that `align` names, at most `align.limit` of them, evenly spread.

    Raises:
        UserError: A source cannot be read, or there are none.
    """
    section = config.align
    named = [row.question for source in section.questions for row in read_questions(source, root=config.data.root)]
    found = list(dict.fromkeys(q for q in named or [row.question for row in validation] if q.strip()))
    if not found:
        raise UserError("align.questions", "there is no question", "name a source of questions")
    if len(found) <= section.limit:
        return found
    return [found[place * len(found) // section.limit] for place in range(section.limit)]


def hidden_of_use(questions: Sequence[str], *, base: BaseLM, context: Context, config: Config) -> Tensor:
    """Return the head inputs (M, d) of use: behind every question, or all along the base's own answers to them."""
    if config.align.positions == "decoding":
        texts = own_answers(questions, base=base, context=context, section=config.inference, tokens=DECODED_TOKENS)
    else:
        texts = [Example(question, ANSWER, origin="a question without its answer") for question in questions]
    plain = context.prompt_without_conclusion()
    aligned = align_all(texts, plain, base=base, tools=(), left_out=[])
    features = extract(base, aligned, section=config.features, label="use")
    if config.align.positions == "decoding":
        return features.hidden
    example = features.example
    first = torch.ones(len(example), dtype=torch.bool)
    first[1:] = example[1:] != example[:-1]
    return features.hidden[first]


def own_answers(
    questions: Sequence[str], *, base: BaseLM, context: Context, section: InferenceSection, tokens: int
) -> list[Example]:
    """Let the base answer questions by itself, greedily; answers without a word are passed over."""
    greedy = section.model_copy(update={"max_new_tokens": tokens, "temperature": 0.0})
    with Engine(base, None, prompt=context.prompt, config=greedy) as engine:
        answers = engine.completed(questions)
        bar = tqdm(answers, total=len(questions), desc="the base's own answers", unit="question", disable=None)
        found = [answer for _, answer in sorted(bar, key=lambda pair: pair[0])]
    texts = [Example(answer.question, answer.text, origin="the base's own answer") for answer in found]
    return [text for text in texts if text.answer.strip()]


def check_alignment(config: Config) -> None:
    """Refuse, before anything is computed, settings under which rows cannot be aligned.

    Raises:
        UserError: Alignment is asked for with another solver, or for rows beside an artefact's.
    """
    if config.align.method == "none":
        return
    if config.solver.kind != "convex":
        raise UserError("align.method", "only the convex solver aligns rows", "set align.method to none")
    if config.init_from is not None:
        problem = "rows beside those of an artefact are not aligned: its own rows would have to move"
        raise UserError("align.method", problem, "set align.method to none, or train all tools anew")


def refuse_alignment(config: Config, where: str) -> None:
    """Refuse alignment where rows are solved as they are.

    Raises:
        UserError: Alignment is asked for.
    """
    if config.align.method != "none":
        raise UserError("align.method", f"{where} does not align rows", "add `--align.method none`")


def fit_aligned(
    features: SplitFeatures, splits: Splits, *, base: BaseLM, tools: ToolSet, context: Context, config: Config
) -> Solution:
    """Solve for rows between the context of training and that of use.

    Raises:
        UserError: The base caps its logits, there are no questions, or a context has no moments.
    """
    if not base.affine:
        raise UserError("align.method", f"`{base.name}` caps its logits, so rows do not fold", "set it to none")
    use = hidden_of_use(questions_of_use(config, splits.validation), base=base, context=context, config=config)
    train = supervised(features.train, config.solver)
    alignment = Alignment.between(train.hidden, use, section=config.align)
    print(f"aligned: {len(train):,} training positions with {len(use):,} of use", file=sys.stderr)
    solution = solve(
        replace(train, hidden=alignment.standardise(train.hidden)),
        len(tools),
        section=config.solver,
        transform=base.transform,
        affine=base.affine,
        prior=alignment.unfold(prior_rows(base, tools, config.solver)),
        progress=True,
    )
    weight, bias = alignment.fold(solution.weight, solution.bias, transform=base.transform)
    return replace(solution, weight=weight, bias=bias, alignment=alignment.record)
