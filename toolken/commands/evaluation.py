"""`toolken eval`: score a file of answers against gold, or cross-validate solvers over training rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from pydantic import Field

from toolken.commands.command import Command
from toolken.config import Config
from toolken.data.questions import read_questions
from toolken.errors import UserError
from toolken.evaluation.scoring import score_file
from toolken.files import check_output, write_json
from toolken.recipes.folds_run import cross_validate


class EvalArguments(Config):
    """What is evaluated: answers against gold, or, with the settings of a training run, solvers by cross-validation."""

    answers: Path | None = None
    """JSONL file that `infer` wrote."""
    gold: str | None = None
    """Benchmark file with the gold answers."""
    rule: Literal["auto", "round2", "relative"] = "auto"
    """`round2`: equal after rounding to two decimals. `relative`: within 0.1 %. `auto`: by the kind of file."""
    partial: bool = False
    """Score the answers that are there although some questions have none."""
    output: Path | None = None
    """JSON file that the result is written to, beside being printed."""
    folds: int = Field(default=0, ge=0)
    """Cross-validate over training rows with so many folds."""
    methods: list[str] = ["convex", "adam:1e-4", "adam:1e-3"]
    """Solvers to compare: `convex`, `convex:L2`, `adam:LR`."""


def evaluate(arguments: EvalArguments) -> dict[str, object]:
    """Score answers or cross-validate, whichever the flags ask for; the file is written once all is known."""
    if arguments.output is not None:
        check_output(arguments.output)
        if arguments.answers is not None and arguments.output.exists() and arguments.output.samefile(arguments.answers):
            raise UserError(f"--output {arguments.output}", "is the file of the answers", "name another file")
    result = _score(arguments, arguments.answers) if arguments.answers is not None else _cross_validate(arguments)
    if arguments.output is not None:
        write_json(arguments.output, result)
    return result


def _score(arguments: EvalArguments, answers: Path) -> dict[str, object]:
    if arguments.gold is None:
        raise UserError("--gold", "is missing", "name the benchmark file that the questions came from")
    rule = None if arguments.rule == "auto" else arguments.rule
    score = score_file(answers, read_questions(arguments.gold), rule=rule, partial=arguments.partial)
    print(score, file=sys.stderr)
    return score.as_dict()


def _cross_validate(arguments: EvalArguments) -> dict[str, object]:
    if arguments.folds < 2:
        raise UserError(
            "eval", "nothing to evaluate", "give `--answers` and `--gold`, or `--folds 5` with a `--config`"
        )
    records = cross_validate(arguments, arguments.methods, arguments.folds)
    return {"folds": arguments.folds, "methods": records}


EVAL = Command(EvalArguments, evaluate, "score answers against gold, or cross-validate solvers")
