"""A GGUF file becomes the same model, exactly, without the padding that the file calls words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from gguf import GGUFWriter, TokenType
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from tests.tiny import CHAT_TEMPLATE, tiny_model, tiny_tokenizer
from toolken.errors import UserError
from toolken.model.base import BaseLM

PADDED = 8
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.layers.": "blk.",
}


def write_gguf(path: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write a qwen2 as the usual converters do."""
    config = model.config
    writer = GGUFWriter(path, "qwen2")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    words = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    words += [f"[PAD{row}]" for row in range(len(words), len(words) + PADDED)]
    special = set(tokenizer.all_special_tokens)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(words)
    kinds = [TokenType.CONTROL if word in special else TokenType.NORMAL for word in words[:-PADDED]]
    writer.add_token_types(kinds + [TokenType.UNUSED] * PADDED)
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    writer.add_chat_template(CHAT_TEMPLATE)
    for name, tensor in model.state_dict().items():
        for theirs, ours in NAMES.items():
            name = name.replace(theirs, ours)
        writer.add_tensor(name, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_gguf_file_becomes_the_same_model_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOOLKEN_CACHE", str(tmp_path / "cache"))
    tokenizer = tiny_tokenizer("glue")
    # The qwen2 tokenizer adds these where a file lacks them.
    tokenizer.add_special_tokens({"unk_token": "<|endoftext|>"})
    tokenizer.add_tokens(["<|im_start|>", "<|im_end|>"], special_tokens=True)
    model = tiny_model("qwen2", len(tokenizer) + PADDED)
    write_gguf(tmp_path / "tiny.gguf", model, tokenizer)
    base = BaseLM.load(str(tmp_path / "tiny.gguf"), dtype="float32", device="cpu")
    assert "Converting tiny.gguf" in capsys.readouterr().err
    ids = torch.tensor([[5, 60, 70, 80, 90]])
    with torch.no_grad():
        own = model(input_ids=ids).logits
    assert base.vocab_size == len(base.tokenizer) == len(tokenizer)
    assert torch.equal(base.word_logits(base.hidden(ids)), own[..., : len(tokenizer)])
    assert tokenizer.eos_token_id in base.eos_ids
    assert base.tokenizer.chat_template == CHAT_TEMPLATE
    text = "Q: What is 12 + 30?\n"
    assert base.tokenizer.decode(base.tokenizer.encode(text)) == text
    again = BaseLM.load(str(tmp_path / "tiny.gguf"), dtype="float32", device="cpu")
    assert "Converting" not in capsys.readouterr().err
    assert again.fingerprint == base.fingerprint


@pytest.mark.parametrize("content", [b"", b"no gguf file at all", b"GGUF\x03\x00\x00\x00" + b"\xff" * 64])
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.gguf").write_bytes(content)
    with pytest.raises(
        UserError, match=r"bad\.gguf: it cannot be converted: .*; use a safetensors directory"
    ) as caught:
        BaseLM.load(str(tmp_path / "bad.gguf"))
    assert "\n" not in str(caught.value)
