"""Laws 7 and 11 on artefacts of others: damaged or hostile files are refused in one line, or load as plain data."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save as tensor_bytes

from tests.fuzz.limits import in_time
from tests.fuzz.texts import JSON_VALUES, damaged
from toolken.errors import UserError
from toolken.inference.binding import bind
from toolken.model.artefact import INFO, WEIGHTS, BiasParts, HeadInfo, PromptRecord, ToolRecord
from toolken.model.head import ToolkenHead
from toolken.tools.arithmetic import ARITHMETIC

WIDTH = 8
NAMES = ("gcd", "add")
RUN = settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
LONG_RUN = settings(max_examples=5_000, suppress_health_check=[HealthCheck.function_scoped_fixture])


def good_head() -> ToolkenHead:
    tools = [
        ToolRecord.of(ARITHMETIC[name], demonstrations="Q: [QUESTION]\nA: <gcd>(", examples=3).model_copy(
            update={"bias_parts": BiasParts(solved=0.5)}
        )
        for name in NAMES
    ]
    prompt = PromptRecord(before="Q: ", after="\nA:", answer_pattern="is", stop=["\n"])
    info = HeadInfo(
        base_name="base",
        base_fingerprint="f" * 64,
        hidden_size=WIDTH,
        tools=tools,
        prompt=prompt,
        training={"l2": 1e-4},
    )
    return ToolkenHead(torch.arange(2.0 * WIDTH).reshape(2, WIDTH), torch.tensor([0.5, 0.5]), info)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    saved = good_head().save(tmp_path / "toolkens")
    assert load(saved, warm=True) is not None
    return saved


def load(folder: Path, *, warm: bool = False) -> ToolkenHead | None:
    """Load an artefact: a head that is sound, or None if it is refused in one line; nothing new is imported."""
    modules = set(sys.modules)
    try:
        with in_time(1):
            head = ToolkenHead.load(folder)
    except UserError as error:
        line = str(error)
        assert line.isprintable() and len(line) < 4000
        return None
    finally:
        assert warm or set(sys.modules) == modules
    assert head.weight.shape == (len(head.names), head.info.hidden_size) and head.weight.dtype == torch.float32
    assert head.weight.isfinite().all() and head.bias.isfinite().all()
    head.info.model_dump_json()
    try:
        for tool in bind(head.info.tools, None).tools.values():
            assert any(tool is built_in for built_in in ARITHMETIC)
    except UserError as error:
        assert str(error).isprintable()
    return head


GOOD = [
    good_head().info.model_dump_json(indent=2).encode(),
    good_head().info.model_dump_json().encode(),
]


GOOD_ROWS = tensor_bytes({"weight": good_head().weight, "bias": good_head().bias})


def check_info(folder: Path, content: bytes) -> None:
    (folder / WEIGHTS).write_bytes(GOOD_ROWS)
    (folder / INFO).write_bytes(content)
    load(folder)


@RUN
@given(content=damaged(GOOD))
def test_a_damaged_description_is_refused_or_sound(folder: Path, content: bytes) -> None:
    check_info(folder, content)


@pytest.mark.long
@LONG_RUN
@given(content=damaged(GOOD))
def test_a_damaged_description_is_refused_or_sound_at_length(folder: Path, content: bytes) -> None:
    check_info(folder, content)


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every key and index in a JSON value."""
    parts: list[tuple[Any, object]] = []
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, list):
        parts = list(enumerate(value))
    return [path, *(place for key, item in parts for place in places(item, (*path, key)))]


PLACES = [place for place in places(json.loads(GOOD[0])) if place]
HOSTILE: list[object] = [
    "builtin:arithmetic.gcd", "builtin:arithmetic.__class__", "builtin:../../x", "os:system", "/etc/passwd:x#y",
    "evil.py:TOOLS#gcd",
    "file:///etc/passwd", "http://127.0.0.1:9/x", {"$ref": "http://127.0.0.1:9/x"}, {"$ref": "#"},
    {"$ref": "file:///etc/passwd"},
    {"type": "string", "pattern": "(a+)+$"}, {"enum": list(range(30_000))},
    {"properties": {"a": {"$ref": "#/properties/a"}}},
    "../" * 50, "x" * 10**5, "\x00", "<gcd>(", "__import__('os').system('true')", 10**400, -1, 1e300, ["a"] * 3000,
]  # fmt: skip


def check_field(folder: Path, place: tuple[str | int, ...], value: object, hashed: bool) -> None:
    content = json.loads(GOOD[0])
    *path, key = place
    target = content
    for step in path:
        target = target[step]
    target[key] = value
    if not hashed:
        for tool in content["tools"] if isinstance(content["tools"], list) else []:
            if isinstance(tool, dict):
                tool["schema_hash"] = ""
    content["weights_sha256"] = content.get("weights_sha256") if place == ("weights_sha256",) else ""
    check_info(folder, json.dumps(content).encode())


FIELDS = st.one_of(st.sampled_from(HOSTILE), JSON_VALUES)


@RUN
@given(place=st.sampled_from(PLACES), value=FIELDS, hashed=st.booleans())
def test_any_value_in_any_field_is_refused_or_sound(
    folder: Path, place: tuple[str | int, ...], value: object, hashed: bool
) -> None:
    check_field(folder, place, value, hashed)


