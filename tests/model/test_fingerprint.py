"""Two bases share a fingerprint exactly when they give the same numbers for the same text."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM
from transformers.modeling_outputs import CausalLMOutputWithPast

from tests.tiny import tiny_base, tiny_model, tiny_tokenizer
from toolken.model import fingerprint as module
from toolken.model.base import BaseLM


def test_the_same_base_has_the_same_fingerprint_whatever_its_name_and_use() -> None:
    first = tiny_base("llama")
    tokenizer = tiny_tokenizer()
    tokenizer(["a", "b c d"], padding=True, truncation=True, max_length=4)  # leaves its state in the backend
    second = BaseLM.from_model(tiny_model("llama", len(tokenizer)), tokenizer, name="another name")
    assert first.fingerprint == second.fingerprint
    assert len(first.fingerprint) == 64


def test_one_weight_dtype_tokenizer_and_quantisation_change_it() -> None:
    tokenizer = tiny_tokenizer()
    nudged = tiny_model("llama", len(tokenizer))
    with torch.no_grad():
        nudged.model.layers[1].mlp.down_proj.weight[3, 5] += 1e-3
    windowed = tiny_model("mistral", len(tokenizer))  # the weights of the llama, and a window
    other_words = tiny_tokenizer()
    other_words.add_tokens(["zzz"])
    prints = [
        tiny_base("llama").fingerprint,
        tiny_base("llama", seed=1).fingerprint,
        tiny_base("llama", dtype=torch.bfloat16).fingerprint,
        tiny_base("llama", "glue").fingerprint,
        BaseLM.from_model(nudged, tokenizer, name="nudged").fingerprint,
        BaseLM.from_model(windowed, tokenizer, name="windowed").fingerprint,
        BaseLM.from_model(tiny_model("llama", len(tokenizer)), other_words, name="words").fingerprint,
        BaseLM(tiny_model("llama", len(tokenizer)), tokenizer, name="q", loaded="quantization=8bit").fingerprint,
    ]
    assert len(set(prints)) == len(prints)


def test_a_large_base_is_sampled_and_its_head_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WHOLE_BYTES", 0)
    monkeypatch.setattr(module, "SAMPLE", 16)
    tokenizer = tiny_tokenizer()
    plain = tiny_base("llama").fingerprint
    changed = tiny_model("llama", len(tokenizer))
    with torch.no_grad():
        changed.lm_head.weight[5, 7] += 1e-3
    assert BaseLM.from_model(changed, tokenizer, name="head").fingerprint != plain
    assert tiny_base("llama").fingerprint == plain
    assert tiny_base("llama", seed=1).fingerprint != plain


def test_the_state_is_read_before_the_first_call() -> None:
    """Quantised layers rearrange their weights when they are called, and break when their state is read afterwards."""

    class Rearranging(LlamaForCausalLM):
        called = False

        def forward(self, *args: Any, **kwargs: Any) -> CausalLMOutputWithPast:
            self.called = True
            return super().forward(*args, **kwargs)

        def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
            assert not self.called
            return super().state_dict(*args, **kwargs)

    tokenizer = tiny_tokenizer()
    model = tiny_model("llama", len(tokenizer))
    model.__class__ = Rearranging
    BaseLM.from_model(model, tokenizer, name="quantised")
    assert model.called
