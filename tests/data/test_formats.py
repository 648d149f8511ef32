"""Readers: every form of row, exact places in messages, nothing guessed."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolken.config import GenerateSection
from toolken.data.example import CallSpan, Example
from toolken.data.formats import read_examples, validate_rows, write_examples
from toolken.data.inline import cuts_number, parse_inline, write_inline
from toolken.data.rows import read_rows
from toolken.errors import UserError

TOOLS = ("add", "gcd")
INLINE = '{"question": "Q?", "answer": "It is <gcd>(316,196)=4<eoe>4."}'


def read(tmp_path: Path, name: str, text: str | bytes, **settings: object) -> list[Example]:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_examples([name], root=tmp_path, tools=TOOLS, **settings).examples  # type: ignore[arg-type]


def covered(example: Example) -> list[tuple[str, str, str]]:
    return [(call.tool, call.arguments, example.result(call)) for call in example.calls]


@pytest.mark.parametrize(
    ("row", "question", "answer", "calls"),
    [
        (INLINE, "Q?", "It is 4.", [("gcd", "316,196", "4")]),
        ('{"question": "Q?", "answer": "2 = <add>(2, 1) = 5<eoe>5 jars"}', "Q?", "2 = 5 jars", [("add", "2, 1", "5")]),
        ('{"question": "Q?", "answer": "<add>((1+2),f(3))=6<eoe>6"}', "Q?", "6", [("add", "(1+2),f(3)", "6")]),
        ('{"question": "Q?", "answer": "No call."}', "Q?", "No call.", []),
        (
            '{"text": "Q: How?\\nA: It is 2331.", "tar_eq": ["<gcd>(5,3)=2331<eoe>"], "start_token_idx": [70]}',
            "How?", "It is 2331.", [("gcd", "5,3", "2331")],
        ),
        (
            '{"text": "Question: How?\\nAnswer: 2 and 3.", "tar_eq": ["<add>(1,1)=2<eoe>", "<add>(1,2)=3<eoe>"]}',
            "How?", "2 and 3.", [("add", "1,1", "2"), ("add", "1,2", "3")],
        ),
        (
            '{"text": "Q: 4 or 14?\\nA: From 14 to 4.", "tar_eq": ["<gcd>(8,12)=4<eoe>"]}',
            "4 or 14?", "From 14 to 4.", [("gcd", "8,12", "4")],
        ),
        (
            '{"question": "Q?", "answer": "is 4", "calls": [{"start": 3, "end": 4, "tool": "gcd", "arguments": "x"}]}',
            "Q?", "is 4", [("gcd", "x", "4")],
        ),
        (
            '{"text": "is 4", "calls": [{"start": 3, "end": 4, "tool": "gcd", "arguments": [4, 8]}]}',
            "", "is 4", [("gcd", "4, 8", "4")],
        ),
        (
            '{"text": "is 4", "calls": [{"start": 3, "end": 4, "tool": "gcd", "arguments": {"a": 4, "b": "x"}}]}',
            "", "is 4", [("gcd", 'a=4, b="x"', "4")],
        ),
        ('{"text": "Only words."}', "", "Only words.", []),
        (
            '{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "Hi"}, '
            '{"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Bye"}]}',
            "Hi", "Hello", [],
        ),
    ],
)  # fmt: skip
def test_every_form_of_row_is_told_by_its_keys(
    tmp_path: Path, row: str, question: str, answer: str, calls: list[tuple[str, str, str]]
) -> None:
    (example,) = read(tmp_path, "rows.jsonl", row)
    assert (example.question, example.answer, covered(example)) == (question, answer, calls)
    assert example.origin == "rows.jsonl:1"


SPAN = '{"question": "Q?", "answer": "The number 1256.5 is it.", "calls": [%s]}'
CALL = '{"start": %s, "end": %s, "tool": "gcd", "arguments": "1"}'


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "not valid JSON"),
        ('{"a": 1} {', "more text after the JSON value"),
        ("[1]", "the row is list, not an object"),
        ('{"x": 1}', "the keys x are no known form"),
        ("{}", r"the keys \(none\) are no known form"),
        ('{"question": "Q?"}', "`answer` is missing"),
        ('{"answer": "A"}', "`question` is missing"),
        ('{"question": 3, "answer": "A"}', "`question` is int, not text"),
        ('{"question": "Q?", "answer": null}', "`answer` is NoneType, not text"),
        ('{"question": "Q?", "answer": " "}', "the text is empty"),
        ('{"question": "Q?", "answer": "<gdc>(1)=2<eoe>2"}', "no tool <gdc> in the tool set; did you mean `gcd`"),
        ('{"question": "Q?", "answer": "<gcd>(1)=2<eoe>3"}', "gives '2', but the text goes on with '3'"),
        ('{"question": "Q?", "answer": "<gcd>(1)=2<eoe>25"}', "gives '2', but the text goes on with '25'"),
        ('{"question": "Q?", "answer": "<gcd>(1)=2"}', "has no <eoe>"),
        ('{"question": "Q?", "answer": "<gcd>(1=2<eoe>2"}', "has no closing bracket"),
        ('{"question": "Q?", "answer": "<gcd>(1) is 2<eoe>2"}', "has no = after the bracket"),
        ('{"question": "Q?", "answer": "<gcd>(1)=<eoe>2"}', "gives ''"),
        ('{"question": "Q?", "answer": "262*21=5502<eoe>5502"}', "<eoe> without a call"),
        ('{"question": "Q?", "answer": "1<gcd>(1)=2<eoe>2"}', "stands inside a number"),
        ('{"question": "Q?", "answer": "<gcd>(<add>(1,1)=2<eoe>2,4)=2<eoe>2"}', "stands inside another call"),
        ('{"text": "Q: x\\nA: 4 and 4.", "tar_eq": ["<gcd>(8,4)=4<eoe>"]}', "'4' stands in more than one place"),
        ('{"text": "Q: 4\\nA: none.", "tar_eq": ["<gcd>(8,4)=4<eoe>"]}', "'4' does not stand in the answer"),
        ('{"text": "Q: x\\nA: 45 and 0.4", "tar_eq": ["<gcd>(8,4)=4<eoe>"]}', "'4' does not stand in the answer"),
        ('{"text": "Q: x\\nA: 45", "tar_eq": []}', "`tar_eq` is empty"),
        ('{"text": "Q: x\\nA: 45", "tar_eq": ["gcd=45"]}', "`tar_eq` holds 'gcd=45'"),
        ('{"text": "Q: x\\nA: 45", "tar_eq": "x"}', "`tar_eq` is str, not a list"),
        ('{"text": "Q: x\\nA: <gcd>(9)=45", "tar_eq": ["<gcd>(9)=45<eoe>"]}', "still holds call markup"),
        (SPAN % CALL % (11, 99), "lies outside the text of 24 characters"),
        (SPAN % CALL % (-1, 4), "lies outside the text"),
        (SPAN % CALL % (12, 17), "covers '256.5', a part of a number"),
        (SPAN % CALL % (11, 15), "covers '1256', a part of a number"),
        (SPAN % CALL % (10, 17), "covers white space"),
        (SPAN % (CALL % (11, 17) + "," + CALL % (4, 10)), "overlaps the one before or is out of order"),
        (SPAN % CALL % (11, '"x"'), "are whole numbers"),
        (SPAN % "3", "a call is int, not an object"),
        (SPAN % '{"start": 1, "end": 2, "tool": "gcd"}', "a call has no `arguments`"),
        (SPAN % '{"start": 11, "end": 17, "tool": "gcd", "arguments": 3}', "`arguments` of a call is int"),
        ('{"calls": [], "answer": "x"}', "`question` is missing"),
        ('{"question": "Q?", "answer": "x", "calls": {}}', "`calls` is dict, not a list"),
        ('{"messages": [{"role": "user", "content": "x"}]}', "no user message with an assistant message"),
        ('{"messages": [{"role": "user", "content": ["x"]}]}', "`content` is list, not text"),
        ('{"messages": ["x"]}', "a message is not an object"),
        ("[" * 100_000, "cannot be read as JSON|not valid JSON|the list is cut off"),
    ],
)
def test_a_malformed_row_is_refused_with_its_line(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(UserError, match=rf"^rows\.jsonl:3: .*(?:{message})"):
        read(tmp_path, "rows.jsonl", f"{INLINE}\n\n{row}\n{INLINE}")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", f"[\n{INLINE},\n\n{{}}]", r"^a\.json:4: the keys"),
        ("a.json", f"[{INLINE}\n{INLINE}]", r"^a\.json:2: the list is cut off or lacks a comma"),
        ("a.json", f"[{INLINE}", r"^a\.json:1: the list is cut off"),
        ("a.json", f'[{INLINE},\n{{"question": "Q?"\n "answer": 1}}]', r"^a\.json:3: not valid JSON"),
        ("a.jsonl", f"{INLINE}\n".encode() + b'{"question": "\xe9"}', r"^.*a\.jsonl:2: not UTF-8"),
        ("a.jsonl", "\n \n", r"^a\.jsonl: the file is empty"),
        ("a.jsonl", '{"n": ' + "9" * 5000 + "}", r"^a\.jsonl:1: "),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(tmp_path, name, text)


def test_bad_rows_are_reported_and_left_out_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f'{INLINE}\n{{"x": 1}}\n{INLINE}\n')
    rows = read_examples(["a.jsonl"], root=tmp_path, tools=TOOLS, on_bad_row="skip")
    assert len(rows.examples) == 2
    assert [line.partition(" the")[0] for line in rows.refused] == ["a.jsonl:2:"]
    (tmp_path / "b.jsonl").write_text('{"x": 1}')
    with pytest.raises(UserError, match=r"b\.jsonl: no usable row \(the first: b\.jsonl:1:"):
        read_examples(["b.jsonl"], root=tmp_path, tools=TOOLS, on_bad_row="skip")


def test_sources_are_files_globs_and_slices_under_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d").mkdir()
    for name in "ba":
        lines = [json.dumps({"text": f"{name}{i}"}) for i in range(4)]
        (tmp_path / "d" / f"{name}.jsonl").write_text("\n".join(lines))
    (tmp_path / "list.json").write_text(json.dumps([{"text": f"c{i}"} for i in range(5)]))

    def texts(*sources: str, limit: int | None = None) -> list[str]:
        return [e.answer for e in read_examples(sources, root=None, tools=TOOLS, limit=limit).examples]

    monkeypatch.setenv("TOOLKEN_DATA", str(tmp_path))
    assert texts("d/*.jsonl") == [f"{n}{i}" for n in "ab" for i in range(4)]
    assert texts("list.json[3:]") == ["c3", "c4"] and texts("list.json[:2]") == ["c0", "c1"]
    assert texts("list.json[-1:]") == ["c4"] and texts("list.json[1:3]") == ["c1", "c2"]
    assert texts(str(tmp_path / "d" / "a.jsonl"), "list.json", limit=1) == ["a0", "c0"]
    with pytest.raises(UserError, match=r"data source d/\*\.txt: no file matches under"):
        texts("d/*.txt")
    with pytest.raises(UserError, match="no usable row"):
        texts("list.json[9:]")


def test_paragraphs_of_a_text_file_are_plain_texts_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("One\nline.\n\n\nTwo.\n")
    assert [(raw.where, raw.value) for raw in read_rows("t.txt", root=tmp_path)] == [
        ("t.txt:1", {"text": "One\nline."}),
        ("t.txt:5", {"text": "Two."}),
    ]


@pytest.mark.filterwarnings("ignore")
def test_parquet_rows_come_through_datasets(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = [{"question": "Q?", "answer": "It is <gcd>(8,12)=4<eoe>4."}, {"question": "R?", "answer": "No."}]
    datasets.Dataset.from_list(rows).to_parquet(str(tmp_path / "rows.parquet"))
    examples = read_examples(["rows.parquet"], root=tmp_path, tools=TOOLS).examples
    assert [(e.question, e.answer, e.origin) for e in examples] == [
        ("Q?", "It is 4.", "rows.parquet:row 1"),
        ("R?", "No.", "rows.parquet:row 2"),
    ]
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    with pytest.raises(UserError, match="cannot be loaded"):
        read_examples(["bad.parquet"], root=tmp_path, tools=TOOLS)


def test_generated_is_a_source_like_any_other() -> None:
    rows = read_examples(["generated"], generate=GenerateSection(per_tool=3, seed=5), tools=TOOLS, limit=4)
    assert len(rows.examples) == 4 and {c.tool for e in rows.examples for c in e.calls} <= set(TOOLS)


def test_validation_prints_what_each_call_covers(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f'{INLINE}\n{{"text": "Words."}}\n{{"question": "Q?", "answer": "<gcd>(1)=2"}}')
    first, second, third = validate_rows("a.jsonl", root=tmp_path, tools=TOOLS)
    assert first.lines == ('a.jsonl:1  <gcd>(316,196) covers "4" at 6:7',) and first.refused is None
    assert second.lines == ("a.jsonl:2  no call",)
    assert third.lines == () and third.refused is not None and third.refused.startswith("a.jsonl:3: the call of <gcd>")


WORDS = st.text(alphabet="ab =.,é\n", max_size=8)


@st.composite
def examples(draw: st.DrawFn) -> Example:
    text, calls = draw(WORDS), []
    for _ in range(draw(st.integers(0, 3))):
        result = draw(st.sampled_from(["4", "-3.5", "yes", "1,234"]))
        text += " "
        calls.append(CallSpan(len(text), len(text) + len(result), draw(st.sampled_from(TOOLS)), "1, (2)"))
        text += result + " " + draw(WORDS)
    return Example(draw(st.sampled_from(["", "Q?"])), text + ".", tuple(calls))


@given(example=examples())
def test_inline_markup_round_trips(example: Example) -> None:
    marked = write_inline(example.answer, example.calls)
    assert parse_inline(marked, "x:1", TOOLS) == (example.answer, example.calls)


def test_written_examples_read_back_the_same(tmp_path: Path) -> None:
    rows = [
        Example("Q?", "is 4\u2028.", (CallSpan(3, 4, "gcd", '4,8 "é"'),)),
        Example("", "Only\nwords."),
    ]
    assert write_examples(tmp_path / "new" / "out.jsonl", rows) == 2
    assert read_examples(["new/out.jsonl"], root=tmp_path, tools=TOOLS).examples == [
        Example(e.question, e.answer, e.calls, f"new/out.jsonl:{n}") for n, e in enumerate(rows, 1)
    ]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize(
    ("text", "span", "cut"),
    [
        ("is 4.", "4", False), ("is 45", "4", True), ("is 0.4", "4", True), ("is 4.5", "4", True), ("4,000", "4", True),
        ("3, 4, 5", "4", False), ("=4", "4", False), ("$4", "4", False), ("4x", "4", False), (".4", "4", True),
        ("106.847.95", "7.95", False), ("1 4", "4", False), ("yes4", "yes", False),
    ],
)  # fmt: skip
def test_a_span_never_covers_a_part_of_a_number(text: str, span: str, cut: bool) -> None:
    start = text.rindex(span)
    assert cuts_number(text, start, start + len(span)) is cut