@pytest.mark.long
@LONG_RUN
@given(place=st.sampled_from(PLACES), value=FIELDS, hashed=st.booleans())
def test_any_value_in_any_field_is_refused_or_sound_at_length(
    folder: Path, place: tuple[str | int, ...], value: object, hashed: bool
) -> None:
    check_field(folder, place, value, hashed)


def tensor_file(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def tensor(dtype: str, shape: list[int], start: int, size: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, start + size]}


WEIGHT, BIAS = tensor("F32", [2, WIDTH], 0, 64), tensor("F32", [2], 64, 8)
ROWS = tensor_file({"weight": WEIGHT, "bias": BIAS}, bytes(72))


def check_rows(folder: Path, content: bytes) -> bool:
    """Load rows whose hash is right, so that what is in them is looked at; return whether they are taken."""
    (folder / WEIGHTS).write_bytes(content)
    described = json.loads(GOOD[0])
    described["weights_sha256"] = hashlib.sha256(content).hexdigest()
    (folder / INFO).write_text(json.dumps(described))
    return load(folder) is not None


@RUN
@given(content=damaged([ROWS]))
def test_damaged_rows_are_refused_or_sound(folder: Path, content: bytes) -> None:
    check_rows(folder, content)


@pytest.mark.long
@LONG_RUN
@given(content=damaged([ROWS]))
def test_damaged_rows_are_refused_or_sound_at_length(folder: Path, content: bytes) -> None:
    check_rows(folder, content)


def test_undamaged_rows_are_taken(folder: Path) -> None:
    assert check_rows(folder, ROWS)
    assert check_rows(folder, tensor_file({"__metadata__": {"a": "b"}, "weight": WEIGHT, "bias": BIAS}, bytes(72)))


@pytest.mark.parametrize(
    "content",
    [
        *[
            tensor_file({"weight": tensor(d, [2, WIDTH], 0, 16 * b // 8), "bias": tensor(d, [2], 16 * b // 8,
            2 * b // 8)},
                        b"\x01" * (18 * b // 8))
            for d, b in [("F4", 4), ("F8_E4M3", 8), ("F8_E8M0", 8), ("BOOL", 8), ("F16", 16), ("F64", 64), ("C64",
            64), ("U64", 64)]
        ],
        tensor_file({"weight": WEIGHT, "bias": BIAS}, b"\xff" * 72),
        tensor_file({"weight": WEIGHT, "bias": BIAS}, bytes(64) + struct.pack("<ff", float("inf"), 0)),
        tensor_file({"weight": WEIGHT, "bias": BIAS, "more": tensor("F32", [1], 72, 4)}, bytes(76)),
        tensor_file({"weight": tensor("F32", [3, WIDTH], 0, 96), "bias": tensor("F32", [3], 96, 12)}, bytes(108)),
        tensor_file({"weight": tensor("F32", [0, 2**63], 0, 0), "bias": tensor("F32", [2], 0, 8)}, bytes(8)),
        tensor_file({"weight": tensor("F32", [2**40, 2**40], 0, 0), "bias": BIAS}),
        tensor_file({"weight": tensor("F32", [WIDTH, 2], 0, 64), "bias": BIAS}, bytes(72)),
        tensor_file({"weight": tensor("F32", [-2, -8], 0, 64), "bias": BIAS}, bytes(72)),
        tensor_file({"weight": WEIGHT, "bias": tensor("F32", [2], 0, 8)}, bytes(72)),
        tensor_file({"weight": WEIGHT}, bytes(64)),
        tensor_file(b"[" * 10**5),
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 99 * 10**6) + b" " * 10**6 * 3,
        b"",
        b"\x80\x05cos\nsystem\n.",
    ],
    ids=lambda content: repr(content[8:48]),
)  # fmt: skip
def test_rows_that_are_not_float32_rows_of_the_tools_are_refused(folder: Path, content: bytes) -> None:
    assert not check_rows(folder, content)


@pytest.mark.parametrize("name", [INFO, WEIGHTS])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "loop", "nothing", "sparse"])
def test_what_is_no_ordinary_file_is_refused_at_once(folder: Path, name: str, kind: str) -> None:
    file = folder / name
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "folder":
        file.mkdir()
    elif kind == "loop":
        file.symlink_to(name)
    elif kind == "sparse":
        file.touch()
        os.truncate(file, 2**42)
    assert load(folder) is None


def test_a_link_to_an_ordinary_file_is_followed(folder: Path, tmp_path: Path) -> None:
    for name in (INFO, WEIGHTS):
        (folder / name).rename(tmp_path / name)
        (folder / name).symlink_to(tmp_path / name)
    assert load(folder) is not None


def test_a_reference_to_a_file_is_never_imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "evil.py").write_text("open('ran', 'w')\nTOOLS = []\n")
    monkeypatch.syspath_prepend(str(folder))
    for reference in ("evil.py:TOOLS#gcd", "evil:TOOLS", "builtin:evil.TOOLS", str(folder / "evil.py") + ":TOOLS#gcd"):
        check_field(folder, ("tools", 0, "reference"), reference, True)
    assert not (folder / "ran").exists() and "evil" not in sys.modules
