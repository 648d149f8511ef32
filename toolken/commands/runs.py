"""`toolken train` and `toolken infer`."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from toolken.commands.command import Command
from toolken.config import BaseSection, Config, InferenceSection, Section
from toolken.data.questions import read_questions
from toolken.data.rows import parse_source
from toolken.errors import UserError
from toolken.files import check_output
from toolken.inference.trace import printable, printer
from toolken.recipes.answering_run import Loaded, answer_to_file, beyond_context, hold_output, load_engine
from toolken.recipes.training_run import train


class InferArguments(Section):
    """Which questions are answered, with which toolkens."""

    toolkens: Path
    """Artefact directory: `RUN/toolkens`."""
    question: str | None = None
    """One question, answered on screen."""
    input: str | None = None
    """JSONL with `{"id", "question"}`, or an official benchmark file, with an optional `[:10]` row slice."""
    output: Path | None = None
    """JSONL file that the answers are written to."""
    tools: str | None = None
    """`FILE.py:NAME` of your own ToolSet, or `benchmark:NAME`; built-in tools need none."""
    trace: bool = False
    """Show reasoning, calls and results in colour as they happen."""
    base: BaseSection = BaseSection()
    inference: InferenceSection = InferenceSection()


def run_train(config: Config) -> dict[str, object] | None:
    """Train, and return what the run says about itself; nothing in a process that only helps another one."""
    return dict(train(config).metrics) or None


def run_infer(arguments: InferArguments) -> dict[str, object]:
    """Answer one question, or a file of them."""
    if (arguments.question is None) == (arguments.input is None):
        given = "has neither" if arguments.question is None else "has both"
        raise UserError("infer", f"{given} of `--question` and `--input`", "give one of them")
    if arguments.question is not None and arguments.output is not None:
        raise UserError("--output", "goes with `--input` alone", "leave it out: one question is answered on screen")
    if arguments.input is not None and arguments.output is None:
        raise UserError("--output", "is missing", "name the JSONL file that the answers go to")
    questions = read_questions(arguments.input) if arguments.input is not None else []
    if arguments.output is not None and questions:
        _check_output(arguments.output, arguments.input or "")
    if arguments.question is not None and not arguments.question.strip():
        raise UserError("--question", "is empty", "ask something")
    if arguments.output is not None and questions:
        with hold_output(arguments.output):
            return answer_to_file(_load(arguments), questions, arguments.output)
    with _load(arguments).engine as engine:
        watch = printer(Console(stderr=True)) if arguments.trace else None
        ((_, answer),) = engine.completed([arguments.question or ""], watch=watch)
        if problem := beyond_context(answer, engine):
            raise UserError("--question", problem, "shorten it")
    if not arguments.trace:
        print(printable(answer.text.strip()), file=sys.stderr)
    return answer.as_dict(0)


def _load(arguments: InferArguments) -> Loaded:
    return load_engine(arguments.toolkens, tools=arguments.tools, base=arguments.base, inference=arguments.inference)


def _check_output(output: Path, source: str) -> None:
    """Refuse an output that could not be written in the end, or that would replace the questions."""
    check_output(output)
    questions = Path(parse_source(source).name)
    if questions.is_file() and output.is_file() and output.samefile(questions):
        raise UserError(f"--output {output}", "is the file of the questions", "name another file")


TRAIN = Command(Config, run_train, "train toolkens beside a frozen base")
INFER = Command(InferArguments, run_infer, "answer questions with trained toolkens")
