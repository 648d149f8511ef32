"""Data files and questions: whatever they hold, they are read, or refused in one line that names the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.limits import in_time
from tests.fuzz.texts import JSON_VALUES, damaged
from toolken.data.formats import example_record, read_examples, validate_rows
from toolken.data.questions import read_questions
from toolken.errors import UserError
from toolken.files import jsonable

ROWS: list[dict[str, object]] = [
    {"question": "Q?", "answer": "It is <gcd>(316,196)=4<eoe>4, and <add>(1, 2)=3<eoe>3."},
    {
        "question": "Q?",
        "answer": "is 4",
        "calls": [{"start": 3, "end": 4, "tool": "gcd", "arguments": [4, {"a": 1.5}]}],
    },
    {"text": "Q: From 14 to 4?\nA: It is 4 or so.", "tar_eq": ["<gcd>(8,12)=4<eoe>"], "start_token_idx": [7]},
    {"text": "Only words."},
    {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "It is <add>(1,1)=2<eoe>2."}]},
    {"id": 7, "question": "Is {v_1} more than {v_2}?", "enhanced_v": [12.0, "six"], "enhanced_result": 72.5},
    {"question": "How many?", "answer": "All of them #### 1,234"},
]
FILES = [
    "\n".join(json.dumps(row) for row in ROWS).encode(),
    json.dumps(ROWS, indent=1).encode(),
    json.dumps(ROWS, ensure_ascii=False).encode(),
    b"One\nparagraph <gcd>(4,8)=4<eoe>4.\n\n\nAnother.\n",
]
NAMES = st.sampled_from(["a.jsonl", "a.json", "a.txt"])
RUN = settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
LONG_RUN = settings(max_examples=5_000, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read_everything(file: Path) -> None:
    """Read a file as training data and as questions; what is read can be written, what is not names the file."""
    readers: list[Callable[[], object]] = [
        lambda: [example_record(e) for e in read_examples([file.name], root=file.parent, tools=None).examples],
        lambda: read_examples([file.name], root=file.parent, tools=["gcd"], on_bad_row="skip").refused,
        lambda: list(validate_rows(file.name, root=file.parent)),
        lambda: [(q.id, q.question, q.answer, dict(q.metadata)) for q in read_questions(file.name, root=file.parent)],
    ]
    for reader in readers:
        try:
            with in_time():
                found = reader()
        except UserError as error:
            line = str(error)
            assert file.name in line and line.isprintable() and len(line) < 4000
            continue
        json.dumps(jsonable(found), ensure_ascii=False, allow_nan=False).encode()


def check_bytes(folder: Path, name: str, content: bytes) -> None:
    file = folder / name
    file.write_bytes(content)
    read_everything(file)


def check_row(folder: Path, row: dict[str, object], key: str, value: object) -> None:
    """A value of any type at any key, also inside a call or a message."""
    for changed in ({**row, key: value}, {**row, "calls": [{**CALL, key: value}]}, {"messages": [{key: value}]}):
        (folder / "a.jsonl").write_text(json.dumps(changed))
        read_everything(folder / "a.jsonl")


CALL: dict[str, object] = {"start": 3, "end": 4, "tool": "gcd", "arguments": "4"}
KEYS = st.sampled_from(
    ["question", "answer", "text", "calls", "messages", "tar_eq", "id", "enhanced_v", "v", "enhanced_result",
     "start", "end", "tool", "arguments", "role", "content"]
)  # fmt: skip


@RUN
@given(name=NAMES, content=damaged(FILES))
def test_damaged_files_are_read_or_refused_by_name(tmp_path: Path, name: str, content: bytes) -> None:
    check_bytes(tmp_path, name, content)


@pytest.mark.long
@LONG_RUN
@given(name=NAMES, content=damaged(FILES))
def test_damaged_files_are_read_or_refused_by_name_at_length(tmp_path: Path, name: str, content: bytes) -> None:
    check_bytes(tmp_path, name, content)


@RUN
@given(row=st.sampled_from(ROWS), key=KEYS, value=JSON_VALUES)
def test_any_value_at_any_key_is_read_or_refused_by_name(
    tmp_path: Path, row: dict[str, object], key: str, value: object
) -> None:
    check_row(tmp_path, row, key, value)


@pytest.mark.long
@LONG_RUN
@given(row=st.sampled_from(ROWS), key=KEYS, value=JSON_VALUES)
def test_any_value_at_any_key_is_read_or_refused_by_name_at_length(
    tmp_path: Path, row: dict[str, object], key: str, value: object
) -> None:
    check_row(tmp_path, row, key, value)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"question": "a", "question": "b"}', "the key 'question' appears twice"),
        ('{"question": "a", "answer": NaN}', "NaN is not a number"),
        ('{"question": "a", "answer": 1e999}', "too large"),
        ('{"question": "a", "more": ' + "[" * 101 + "]" * 101 + "}", "nested more than 100 deep"),
        ('{"question": "a", "more": ' + "[" * 10**6, "nested more than 100 deep"),
        ('{"question": "{v_1}", "enhanced_v": [{"a": 1}]}', "`enhanced_v` is dict"),
        ('{"question": "{v_1}", "enhanced_v": [true]}', "`enhanced_v` is bool"),
    ],
)
def test_what_two_readers_could_read_in_two_ways_is_refused(tmp_path: Path, row: str, message: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"question": "x"}\n' + row)
    with in_time(), pytest.raises(UserError, match=message) as caught:
        read_questions("a.jsonl", root=tmp_path)
    assert str(caught.value).startswith("a.jsonl:2: ")


@pytest.mark.parametrize(
    "row",
    [
        {"text": "Q: a\nA: " + "1 " * 2000, "tar_eq": ["<gcd>(1)=1<eoe>"] * 1000},
        {"text": "Q:" + "\n" * 200_000, "tar_eq": ["<gcd>(1)=1<eoe>"]},
        {"text": "Q:" + "\n " * 100_000 + "A: 1", "tar_eq": ["<gcd>(" + "(" * 50_000 + ")=1<eoe>"]},
        {"text": "x", "tar_eq": ["<gcd>(" + ") = " * 50_000]},
        {"question": "q", "answer": "<gcd>(" * 50_000},
        {"question": "q", "answer": "<" * 200_000 + "<a>(" + "(" * 200_000},
        {"question": "q", "answer": "<gcd>(1)=1<eoe>1 " * 5000},
        {"question": "q", "answer": "is 4", "calls": [CALL] * 20_000},
        {"question": "{v_1}" * 20_000, "enhanced_v": [1], "answer": "#" * 200_000},
        {"question": "{v_" + "9" * 200_000 + "}", "enhanced_v": [1]},
    ],
    ids=lambda row: str(row)[:40],
)
def test_long_rows_take_bounded_time(tmp_path: Path, row: dict[str, object]) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    with in_time(4):
        read_everything_in_any_time(tmp_path / "a.jsonl")


def read_everything_in_any_time(file: Path) -> None:
    for reader in (
        lambda: read_examples([file.name], root=file.parent, tools=None),
        lambda: read_questions(file.name, root=file.parent),
    ):
        try:
            reader()
        except UserError as error:
            assert len(str(error)) < 4000


SOURCES = st.one_of(
    st.text(alphabet="a*?[]:/.-0\x00~{}é", max_size=20),
    st.builds("a.jsonl[{}:{}]".format, st.integers(), st.integers()),
    st.sampled_from(
        ["a.jsonl[" + "9" * 5000 + ":]", "**a", "a/**b/*", "x" * 5000, "hub", "[", "a.jsonl[:-1]", ".", ""]
    ),
)


@RUN
@given(source=SOURCES)
def test_any_name_of_a_source_is_read_or_refused(tmp_path: Path, source: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n{"text": "y"}')
    if source.startswith(("hub:", "/", "..", "~")) or "/." in source:
        return  # other places than the folder of this test
    try:
        with in_time():
            read_examples([source], root=tmp_path, tools=None)
    except UserError as error:
        assert str(error).isprintable()
