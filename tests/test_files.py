"""Files are replaced whole or not at all, and only where an ordinary file can stand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolken.errors import UserError
from toolken.files import check_output, is_unicode, user_path, write_bytes


def test_an_output_that_can_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    check_output(tmp_path / "new" / "answers.jsonl")
    assert [path.name for path in tmp_path.rglob("*")] == ["new"]


def test_an_output_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    for bad in (tmp_path, tmp_path / "file" / "x", tmp_path / "pipe", tmp_path / ("x" * 300), Path("/proc/x"), Path()):
        with pytest.raises(UserError, match="cannot be written"):
            check_output(bad)


def test_what_is_no_ordinary_file_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no ordinary file"):
        write_bytes(tmp_path / "pipe", b"x")
    assert (tmp_path / "pipe").is_fifo()
    with pytest.raises(IsADirectoryError):
        write_bytes(tmp_path, b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_half_a_surrogate_pair_is_found_at_any_depth() -> None:
    assert is_unicode({"a": ["é", 1, None, "\U0001f600"]})
    assert not is_unicode("\ud800") and not is_unicode({"a": [{"\udfff": 1}]}) and not is_unicode(["x\udc80"])


def test_the_home_of_a_user_who_is_not_there_stays_text() -> None:
    assert user_path("~no_such_user/a.yaml") == Path("~no_such_user/a.yaml")
    assert user_path("~/a.yaml") == Path.home() / "a.yaml"
