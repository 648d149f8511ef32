"""Prompts, run directories and reports that cannot be used, and commands that lack something."""

from __future__ import annotations

import pytest

from tests.commands.bad_input.refusal import TRAIN, Bench, Refusal

REFUSALS = [
    Refusal(
        "an unknown prompt",
        {},
        TRAIN + " --prompt.template builtin:one-hopp",
        "prompt.template: no prompt builtin:one-hopp; did you mean `builtin:one-hop`?",
    ),
    Refusal(
        "a prompt file that is missing",
        {},
        TRAIN + " --prompt.template p.txt",
        "prompt.template p.txt: no file p.txt; check the name and `data.root`",
    ),
    Refusal(
        "a prompt without a place for the question",
        {"p.txt": "Q: A:"},
        TRAIN + " --prompt.template p.txt",
        "prompt.template p.txt: no [QUESTION] in the template; write [QUESTION] where the question goes",
    ),
    Refusal(
        "a prompt with two places",
        {"p.txt": "[QUESTION] [QUESTION]"},
        TRAIN + " --prompt.template p.txt",
        "prompt.template p.txt: 2 times [QUESTION] in the template; keep the last one only",
    ),
    Refusal(
        "a pattern that is none",
        {},
        TRAIN + " --prompt.answer_pattern (",
        "prompt.answer_pattern: '(' is no regular expression (missing ) at position 1); escape what is meant "
        "as it stands, as in `\\(`",
    ),
    Refusal(
        "demonstrations without a tool",
        {},
        TRAIN + " --prompt.demonstrations d.txt",
        "prompt.demonstrations: no {tool} in d.txt; write `auto` or `FOLDER/{tool}.txt`",
    ),
    Refusal(
        "demonstrations that are missing",
        {},
        TRAIN + " --prompt.demonstrations {tool}.txt",
        "prompt.demonstrations of <add>: no file add.txt; check the name and `data.root`",
    ),
    Refusal(
        "a folder of something else",
        {"o/mine.txt": ""},
        TRAIN,
        "o: is no run directory, yet holds files (mine.txt); give a new or empty folder with `--out`",
    ),
    Refusal(
        "a file where the run goes",
        {"o": ""},
        TRAIN,
        "o: is a file, or lies under one; give a folder with `--out`",
    ),
    Refusal(
        "a run that is no run",
        {},
        "report nowhere",
        "nowhere/run_report.json: cannot be read (No such file or directory); give the directory of a finished run",
    ),
    Refusal(
        "a report of another version",
        {"r/run_report.json": "{}"},
        "report r",
        "r/run_report.json: `title`: Field required; train again with this version",
    ),
    Refusal(
        "a report that is damaged",
        {"r/run_report.json": "{"},
        "report r",
        "r/run_report.json: Invalid JSON: EOF while parsing an object at line 1 column 1; train again with "
        "this version",
    ),
    Refusal(
        "a run to calibrate that is none",
        {},
        "calibrate nowhere",
        "nowhere/config.yaml: no such file; check the path; relative paths start in the working directory",
    ),
    Refusal(
        "nothing to evaluate",
        {},
        "eval",
        "eval: nothing to evaluate; give `--methods base,toolken` with a `--config`, `--answers` and `--gold`, or "
        "`--folds 5` with a `--config`",
    ),
    Refusal(
        "methods without a benchmark",
        {},
        "eval --methods base,toolken",
        "evaluation.benchmark: is unset; name one, or take a config that does: configs/funcqa.yaml",
    ),
    Refusal(
        "a benchmark that is none",
        {},
        "eval --methods base --evaluation.benchmark funcqa_o",
        "evaluation.benchmark: no benchmark funcqa_o; did you mean `funcqa_oh`?",
    ),
    Refusal(
        "a method that is none",
        {},
        "eval --methods base,tolken --evaluation.benchmark funcqa_oh",
        "--methods: no method tolken; did you mean `toolken`?",
    ),
    Refusal(
        "a method with a seed that it does not take",
        {},
        "eval --methods react:2 --evaluation.benchmark funcqa_oh",
        "--methods: react takes no seed; write `react`",
    ),
    Refusal(
        "several evaluations without a place for their report",
        {},
        "report a --beside b",
        "--output: is missing; name the folder of the report on several evaluations",
    ),
    Refusal(
        "a report on what is no evaluation",
        {},
        "report a --beside b --output c",
        "a/evaluation.json: no such file; name the folder that `toolken eval --methods ... --out` wrote",
    ),
    Refusal(
        "no gold answers",
        {},
        "eval --answers a.jsonl",
        "--gold: is missing; name the benchmark file that the questions came from",
    ),
    Refusal(
        "an unknown solver",
        {},
        "eval --folds 2 --methods sgd",
        "--methods: no solver `sgd`; use `convex`, `convex:1e-4` or `adam:1e-3`",
    ),
    Refusal(
        "a solver without its number",
        {},
        "eval --folds 2 --methods adam:x",
        "--methods: `adam:x` has no number after the colon; write `adam:1e-3`",
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=[refusal.name for refusal in REFUSALS])
def test_runs_that_cannot_be_used_are_refused_in_one_line(bench: Bench, refusal: Refusal) -> None:
    bench.check(refusal)
