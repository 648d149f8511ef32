"""Round trips are bit-equal, mismatches name the fix, and row operations leave other rows alone."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from tests.tiny import tiny_base
from toolken.data.prompts import Prompt
from toolken.errors import UserError
from toolken.model.artefact import BiasParts, HeadInfo, PromptRecord, ToolRecord
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.tools.arithmetic import ARITHMETIC

PROMPT = Prompt("Q: ", "\nA:", chat=False, answer_pattern="is", stop=("\n\n",), conclusion="")


@pytest.fixture(scope="module")
def base() -> BaseLM:
    return tiny_base("llama")


def head_of(base: BaseLM, names: list[str], *, seed: int = 0, prompt: Prompt = PROMPT) -> ToolkenHead:
    generator = torch.Generator().manual_seed(seed)
    bias = torch.randn(len(names), generator=generator)
    tools = [
        ToolRecord.of(ARITHMETIC[name], demonstrations="Q: [QUESTION]\nA: <gcd>(", examples=5).model_copy(
            update={"bias_parts": BiasParts(solved=float(solved), shift=0.0, per_tool=0.0)}
        )
        for name, solved in zip(names, bias, strict=True)
    ]
    info = HeadInfo.for_base(base, tools, prompt=PromptRecord.of(prompt), training={"l2": 1e-4}, data={"hash": "x"})
    return ToolkenHead(torch.randn(len(names), base.hidden_size, generator=generator), bias, info)


def row_bytes(head: ToolkenHead, name: str) -> tuple[bytes, bytes]:
    row = head.names.index(name)
    return head.weight[row].numpy().tobytes(), head.bias[row].numpy().tobytes()


@pytest.mark.parametrize("family", ["llama", "gemma2", "granite", "phi"])
def test_logits_are_the_bases_transform_of_the_rows_plus_the_bias(family: Any) -> None:
    base = tiny_base(family)
    head = head_of(base, ["gcd", "add"])
    hidden = torch.randn(3, 4, base.hidden_size)
    expected = base.transform(torch.einsum("abd,kd->abk", hidden, head.weight)) + head.bias
    torch.testing.assert_close(head.logits(hidden, base), expected, atol=1e-5, rtol=1e-5)
    assert head.logits(hidden.bfloat16(), base).dtype == torch.float32


def test_save_and_load_are_bit_equal(base: BaseLM, tmp_path: Path) -> None:
    head = head_of(base, ["gcd", "add", "log"])
    loaded = ToolkenHead.load(head.save(tmp_path / "toolkens"), base=base)
    assert torch.equal(loaded.weight, head.weight) and torch.equal(loaded.bias, head.bias)
    assert loaded.info.model_copy(update={"weights_sha256": ""}) == head.info
    first = {file.name: file.read_bytes() for file in (tmp_path / "toolkens").iterdir()}
    loaded.save(tmp_path / "toolkens")
    assert first == {file.name: file.read_bytes() for file in (tmp_path / "toolkens").iterdir()}
    assert set(first) == {"toolkens.json", "toolkens.safetensors"}


def test_another_base_is_refused_with_both_names_and_the_fix(base: BaseLM, tmp_path: Path) -> None:
    head_of(base, ["gcd"]).save(tmp_path)
    with pytest.raises(UserError, match=r"on `tiny-llama` .* is `tiny-qwen2` .* load the base `tiny-llama`"):
        ToolkenHead.load(tmp_path, base=tiny_base("qwen2"))
    with pytest.raises(UserError, match=r"\(float32, .* \(bfloat16, .* load it with dtype: float32"):
        ToolkenHead.load(tmp_path, base=tiny_base("llama", dtype=torch.bfloat16))
    with pytest.raises(UserError, match="revision, quantization and adapter"):
        ToolkenHead.load(tmp_path, base=tiny_base("llama", seed=1))
    assert ToolkenHead.load(tmp_path).names == ("gcd",)


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        content = json.loads((folder / "toolkens.json").read_text())
        change(content)
        (folder / "toolkens.json").write_text(json.dumps(content))

    return apply


def write(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda folder: [(folder / name).write_bytes(change((folder / name).read_bytes()))] and None


def tensors(weight: Tensor, bias: Tensor, **more: Tensor) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        save_file({"weight": weight, "bias": bias, **more}, folder / "toolkens.safetensors")
        edit(lambda content: content.update(weights_sha256=""))(folder)

    return apply


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (edit(lambda c: c.update(format_version=2)), "format version 2 cannot be read, this toolken reads 1"),
        (edit(lambda c: c.update(hidden_size=31)), r"weight \(2, 32\) and bias \(2,\) do not fit 2 tools of width 31"),
        (edit(lambda c: c["tools"].pop()), r"do not fit 1 tools of width 32"),
        (edit(lambda c: c["tools"][0].update(name="add", schema_hash="")), "<add> stands for two rows"),
        (edit(lambda c: c["tools"][0].update(name="add")), "<add> is not the tool of its schema hash"),
        (edit(lambda c: c["tools"][0].update(name="a>(\n", schema_hash="")), "the name cannot be shown as <name>"),
        (edit(lambda c: c["tools"][0].update(parameters={"properties": 5})), "its parameters are no JSON Schema"),
        (edit(lambda c: c["tools"][0].update(variadic="z")), "its variadic argument `z` is not one of its arguments"),
        (edit(lambda c: c["tools"][0].update(description="\ud800")), "half of a surrogate pair"),
        (edit(lambda c: c.update(format_version=True)), "format version True cannot be read"),
        (write("toolkens.json", lambda b: b"[" * 100_000), "no valid JSON"),
        (
            write("toolkens.json", lambda b: b.replace(b'"shift": 0.0', b'"shift": 1e999', 1)),
            "1e999 is too large for a number",
        ),
        (write("toolkens.json", lambda b: b.replace(b"{", b'{"hidden_size": 8,', 1)), "'hidden_size' appears twice"),
        (edit(lambda c: c.update(surprise=1)), r"toolkens.json \(surprise\)"),
        (edit(lambda c: c["tools"][1].pop("name")), r"toolkens.json \(tools.1.name\)"),
        (write("toolkens.json", lambda b: b.replace(b'"tools": [', b'"tools": [,')), r"toolkens.json:7: no valid JSON"),
        (write("toolkens.json", lambda b: b.replace(b"0.0001", b"NaN")), "NaN is not a number of JSON"),
        (write("toolkens.json", lambda b: b"[]"), "format version None"),
        (write("toolkens.json", lambda b: b"\xff" + b), "toolkens.json:1: not UTF-8 text"),
        (write("toolkens.safetensors", lambda b: b[:-7]), "it is damaged"),
        (write("toolkens.safetensors", lambda b: b""), "it is damaged"),
        (write("toolkens.safetensors", lambda b: b[:-1] + b"\x01"), "not the file that toolkens.json beside it"),
        (tensors(torch.zeros(2, 32), torch.tensor([0.0, torch.nan])), "not finite"),
        (tensors(torch.full((2, 32), torch.inf), torch.zeros(2)), "not finite"),
        (tensors(torch.zeros(2, 32).double(), torch.zeros(2)), "rows are float32"),
        (tensors(torch.zeros(2, 32), torch.zeros(2), more=torch.zeros(1)), "not weight and bias"),
        (lambda folder: (folder / "toolkens.json").unlink(), "toolkens.json: cannot be read"),
        (lambda folder: (folder / "toolkens.safetensors").unlink(), "toolkens.safetensors: cannot be read"),
    ],
)
def test_damage_is_refused_in_one_line(
    base: BaseLM, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    head_of(base, ["gcd", "add"]).save(tmp_path)
    damage(tmp_path)
    with pytest.raises(UserError, match=message) as caught:
        ToolkenHead.load(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("rename", "found"), [(1, "old"), (2, "old"), (3, "new")])
def test_a_save_that_is_cut_short_leaves_the_old_pair_or_the_new_one(
    base: BaseLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rename: int, found: str
) -> None:
    heads = {"old": head_of(base, ["gcd"]), "new": head_of(base, ["gcd", "add"], seed=1)}
    heads["old"].save(tmp_path / "cut")
    heads["new"].save(tmp_path / "whole")
    replace, renames = os.replace, []

    def killed(source: Path, target: Path) -> None:
        renames.append(target)
        if len(renames) == rename:
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", killed)
        heads["new"].save(tmp_path / "cut")
    left = ToolkenHead.load(tmp_path / "cut")
    assert left.names == heads[found].names and left.weight.equal(heads[found].weight)
    for name in ("new", "old", "new"):
        heads[name].save(tmp_path / "cut")
        assert ToolkenHead.load(tmp_path / "cut").names == heads[name].names
    files = [{file.name: file.read_bytes() for file in (tmp_path / at).iterdir()} for at in ("cut", "whole")]
    assert files[0] == files[1]


def test_row_operations_keep_the_bytes_of_other_rows(base: BaseLM) -> None:
    head = head_of(base, ["gcd", "add", "log", "power"])
    more = head_of(base, ["sqrt", "ln"], seed=1)
    grown = head.add(more.info.tools, more.weight, more.bias)
    assert grown.names == ("gcd", "add", "log", "power", "sqrt", "ln")
    shrunk = grown.remove(["add", "sqrt"])
    assert shrunk.names == ("gcd", "log", "power", "ln")
    picked = grown.select(["ln", "gcd"])
    assert picked.names == ("ln", "gcd")
    merged = head.merge(more)
    assert merged.names == grown.names
    for result in (grown, shrunk, picked, merged):
        for name in result.names:
            source = head if name in head.names else more
            assert row_bytes(result, name) == row_bytes(source, name)
            assert result.info.tools[result.names.index(name)] == source.info.tools[source.names.index(name)]
    assert head.names == ("gcd", "add", "log", "power")


def test_rows_that_do_not_belong_are_refused(base: BaseLM) -> None:
    head = head_of(base, ["gcd", "add"])
    with pytest.raises(UserError, match="<add> has a row already"):
        head.merge(head_of(base, ["log", "add"], seed=1))
    with pytest.raises(UserError, match=r"two bases, `tiny-llama` .* and `tiny-phi`"):
        head.merge(head_of(tiny_base("phi"), ["log"]))
    with pytest.raises(UserError, match=r"new rows \(1, 8\) are not 32 wide"):
        head.add([ToolRecord(name="log")], torch.zeros(1, 8), torch.zeros(1))
    with pytest.raises(UserError, match=r"no row for <gdc>; did you mean `gcd`\?"):
        head.remove(["gdc"])


def test_merging_rows_of_two_prompts_warns_and_names_both(base: BaseLM) -> None:
    other = Prompt("Question: ", "\nA:", chat=False, answer_pattern="is", stop=(), conclusion="")
    with pytest.warns(UserWarning, match=f"{PROMPT.hash[:12]} and {other.hash[:12]}"):
        merged = head_of(base, ["gcd"]).merge(head_of(base, ["add"], prompt=other))
    assert merged.info.prompt.hash == PROMPT.hash
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        head_of(base, ["gcd"]).merge(head_of(base, ["add"]))


def test_merged_rows_keep_what_they_share_and_both_histories(base: BaseLM) -> None:
    rows = [head_of(base, [name], seed=seed) for seed, name in enumerate(["gcd", "add"])]
    first, second = (
        ToolkenHead(
            head.weight, head.bias, head.info.model_copy(update={"training": {"base": {"name": "b"}, "l2": l2}})
        )
        for head, l2 in zip(rows, (1e-4, 1e-3), strict=True)
    )
    assert first.merge(second).info.training == {"base": {"name": "b"}, "merged": [{"l2": 1e-4}, {"l2": 1e-3}]}
    assert first.merge(rows[1]).info.data == first.info.data


def test_calibration_moves_the_bias_only_and_can_be_redone(base: BaseLM, tmp_path: Path) -> None:
    head = head_of(base, ["gcd", "add"])
    once = head.calibrated(1.5, torch.tensor([0.25, 0.0]), record={"target": "f1"})
    assert torch.equal(once.bias, head.bias + 1.5 + torch.tensor([0.25, 0.0]))
    assert torch.equal(once.weight, head.weight)
    again = ToolkenHead.load(once.save(tmp_path)).calibrated(0.0, torch.zeros(2), record={})
    assert torch.equal(again.bias, head.bias)
    parts = once.info.tools[0].bias_parts
    assert parts is not None and (parts.shift, parts.per_tool) == (1.5, 0.25)


def test_an_untrained_tool_is_masked_and_its_row_finite(base: BaseLM) -> None:
    tools = [ToolRecord.of(ARITHMETIC["gcd"], examples=3), ToolRecord.of(ARITHMETIC["add"])]
    info = HeadInfo.for_base(base, tools, prompt=PromptRecord())
    head = ToolkenHead(torch.zeros(2, base.hidden_size), torch.zeros(2), info)
    assert head.trained.tolist() == [True, False]
    assert head.logits(torch.ones(1, base.hidden_size), base).isfinite().all()


def test_a_head_does_not_share_memory_with_what_it_was_made_of(base: BaseLM) -> None:
    weight = torch.zeros(1, base.hidden_size)
    info = HeadInfo.for_base(base, [ToolRecord(name="gcd")], prompt=PromptRecord())
    head = ToolkenHead(weight, torch.zeros(1), info)
    weight += 1
    assert head.weight.abs().sum() == 0
