"""Laws of the frozen base, on tiny random models of every family."""

from __future__ import annotations

import copy

import pytest
import torch

from tests.tiny import FAMILIES, Family, tiny_base, tiny_model, tiny_tokenizer
from toolken.model.base import BaseLM

TEXTS = ["What is the answer to 12 and 34? The remainder is 5", "Q: How many", "the sum of 7 = 7 is the total number"]


def encode(base: BaseLM, text: str) -> torch.Tensor:
    return torch.tensor([base.tokenizer.encode(text, add_special_tokens=False)])


def left_padded(base: BaseLM) -> tuple[torch.Tensor, torch.Tensor]:
    rows = [encode(base, text)[0] for text in TEXTS]
    width = max(len(row) for row in rows)
    ids, mask = torch.zeros(len(rows), width, dtype=torch.long), torch.zeros(len(rows), width, dtype=torch.long)
    for index, row in enumerate(rows):
        ids[index, width - len(row) :], mask[index, width - len(row) :] = row, 1
    return ids, mask


@pytest.mark.parametrize("padded", [0, 16])
@pytest.mark.parametrize("family", FAMILIES)
def test_word_logits_are_the_models_own(family: Family, padded: int) -> None:
    base = tiny_base(family, padded=padded)
    ids = encode(base, TEXTS[0])
    with torch.no_grad():
        own = base.model(input_ids=ids).logits
    mine = base.word_logits(base.hidden(ids))
    assert mine.dtype == torch.float32
    assert mine.shape[-1] == base.vocab_size == len(base.tokenizer) == own.shape[-1] - padded
    assert torch.equal(mine, own[..., : base.vocab_size])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_left_padded_batch_gives_what_each_text_gives_alone(family: Family) -> None:
    base = tiny_base(family)
    ids, mask = left_padded(base)
    together = base.hidden(ids, mask=mask)
    for row, text in enumerate(TEXTS):
        alone = base.hidden(encode(base, text))[0]
        torch.testing.assert_close(together[row, -len(alone) :], alone, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_continued_cache_gives_what_a_fresh_pass_gives(family: Family) -> None:
    """Longer than the sliding window, after a crop, and padded."""
    base = tiny_base(family)
    ids, mask = left_padded(base)
    cache = base.new_cache()
    base.hidden(ids[:, :-3], mask=mask[:, :-3], cache=cache)
    cache.crop(-4)
    rest = base.hidden(ids[:, -7:], mask=mask, cache=cache)
    real = mask[:, -7:].bool()
    fresh = base.hidden(ids, mask=mask)[:, -7:]
    torch.testing.assert_close(rest[real], fresh[real], atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_base_is_frozen_and_stays_as_it_was(family: Family) -> None:
    tokenizer = tiny_tokenizer()
    model = tiny_model(family, len(tokenizer)).train()
    before = copy.deepcopy(model.state_dict())
    base = BaseLM.from_model(model, tokenizer, name=family)
    hidden = base.hidden(encode(base, TEXTS[0]), cache=base.new_cache())
    base.word_statistics(hidden[0], torch.zeros(hidden.shape[1], dtype=torch.long))
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert not any(module.training for module in model.modules())
    assert not any(module._forward_pre_hooks or module._forward_hooks for module in model.modules())
    after = model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("family", ["llama", "gemma2", "cohere", "granite"])
def test_the_transform_carries_gradients_of_the_models_own_function(family: Family) -> None:
    base = tiny_base(family)
    raw = torch.linspace(-9, 9, 13, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(base.transform, (raw,))
    config = base.model.config
    expected = {
        "llama": lambda x: x,
        "gemma2": lambda x: torch.tanh(x / config.final_logit_softcapping) * config.final_logit_softcapping,
        "cohere": lambda x: x * config.logit_scale,
        "granite": lambda x: x / config.logits_scaling,
    }[family]
    assert torch.equal(base.transform(raw), expected(raw))
    assert base.affine is (family != "gemma2")


@pytest.mark.parametrize("family", ["llama", "gemma2", "phi"])
def test_word_statistics_reduce_the_real_vocabulary_whatever_the_block(family: Family) -> None:
    base = tiny_base(family, padded=16)
    hidden = base.hidden(encode(base, TEXTS[0]))[0]
    targets = torch.arange(len(hidden)) * 7 % base.vocab_size
    with torch.no_grad():
        own = base.model(input_ids=encode(base, TEXTS[0])).logits[0, :, : base.vocab_size].double()
    for block in (1, 5, 10_000):
        lse, largest, target = base.word_statistics(hidden, targets, block=block)
        assert lse.dtype == largest.dtype == target.dtype == torch.float32
        torch.testing.assert_close(lse.double(), own.logsumexp(-1), atol=1e-5, rtol=0)
        torch.testing.assert_close(largest.double(), own.amax(-1), atol=1e-5, rtol=0)
        torch.testing.assert_close(target.double(), own[torch.arange(len(own)), targets], atol=1e-5, rtol=0)


def test_in_bfloat16_statistics_and_decoding_see_the_same_numbers() -> None:
    base = tiny_base("llama", dtype=torch.bfloat16)
    hidden = base.hidden(encode(base, TEXTS[0]))[0]
    assert hidden.dtype == torch.bfloat16
    logits = base.word_logits(hidden)
    with torch.no_grad():
        own = base.model(input_ids=encode(base, TEXTS[0])).logits[0]
    assert torch.equal(logits, own.float())
    statistics = base.word_statistics(hidden, logits.argmax(-1), block=len(hidden))
    assert torch.equal(statistics.max, statistics.target)
    assert torch.equal(statistics.lse, logits.logsumexp(-1))


def test_every_declared_end_of_sequence_id_counts() -> None:
    tokenizer = tiny_tokenizer()
    model = tiny_model("llama", len(tokenizer))
    model.generation_config.eos_token_id = [7, 9]
    model.config.eos_token_id = 11
    base = BaseLM.from_model(model, tokenizer, name="tiny")
    assert base.eos_ids == {7, 9, 11, tokenizer.eos_token_id}


def test_windows_and_lengths_are_read_from_the_configuration() -> None:
    assert tiny_base("mistral").sliding_window == 16
    assert tiny_base("llama").sliding_window is None
    assert tiny_base("qwen2").sliding_window is None
    assert tiny_base("gpt2").max_length == tiny_base("llama").max_length == 512


def test_head_rows_are_the_rows_of_those_words() -> None:
    base = tiny_base("llama", dtype=torch.bfloat16)
    weight = base.model.get_output_embeddings().weight
    rows = base.head_rows([3, 17])
    assert rows.dtype == torch.float32
    assert torch.equal(rows, weight[[3, 17]].float())
