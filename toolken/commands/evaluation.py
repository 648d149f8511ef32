"""`toolken eval`: run methods on a benchmark, score a file of answers, or cross-validate solvers over training rows."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from toolken.commands.command import Command, run_settings
from toolken.config import Config
from toolken.data.questions import read_questions
from toolken.errors import UserError
from toolken.evaluation.scoring import score_file
from toolken.files import check_output, write_json
from toolken.recipes.benchmark_run import evaluate_benchmark
from toolken.recipes.folds_run import cross_validate

SOLVERS = ("convex", "adam:1e-4", "adam:1e-3")
"""What `folds` compares where no methods are named."""


class EvalArguments(Config):
    """What is evaluated: methods on the benchmark of a configuration, answers against gold, or solvers over folds."""

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
    methods: list[str] = []
    """On a benchmark: `base`, `zero-shot`, `react`, `icl`, `icl-retrieved`, `toolken`, `toolken-adam`,
    `toolken-adam:SEED`. With `folds`: `convex`, `convex:L2`, `adam:LR`."""
    toolkens: Path | None = None
    """Artefact for the method `toolken`; trained as the configuration says if unset."""

    @field_validator("methods")
    @classmethod
    def _split_at_commas(cls, value: list[str]) -> list[str]:
        return [name for part in value for name in part.split(",") if name]


def evaluate(arguments: EvalArguments) -> dict[str, object]:
    """Do what the flags ask for; the file of `output` is written once all is known."""
    if arguments.output is not None:
        check_output(arguments.output)
        if arguments.answers is not None and arguments.output.exists() and arguments.output.samefile(arguments.answers):
            raise UserError(f"--output {arguments.output}", "is the file of the answers", "name another file")
    result = _evaluate(arguments)
    if arguments.output is not None:
        write_json(arguments.output, result)
    return result


def _evaluate(arguments: EvalArguments) -> dict[str, object]:
    if arguments.answers is not None:
        return _score(arguments, arguments.answers)
    if arguments.folds >= 2:
        methods = arguments.methods or SOLVERS
        return {"folds": arguments.folds, "methods": cross_validate(run_settings(arguments), methods, arguments.folds)}
    if arguments.methods:
        command = shlex.join(["toolken", *sys.argv[1:]])
        return evaluate_benchmark(
            run_settings(arguments), arguments.methods, toolkens=arguments.toolkens, command=command
        )
    fix = "give `--methods base,toolken` with a `--config`, `--answers` and `--gold`, or `--folds 5` with a `--config`"
    raise UserError("eval", "nothing to evaluate", fix)


def _score(arguments: EvalArguments, answers: Path) -> dict[str, object]:
    if arguments.gold is None:
        raise UserError("--gold", "is missing", "name the benchmark file that the questions came from")
    rule = None if arguments.rule == "auto" else arguments.rule
    score = score_file(answers, read_questions(arguments.gold), rule=rule, partial=arguments.partial)
    print(score, file=sys.stderr)
    return score.as_dict()


EVAL = Command(EvalArguments, evaluate, "run methods on a benchmark, score answers, or cross-validate solvers")
