"""Questions and answers that cannot be read: file and line; flags that do not go together."""

from __future__ import annotations

import pytest

from tests.commands.bad_input.refusal import INFER, Bench, Refusal, rows

FILE = INFER + " --input q.jsonl --output out.jsonl"
SCORE = "eval --answers a.jsonl --gold g.jsonl"
GOLD = rows({"id": 1, "question": "3 + 4?", "answer": 7})

REFUSALS = [
    Refusal(
        "neither a question nor a file",
        {},
        INFER,
        "infer: has neither of `--question` and `--input`; give one of them",
    ),
    Refusal(
        "a question and a file",
        {},
        INFER + " --question a --input q.jsonl",
        "infer: has both of `--question` and `--input`; give one of them",
    ),
    Refusal(
        "a file without an output",
        {},
        INFER + " --input q.jsonl",
        "--output: is missing; name the JSONL file that the answers go to",
    ),
    Refusal(
        "a question with an output",
        {},
        INFER + " --question a --output out.jsonl",
        "--output: goes with `--input` alone; leave it out: one question is answered on screen",
    ),
    Refusal(
        "an empty question",
        {},
        INFER + " --question ''",
        "--question: is empty; ask something",
    ),
    Refusal(
        "a question of white space",
        {},
        INFER + " --question ' \t'",
        "--question: is empty; ask something",
    ),
    Refusal(
        "a question longer than the context",
        {},
        INFER + " --question '" + "7 " * 20_000 + "'",
        "--question: [...] tokens with the prompt, and the base's context has 8,192; shorten it",
    ),
    Refusal(
        "a file that is missing",
        {},
        FILE,
        "data source q.jsonl: no file matches under {here}; check the name and `data.root`",
    ),
    Refusal(
        "an empty file",
        {"q.jsonl": ""},
        FILE,
        "q.jsonl: the file is empty; a data file holds at least one row",
    ),
    Refusal(
        "no rows in a slice",
        {"q.jsonl": rows({"question": "a"})},
        INFER + " --input q.jsonl[5:] --output out.jsonl",
        "q.jsonl[5:]: no questions; name a file, or a slice of one, with at least one row",
    ),
    Refusal(
        "a JSON error",
        {"q.jsonl": rows({"question": "a"}, "{")},
        FILE,
        "q.jsonl:2: not valid JSON: Expecting property name enclosed in double quotes (column 2); mend the line",
    ),
    Refusal(
        "an empty question in a file",
        {"q.jsonl": rows({"question": "a"}, {"question": ""})},
        FILE,
        "q.jsonl:2: `question` is empty; ask something, or leave the row out",
    ),
    Refusal(
        "a question of white space in a file",
        {"q.jsonl": rows({"question": "a"}, {"question": " \n"})},
        FILE,
        "q.jsonl:2: `question` is empty; ask something, or leave the row out",
    ),
    Refusal(
        "no question in a row",
        {"q.jsonl": rows({"question": "a"}, {"id": 2})},
        FILE,
        'q.jsonl:2: `question` is missing; write {"id": 1, "question": "..."}',
    ),
    Refusal(
        "a row that is no object",
        {"q.jsonl": rows({"question": "a"}, ["b"])},
        FILE,
        'q.jsonl:2: the row is list, not an object; write {"id": 1, "question": "..."}',
    ),
    Refusal(
        "an id that is a fraction",
        {"q.jsonl": rows({"id": 1.5, "question": "a"})},
        FILE,
        "q.jsonl:1: `id` is float; write text or a whole number",
    ),
    Refusal(
        "an id twice",
        {"q.jsonl": rows({"id": 1, "question": "a"}, {"id": 1, "question": "b"})},
        FILE,
        "q.jsonl:2: the id 1 stands at q.jsonl:1 as well; make ids unique",
    ),
    Refusal(
        "a number that is missing",
        {"q.jsonl": rows({"question": "{v_2}?", "enhanced_v": [1]})},
        FILE,
        "q.jsonl:1: no number for {v_2} in `enhanced_v`; give one value for each place",
    ),
    Refusal(
        "an output that is the input",
        {"q.jsonl": rows({"question": "a"})},
        INFER + " --input q.jsonl --output q.jsonl",
        "--output q.jsonl: is the file of the questions; name another file",
    ),
    Refusal(
        "a tool to allow that is unknown",
        {},
        INFER + " --question a --inference.allow sbtract",
        "inference.allow: no tool <sbtract> in the artefact; did you mean `subtract`?",
    ),
    Refusal(
        "a tool to deny that is unknown",
        {},
        INFER + " --question a --inference.deny calculator",
        "inference.deny: no tool <calculator> in the artefact; known: add, subtract, multiply, divide, "
        "power, sqrt, log, ln, lcm, gcd, remainder, choose, permutate",
    ),
    Refusal(
        "answers that are missing",
        {"g.jsonl": GOLD},
        SCORE,
        "a.jsonl: cannot be read (No such file or directory); give the JSONL that `infer --output` wrote",
    ),
    Refusal(
        "no answer to a question",
        {"g.jsonl": GOLD, "a.jsonl": ""},
        SCORE,
        "a.jsonl: 1 of 1 questions have no answer (the first is 1); finish the inference, or score a part "
        "with `--partial`",
    ),
    Refusal(
        "answers that are no JSON",
        {"g.jsonl": GOLD, "a.jsonl": "7\nx\n"},
        SCORE,
        "a.jsonl:1: has no `id` or no `answer`; give the JSONL that `infer --output` wrote",
    ),
    Refusal(
        "an answer without an id",
        {"g.jsonl": GOLD, "a.jsonl": rows({"answer": "7"})},
        SCORE,
        "a.jsonl:1: has no `id` or no `answer`; give the JSONL that `infer --output` wrote",
    ),
    Refusal(
        "an answer to another question",
        {"g.jsonl": GOLD, "a.jsonl": rows({"id": 2, "answer": "7"})},
        SCORE,
        "a.jsonl:1: answers 2, which is no question of the benchmark; score it against its own file",
    ),
    Refusal(
        "two answers to one question",
        {"g.jsonl": GOLD, "a.jsonl": rows({"id": 1, "answer": "7"}, {"id": 1, "answer": "7"})},
        SCORE,
        "a.jsonl:2: answers 1 again; keep one answer for each question",
    ),
    Refusal(
        "a gold answer that is no number",
        {"g.jsonl": rows({"id": 1, "question": "a", "answer": "seven"}), "a.jsonl": rows({"id": 1, "answer": "7"})},
        SCORE,
        "question 1: the gold answer 'seven' is no number; score questions whose answers are numbers",
    ),
    Refusal(
        "no gold answer",
        {"g.jsonl": rows({"id": 1, "question": "a"}), "a.jsonl": rows({"id": 1, "answer": "7"})},
        SCORE,
        "question 1: there is no gold answer; score questions whose answers are numbers",
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=[refusal.name for refusal in REFUSALS])
def test_questions_that_cannot_be_used_are_refused_in_one_line(bench: Bench, refusal: Refusal) -> None:
    bench.check(refusal)
