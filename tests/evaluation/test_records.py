"""Records: what is written is what is read, whatever a kill leaves behind."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from tests.evaluation.answers import answered, call
from toolken.errors import UserError
from toolken.evaluation.benchmarks.benchmark import Cause, Item, Mark
from toolken.evaluation.records import Record, RecordFile, by_method, read_records, record_of
from toolken.evaluation.scoring import Verdict

STRANGE = 'a "quoted"\nline\u2028with \\ and \x00 and 😀'


def record(method: str = "base", number: int = 0, text: str = "1+1=2") -> Record:
    item = Item(number, "What is 1 and 1?", "2", {"steps": ["add"]})
    calls = [call("add", {"a": Fraction(1), "b": Fraction(1, 3)}, 2), call("add", None, status="refused")]
    mark = Mark(Verdict.WRONG, Cause.WRONG_TOOL, None, {"selection": 0.5})
    return record_of("funcqa_oh", method, item, answered(text, "2", calls), mark)


@pytest.mark.parametrize("text", ["1+1=2", STRANGE, ""])
def test_what_is_written_is_what_is_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "records.jsonl"
    written = [record(text=text), record(number=1, text=text)]
    with RecordFile(path) as file:
        for one in written:
            file.append(one)
        assert file.records == written
    assert read_records(path) == written
    assert len(path.read_bytes().split(b"\n")) == 3, "one line each"
    assert json.loads(path.read_bytes().split(b"\n")[0])["calls"][0]["arguments"] == {"a": 1, "b": 1 / 3}


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_line_that_was_cut_off_goes_and_the_others_stay(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "records.jsonl"
    with RecordFile(path) as file:
        for number in range(3):
            file.append(record(number=number))
    path.write_bytes(path.read_bytes()[:-cut])
    assert [one.id for one in read_records(path)] == [0, 1]
    with RecordFile(path) as file:
        assert file.ids("base") == {0, 1} and file.ids("react") == frozenset()
        file.append(record(number=2))
    assert read_records(path) == [record(number=number) for number in range(3)]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with RecordFile(path) as file:
        file.append(record())
    path.write_bytes(path.read_bytes() + b'{"benchmark": 1}\n')
    with pytest.raises(UserError, match=r"records\.jsonl:2: it is no record"):
        read_records(path)


def test_no_file_is_no_record(tmp_path: Path) -> None:
    assert read_records(tmp_path / "records.jsonl") == []


def test_records_are_grouped_by_method_in_the_order_of_their_coming() -> None:
    mixed = [record("toolken"), record("base"), record("toolken", 1)]
    assert [(method, [one.id for one in group]) for method, group in by_method(mixed)] == [
        ("toolken", [0, 1]),
        ("base", [0]),
    ]
