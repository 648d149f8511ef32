"""Data files and rows that cannot be trained on: file and line, what is wrong, what to write instead."""

from __future__ import annotations

import pytest

from tests.commands.bad_input.refusal import TRAIN, Bench, Refusal, rows

GOOD = {"question": "3 + 4?", "answer": "It is <add>(3, 4)=7<eoe>7."}
CHECK = "data validate f.jsonl --tools arithmetic"

REFUSALS = [
    Refusal(
        "a file that is missing",
        {},
        CHECK,
        "data source f.jsonl: no file matches under {here}; check the name and `data.root`",
    ),
    Refusal(
        "a folder for a file",
        {"f.jsonl/": ""},
        CHECK,
        "data source f.jsonl: no file matches under {here}; check the name and `data.root`",
    ),
    Refusal(
        "a binary file",
        {"f.jsonl": b"{}\n\x00\xff"},
        CHECK,
        "f.jsonl:2: not UTF-8 text (byte 4); save the file as UTF-8",
    ),
    Refusal(
        "an empty file",
        {"f.jsonl": "\n"},
        CHECK,
        "f.jsonl: the file is empty; a data file holds at least one row",
    ),
    Refusal(
        "a JSON error",
        {"f.jsonl": rows(GOOD, '{"question": "a", "answer": }')},
        CHECK,
        "f.jsonl:2: not valid JSON: Expecting value (column 29); mend the line",
    ),
    Refusal(
        "more after the JSON value",
        {"f.jsonl": rows(GOOD, '{"text": "a"} {"text": "b"}')},
        CHECK,
        "f.jsonl:2: more text after the JSON value; write one JSON object a line",
    ),
    Refusal(
        "a list that is cut off",
        {"f.json": '[{"text": "a"},\n\n{"text": "b"'},
        "data validate f.json",
        "f.json:3: not valid JSON: Expecting ',' delimiter (column 13); mend the line",
    ),
    Refusal(
        "a list without a comma",
        {"f.json": '[{"text": "a"}\n{"text": "b"}]'},
        "data validate f.json",
        "f.json:2: the list is cut off or lacks a comma; mend the line",
    ),
    Refusal(
        "JSON that is too deep",
        {"f.jsonl": rows(GOOD, "[" * 5000)},
        CHECK,
        "f.jsonl:2: cannot be read as JSON (nested more than 100 deep); mend the line",
    ),
    Refusal(
        "half a character",
        {"f.jsonl": rows(GOOD, '{"text": "\\ud800"}')},
        CHECK,
        "f.jsonl:2: a text holds half of a surrogate pair (\\ud800 to \\udfff); write whole characters",
    ),
    Refusal(
        "a Parquet file that is none",
        {"f.parquet": "x"},
        "data validate f.parquet",
        "data source f.parquet: cannot be loaded ([...]); write the file again",
    ),
    Refusal(
        "a hub data set without a network",
        {},
        "data validate hub:owner/name",
        "data source owner/name: HF_HUB_OFFLINE is set, and it is not in the local cache; connect, or name a "
        "local file",
    ),
    Refusal(
        "no known form",
        {"f.jsonl": rows(GOOD, {"prompt": "3 + 4?"})},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the keys prompt are no known form; a row has "
        "`question` and `answer`, `text`, `messages`, or one of these with `calls`; mend them, or train with "
        "`--data.on_bad_row skip`",
    ),
    Refusal(
        "no question",
        {"f.jsonl": rows(GOOD, {"answer": "7"})},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: `question` is missing; a row has `question` and "
        "`answer`, `text`, `messages`, or one of these with `calls`; mend them, or train with "
        "`--data.on_bad_row skip`",
    ),
    Refusal(
        "a question that is no text",
        {"f.jsonl": rows(GOOD, {"question": 5, "answer": "7"})},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: `question` is int, not text; a row has "
        "`question` and `answer`, `text`, `messages`, or one of these with `calls`; mend them, or train with "
        "`--data.on_bad_row skip`",
    ),
    Refusal(
        "a row that is no object",
        {"f.jsonl": rows(GOOD, [1])},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the row is list, not an object; a row has "
        "`question` and `answer`, `text`, `messages`, or one of these with `calls`; mend them, or train with "
        "`--data.on_bad_row skip`",
    ),
    Refusal(
        "an empty text",
        {"f.jsonl": rows(GOOD, {"text": " "})},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: the text is empty; write some, or leave the row "
        "out; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "a chat without an answer",
        {"f.jsonl": rows(GOOD, {"messages": [{"role": "user", "content": "x"}]})},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: no user message with an assistant message after "
        "it; a chat row is a question and an answer; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "a message that is no object",
        {"f.jsonl": rows(GOOD, {"messages": ["x"]})},
        CHECK,
        "f.jsonl: 1 of 2 rows refused, the first: f.jsonl:2: a message is not an object; write role and "
        "content; mend them, or train with `--data.on_bad_row skip`",
    ),
    Refusal(
        "nothing to convert",
        {"f.jsonl": rows({"x": 1})},
        "data convert f.jsonl --output g.jsonl",
        "data source f.jsonl: no usable row (the first: f.jsonl:1: the keys x are no known form; a row has "
        "`question` and `answer`, `text`, `messages`, or one of these with `calls`); mend the rows, or name "
        "another source",
    ),
    Refusal(
        "fewer than no problems",
        {},
        "data generate --per-tool -1 --output g.jsonl",
        "--per_tool: `per_tool` is '-1': input should be greater than or equal to 0; per_tool: One-hop "
        "problems for each tool.",
    ),
    Refusal(
        "an output that is a folder",
        {"g/": ""},
        "data generate --output g",
        "g: cannot be written: Is a directory; name a file in a folder that you can write to",
    ),
    Refusal(
        "no call to train on",
        {"f.jsonl": rows({"question": "3 + 4?", "answer": "7"}, {"question": "4 + 4?", "answer": "8"})},
        TRAIN + " --data.train f.jsonl --data.validation_share 0.01",
        "data.train: no training row has a call; add rows with calls, or check `data.exclude`",
    ),
    Refusal(
        "a bad row while training",
        {
            "f.jsonl": rows(
                GOOD,
                {
                    "question": "q",
                    "answer": "It is 7.",
                    "calls": [{"start": 6, "end": 99, "tool": "add", "arguments": "3, 4"}],
                },
            )
        },
        TRAIN + " --data.train f.jsonl",
        "f.jsonl:2: the span 6:99 of <add> lies outside the text of 8 characters; spans count characters of "
        "the answer, end exclusive",
    ),
    Refusal(
        "a source that is missing",
        {},
        TRAIN + " --data.train f.jsonl",
        "data source f.jsonl: no file matches under {here}; check the name and `data.root`",
    ),
    Refusal(
        "a row longer than the context",
        {"f.jsonl": rows(GOOD, {"question": "7 " * 5000, "answer": "It is <add>(3, 4)=7<eoe>7."})},
        TRAIN + " --data.train f.jsonl --data.validation f.jsonl[:1] --data.negatives []",
        "f.jsonl:2: [...] tokens with the prompt, more than the base's 8192; shorten the row or the prompt",
    ),
    Refusal(
        "a tool without examples, where examples are required",
        {"f.jsonl": rows(GOOD, {**GOOD, "question": "4 + 3?"})},
        TRAIN + " --data.train f.jsonl --data.validation f.jsonl[:1] --data.require_examples True",
        "data.train: no row calls <subtract>; add rows, or set data.require_examples to False",
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=[refusal.name for refusal in REFUSALS])
def test_data_that_cannot_be_used_are_refused_in_one_line(bench: Bench, refusal: Refusal) -> None:
    bench.check(refusal)
