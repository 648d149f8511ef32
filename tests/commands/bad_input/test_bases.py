"""Bases that cannot be loaded: which part, why, and where another comes from. Nothing of a run is left behind."""

from __future__ import annotations

import pytest

from tests.commands.bad_input.refusal import TRAIN, Bench, Refusal

NAMED = TRAIN.replace("{base}", "b")

REFUSALS = [
    Refusal(
        "a directory that is missing",
        {},
        TRAIN.replace("{base}", "./b"),
        "./b: there is no such directory; check base.name",
    ),
    Refusal(
        "a hub id without a network",
        {},
        TRAIN.replace("{base}", "owner/name"),
        "owner/name: HF_HUB_OFFLINE is set, and the model is not in the local cache; connect to it once, or "
        "set base.name to a local directory, a .gguf file or `embedded`",
    ),
    Refusal(
        "a GGUF file that is missing",
        {},
        TRAIN.replace("{base}", "b.gguf"),
        "b.gguf: there is no such file; check base.name",
    ),
    Refusal(
        "a GGUF file that is none",
        {"b.gguf": "x"},
        TRAIN.replace("{base}", "b.gguf"),
        "b.gguf: it cannot be converted: [...]; use a safetensors directory or hub id",
    ),
    Refusal(
        "a file of another kind",
        {"b": "x"},
        NAMED,
        "b: it is neither a directory nor a .gguf file; name the directory that holds config.json",
    ),
    Refusal(
        "an empty directory",
        {"b/": ""},
        NAMED,
        "b: no model lies there (config.json and *.safetensors); check base.name",
    ),
    Refusal(
        "a directory of GGUF files",
        {"b/a.gguf": "x"},
        NAMED,
        "b: the directory holds GGUF files; name the file: b/a.gguf",
    ),
    Refusal(
        "pickled weights",
        {"b/config.json": "{}", "b/pytorch_model.bin": "x"},
        NAMED,
        "b: its weights are pickled, and a pickle can run code when it is opened; save the model again with "
        "save_pretrained, which writes safetensors",
    ),
    Refusal(
        "a configuration that is no JSON",
        {"b/config.json": "{", "b/model.safetensors": "x"},
        NAMED,
        "b: its configuration or tokenizer cannot be loaded: [...]; check that the directory was saved with "
        "save_pretrained",
    ),
    Refusal(
        "an architecture that nobody knows",
        {"b/config.json": '{"model_type": "zzz"}', "b/model.safetensors": "x"},
        NAMED,
        "b: its configuration or tokenizer cannot be loaded: [...]; check that the directory was saved with "
        "save_pretrained",
    ),
    Refusal(
        "a revision of a local directory",
        {},
        TRAIN + " --base.revision main",
        "base.revision: `{base}` lies on this machine and has no revisions; leave it out",
    ),
    Refusal(
        "a device that is none",
        {},
        TRAIN + " --base.device zzz",
        "base.device: `zzz` is no device; use auto, cpu, cuda or cuda:1",
    ),
    Refusal(
        "a device map that is none",
        {},
        TRAIN + " --base.device_map zzz",
        "base.device_map: [...]; use auto, or leave it out",
    ),
    Refusal(
        "a dtype that is none",
        {},
        TRAIN + " --base.dtype fp8",
        "--base.dtype: `base.dtype` is 'fp8': input should be 'auto', 'float32', 'bfloat16' or 'float16'; "
        "base.dtype: `auto`: bfloat16 where the device computes it natively, else float32.",
    ),
    Refusal(
        "an adapter that is missing",
        {},
        TRAIN + " --base.adapter ./a",
        "./a: there is no such directory; check base.adapter",
    ),
    Refusal(
        "an adapter of the hub without a network",
        {},
        TRAIN + " --base.adapter owner/name",
        "owner/name: there is no such directory, HF_HUB_OFFLINE is set, and no adapter of that name is in "
        "the local cache; check base.adapter, or connect to the hub once",
    ),
    Refusal(
        "an adapter without weights",
        {"a/": ""},
        TRAIN + " --base.adapter a",
        "a: the adapter has no adapter_model.safetensors; save it again with PEFT's save_pretrained, which "
        "writes safetensors",
    ),
    Refusal(
        "a chat template that is missing",
        {},
        TRAIN + " --prompt.template builtin:chatt",
        "prompt.template: no prompt builtin:chatt; did you mean `builtin:chat`?",
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=[refusal.name for refusal in REFUSALS])
def test_bases_that_cannot_be_used_are_refused_in_one_line(bench: Bench, refusal: Refusal) -> None:
    bench.check(refusal)
