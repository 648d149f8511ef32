"""Artefacts that are damaged, of another base or another format: which file, why, and what makes it fit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands.bad_input.refusal import TRAIN, Bench

ASK = ("infer", "--toolkens", "a", "--question", "3 + 4?")
AGAIN = "copy the artefact again, or train it again"
BOTH = "copy both files again, or train or calibrate again"
Change = Callable[[dict[str, Any]], object]


def artefact(bench: Bench, name: str = "a") -> Path:
    return shutil.copytree(bench.run / "toolkens", bench.here / name)


CHANGES: list[tuple[str, Change, str]] = [
    (
        "another base",
        lambda info: info.update(base_name="other/base", base_fingerprint="0" * 64),
        "a: the toolkens were trained on `other/base` (float32, d=32, 000000000000), this base is `{base}` "
        "(float32, d=32, {print}); load the base `other/base`, or train on `{base}`",
    ),
    (
        "another dtype",
        lambda info: info.update(base_dtype="bfloat16", base_fingerprint="0" * 64),
        "a: the toolkens were trained on `{base}` (bfloat16, d=32, 000000000000), this base is `{base}` "
        "(float32, d=32, {print}); load it with dtype: bfloat16, or train again",
    ),
    (
        "another revision",
        lambda info: info.update(base_fingerprint="0" * 64),
        "a: the toolkens were trained on `{base}` (float32, d=32, 000000000000), this base is `{base}` "
        "(float32, d=32, {print}); load it with the revision, quantization and adapter of the training run, or train "
        "again",
    ),
    (
        "another hidden size",
        lambda info: info.update(hidden_size=64),
        "a: the toolkens were trained on `{base}` (float32, d=64, {print}), this base is `{base}` "
        "(float32, d=32, {print}); another model lies there now: name the one of the training run, or train again",
    ),
    (
        "another format version",
        lambda info: info.update(format_version=2),
        "a/toolkens.json: format version 2 cannot be read, this toolken reads 1; use the toolken release that wrote "
        "it, or train again",
    ),
    (
        "no format version",
        lambda info: info.pop("format_version"),
        "a/toolkens.json: format version None cannot be read, this toolken reads 1; use the toolken release that "
        "wrote it, or train again",
    ),
    (
        "an unknown field",
        lambda info: info.update(extra=1),
        f"a/toolkens.json (extra): Extra inputs are not permitted; {AGAIN}",
    ),
    (
        "a field of another type",
        lambda info: info.update(hidden_size="wide"),
        "a/toolkens.json (hidden_size): Input should be a valid integer, unable to parse string as an integer; "
        + AGAIN,
    ),
    (
        "a tool that is not that of its hash",
        lambda info: info["tools"][0].update(description="Something else."),
        f"a/toolkens.json (tools.0): <add> is not the tool of its schema hash {{add}}; {AGAIN}",
    ),
    (
        "more tools than rows",
        lambda info: info["tools"].append(info["tools"][0]),
        "a: weight (13, 32) and bias (13,) do not fit 14 tools of width 32; train again",
    ),
    (
        "fewer tools than rows",
        lambda info: info["tools"].pop(),
        "a: weight (13, 32) and bias (13,) do not fit 12 tools of width 32; train again",
    ),
    (
        "two rows of one tool",
        lambda info: info["tools"].__setitem__(1, info["tools"][0]),
        "a: <add> stands for two rows; remove or rename one of them",
    ),
]


@pytest.mark.parametrize(("change", "line"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_an_artefact_that_does_not_fit_says_what_would_make_it_fit(bench: Bench, change: Change, line: str) -> None:
    file = artefact(bench) / "toolkens.json"
    info = json.loads(file.read_text())
    known = {
        "base": str(bench.base),
        "print": info["base_fingerprint"][:12],
        "add": info["tools"][0]["schema_hash"][:12],
    }
    change(info)
    file.write_text(json.dumps(info))
    for key, value in known.items():
        line = line.replace(f"{{{key}}}", value)
    assert bench.refuse(*ASK) == line


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("toolkens.json", None, "cannot be read (No such file or directory); name the folder that holds toolkens.json"),
        ("toolkens.json", lambda old: old[:30], f"3: no valid JSON: Unterminated string starting at; {AGAIN}"),
        ("toolkens.json", lambda old: b"\xff", "1: not UTF-8 text (byte 0); save the file as UTF-8"),
        (
            "toolkens.json",
            lambda old: b"[]",
            "format version None cannot be read, this toolken reads 1; use the toolken",
        ),
        ("toolkens.json", lambda old: b'{"x": NaN}', "no valid JSON: NaN is not a number of JSON"),
        ("toolkens.safetensors", None, f"cannot be read: No such file or directory; {BOTH}"),
        ("toolkens.safetensors", lambda old: old[: len(old) // 2], "it is damaged: "),
        ("toolkens.safetensors", lambda old: b"", "it is damaged: "),
        ("toolkens.safetensors", lambda old: b"\xff" * 64, "it is damaged: "),
        (
            "toolkens.safetensors",
            lambda old: old[:-1] + bytes([old[-1] ^ 1]),
            f"it is not the file that toolkens.json beside it was written for; {BOTH}",
        ),
    ],
)
def test_a_file_of_an_artefact_that_is_missing_damaged_or_cut_off_is_named(
    bench: Bench, name: str, content: Callable[[bytes], bytes] | None, line: str
) -> None:
    file = artefact(bench) / name
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content(file.read_bytes()))
    found = bench.refuse(*ASK)
    assert found.startswith((f"a/{name}: {line}", f"a/{name}:{line}"))
    assert "; " in found and (line != "it is damaged: " or found.endswith(BOTH))


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda old: old[: len(old) // 2], "b: its weights are damaged or cut off: [...]; copy or download them again"),
        (lambda old: b"\xff" * 64, "b: its weights are damaged or cut off: [...]; copy or download them again"),
    ],
)
def test_weights_of_a_base_that_are_damaged_or_cut_off_are_named(
    bench: Bench, damage: Callable[[bytes], bytes], line: str
) -> None:
    weights = shutil.copytree(bench.base, bench.here / "b") / "model.safetensors"
    weights.write_bytes(damage(weights.read_bytes()))
    start, end = line.split("[...]")
    found = bench.refuse(*TRAIN.replace("{base}", "b").split())
    assert found.startswith(start) and found.endswith(end)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("tools list b", "b/toolkens.json: cannot be read (No such file or directory); name the folder that holds"),
        ("tools remove a --names plus --output b", "toolkens: no row for <plus>; known: add, subtract, multiply, "),
        ("tools remove a --names add --output a", "a: exists already; name a new directory with `--output`"),
        ("tools merge a a --output b", "toolkens: <add> has a row already; remove it first, or rename the new tool"),
    ],
)
def test_rows_that_are_not_there_or_there_twice_are_named(bench: Bench, command: str, line: str) -> None:
    artefact(bench)
    assert bench.refuse(*command.split()).startswith(line)
