"""What cannot be reproduced exactly is refused, with the reason."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import Cohere2Config, FalconH1Config, GraniteConfig, LlamaForCausalLM, LlamaModel
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast

from tests.tiny import tiny_model, tiny_tokenizer
from toolken.errors import UserError
from toolken.model.architecture import Transform, _candidates
from toolken.model.base import BaseLM


class SecretScale(LlamaForCausalLM):
    """Scales its logits by a number that stands nowhere."""

    def forward(self, *args: Any, **kwargs: Any) -> CausalLMOutputWithPast:
        out = super().forward(*args, **kwargs)
        out.logits = out.logits * 1.001
        return out


class SecretInput(LlamaForCausalLM):
    """Lets its head read something else than the body's last hidden state."""

    def forward(self, input_ids: torch.Tensor, **kwargs: Any) -> CausalLMOutputWithPast:
        hidden = self.model(input_ids=input_ids).last_hidden_state
        return CausalLMOutputWithPast(logits=self.lm_head(hidden / 2) * 2)


class UnusedHead(LlamaForCausalLM):
    """Computes logits without calling its head."""

    def forward(self, input_ids: torch.Tensor, **kwargs: Any) -> CausalLMOutputWithPast:
        hidden = self.model(input_ids=input_ids).last_hidden_state
        return CausalLMOutputWithPast(logits=hidden @ self.lm_head.weight.T)


def disguised(kind: type[LlamaForCausalLM]) -> BaseLM:
    tokenizer = tiny_tokenizer()
    model = tiny_model("llama", len(tokenizer))
    model.__class__ = kind
    return BaseLM.from_model(model, tokenizer, name="odd")


def test_unknown_scale_of_logits_is_refused() -> None:
    with pytest.raises(UserError, match=r"odd: SecretScale cannot be used exactly: its logits differ .* by 1\.0e-03"):
        disguised(SecretScale)


@pytest.mark.parametrize("kind", [SecretInput, UnusedHead])
def test_another_head_input_is_refused(kind: type[LlamaForCausalLM]) -> None:
    with pytest.raises(UserError, match="its head does not read the last hidden state"):
        disguised(kind)


def test_the_probe_leaves_no_hook_where_the_model_fails() -> None:
    class Failing(LlamaForCausalLM):
        def forward(self, *args: Any, **kwargs: Any) -> CausalLMOutputWithPast:
            raise ZeroDivisionError

    tokenizer = tiny_tokenizer()
    model = tiny_model("llama", len(tokenizer))
    model.__class__ = Failing
    with pytest.raises(ZeroDivisionError):
        BaseLM.from_model(model, tokenizer, name="failing")
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_a_body_without_a_head_is_refused() -> None:
    tokenizer = tiny_tokenizer()
    body = tiny_model("llama", len(tokenizer)).base_model
    assert isinstance(body, LlamaModel)
    with pytest.raises(UserError, match="has no output head on a body"):
        BaseLM.from_model(body, tokenizer, name="body")


def test_a_fact_that_the_model_ignores_is_not_applied() -> None:
    """The probe decides, not the configuration."""
    tokenizer = tiny_tokenizer()
    model = tiny_model("llama", len(tokenizer))
    model.config.final_logit_softcapping = 4.0
    assert BaseLM.from_model(model, tokenizer, name="tiny").affine


def test_facts_of_a_configuration_become_candidates() -> None:
    assert Transform(divisor=8.0) in _candidates(GraniteConfig(logits_scaling=8.0))
    assert Transform(factor=0.25) in _candidates(Cohere2Config(logit_scale=0.25))
    assert Transform(factor=0.5) in _candidates(FalconH1Config(lm_head_multiplier=0.5))


def test_a_body_that_returns_nothing_cached_still_probes() -> None:
    """The probe passes no cache, so models that have none are not refused for it."""

    class Plain(LlamaModel):
        def forward(self, input_ids: torch.Tensor, **kwargs: Any) -> BaseModelOutputWithPast:
            assert kwargs["use_cache"] is False
            return super().forward(input_ids=input_ids, **kwargs)

    tokenizer = tiny_tokenizer()
    model = tiny_model("llama", len(tokenizer))
    model.model.__class__ = Plain
    assert BaseLM.from_model(model, tokenizer, name="plain").vocab_size == len(tokenizer)
