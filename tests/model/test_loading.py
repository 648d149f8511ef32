"""Loading from a directory: dtype, device, quantisation, adapters, and what is refused."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PeftConfig, PeftModel, PromptTuningConfig, get_peft_model

from tests.tiny import tiny_model, tiny_tokenizer
from toolken.errors import UserError
from toolken.model import loading
from toolken.model.base import BaseLM


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny llama as `save_pretrained` leaves it."""
    path = tmp_path_factory.mktemp("base")
    tokenizer = tiny_tokenizer("merge")
    tiny_model("llama", len(tokenizer)).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


IDS = torch.tensor([[5, 60, 70, 80, 90]])


def test_a_directory_loads_as_the_model_it_was_saved_from(folder: Path) -> None:
    base = BaseLM.load(str(folder), dtype="float32", device="cpu")
    memory = BaseLM.from_model(tiny_model("llama", len(tiny_tokenizer("merge"))), tiny_tokenizer("merge"), name="m")
    assert torch.equal(base.word_logits(base.hidden(IDS)), memory.word_logits(memory.hidden(IDS)))
    assert not any(parameter.requires_grad for parameter in base.model.parameters())
    assert base.name == str(folder)
    assert base.fingerprint == BaseLM.load(str(folder), dtype="float32", device="cpu").fingerprint


def test_auto_is_bfloat16_only_where_it_is_native(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for native, dtype in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr(loading, "_cpu_has_bfloat16", lambda native=native: native)
        assert BaseLM.load(str(folder), device="cpu").dtype == dtype
    assert BaseLM.load(str(folder), dtype="float16", device="cpu").dtype == torch.float16


def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert loading.choose_device("auto").type == "cpu"
    with pytest.raises(UserError, match="torch sees no CUDA device; use device: auto"):
        loading.choose_device("cuda:1")
    with pytest.raises(UserError, match="`gpu` is no device; use auto, cpu, cuda"):
        loading.choose_device("gpu")


def test_quantisation_without_its_library_names_the_fix(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="4bit needs the bitsandbytes library.*pip install bitsandbytes"):
        BaseLM.load(str(folder), quantization="4bit")


def test_an_8_bit_base_keeps_its_head_and_stands_near_the_whole_one(folder: Path) -> None:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")
    whole = BaseLM.load(str(folder), dtype="bfloat16", device="cpu")
    small = BaseLM.load(str(folder), dtype="bfloat16", device="cpu", quantization="8bit")
    difference = (whole.word_logits(whole.hidden(IDS)) - small.word_logits(small.hidden(IDS))).abs().mean()
    assert 0 < difference < 0.5
    assert torch.equal(whole.head_rows([7]), small.head_rows([7]))
    assert whole.fingerprint != small.fingerprint


def test_a_device_map_loads_the_same_numbers(folder: Path) -> None:
    plain = BaseLM.load(str(folder), dtype="float32", device="cpu")
    mapped = BaseLM.load(str(folder), dtype="float32", device_map="cpu")
    assert torch.equal(plain.word_logits(plain.hidden(IDS)), mapped.word_logits(mapped.hidden(IDS)))
    assert plain.fingerprint == mapped.fingerprint


def adapt(config: PeftConfig) -> PeftModel:
    """Wrap the tiny llama; peft reads names that transformers is about to drop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return get_peft_model(tiny_model("llama", len(tiny_tokenizer("merge"))), config)


def lora(target: Path, modules: list[str]) -> tuple[Path, torch.Tensor]:
    """Save a LoRA adapter with random weights; return its logits too."""
    adapted = adapt(LoraConfig(r=2, target_modules=modules))
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
    adapted.save_pretrained(target, save_embedding_layers=False)
    adapted.eval()
    with torch.no_grad():
        return target, adapted(input_ids=IDS).logits


@pytest.mark.parametrize("modules", [["q_proj", "down_proj"], ["q_proj", "lm_head"]])
def test_an_adapter_gives_the_logits_that_peft_gives(folder: Path, tmp_path: Path, modules: list[str]) -> None:
    adapter, own = lora(tmp_path / "adapter", modules)
    base = BaseLM.load(str(folder), dtype="float32", device="cpu", adapter=str(adapter))
    plain = BaseLM.load(str(folder), dtype="float32", device="cpu")
    logits = base.word_logits(base.hidden(IDS))
    torch.testing.assert_close(logits, own, atol=1e-5, rtol=1e-5)
    assert (logits - plain.word_logits(plain.hidden(IDS))).abs().max() > 0.1
    assert base.fingerprint != plain.fingerprint
    assert not any(parameter.requires_grad for parameter in base.model.parameters())


def test_adapters_that_are_pickled_absent_or_prompts_are_refused(folder: Path, tmp_path: Path) -> None:
    adapter, _ = lora(tmp_path / "adapter", ["q_proj"])
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    with pytest.raises(UserError, match="no adapter_model.safetensors.*save it again"):
        BaseLM.load(str(folder), adapter=str(adapter))
    with pytest.raises(UserError, match="there is no such directory; check base.adapter"):
        BaseLM.load(str(folder), adapter=str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="HF_HUB_OFFLINE is set, and no adapter .* in the local cache; .*connect"):
        BaseLM.load(str(folder), adapter="owner/no-such-adapter")
    config = PromptTuningConfig(num_virtual_tokens=2, task_type="CAUSAL_LM")
    adapt(config).save_pretrained(tmp_path / "prompt")
    with pytest.raises(UserError, match="prompt-tuning adapter.*use a LoRA adapter"):
        BaseLM.load(str(folder), adapter=str(tmp_path / "prompt"))


def test_a_damaged_directory_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(UserError, match="weights are damaged or cut off: .*; copy or download them again") as caught:
        BaseLM.load(str(tmp_path))
    assert "\n" not in str(caught.value)
