"""Tiny random models and tokenizers, made offline from a seed: what the laws are tested on.

Weights are scaled so that logits are far from flat and greedy outputs vary; head biases are not zero; soft caps bite.
Tokenizers are lossless on any text. Every call makes a new object from the same numbers.
"""

from __future__ import annotations

import json
from typing import Literal, get_args

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForCausalLM,
    CohereConfig,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    GraniteConfig,
    LlamaConfig,
    MistralConfig,
    OPTConfig,
    PhiConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

from toolken.model.base import BaseLM

TokenizerKind = Literal["split", "merge", "glue", "equals", "sentencepiece"]
Family = Literal[
    "llama", "qwen2", "qwen3", "gemma2", "gemma3", "granite", "cohere", "gpt2", "opt", "phi", "mistral"
]  # fmt: skip
TOKENIZER_KINDS: tuple[TokenizerKind, ...] = get_args(TokenizerKind)
FAMILIES: tuple[Family, ...] = get_args(Family)

SPECIALS = ["<pad>", "<s>", "</s>", "<|user|>", "<|assistant|>"]
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
CORPUS = [
    "Question: What is the greatest common divisor of the numbers? Answer: The answer is",
    "Q: How many are there in total? A: So the total is the sum of them, which is equal to",
    "Each of the boxes holds the same number of apples and costs dollars. The remainder is",
    "answer answer answer question question number number total total is is is the the the of of and and",
    "\n\nQ: A: \n#### , . ? ( ) = + - * / $ % ' \" : ;",
]


def _digits(prefix: str, longest: int) -> list[str]:
    """All digit strings up to a length, each after a prefix: their merges are trained in."""
    return [prefix + str(number).zfill(length) for length in range(1, longest + 1) for number in range(10**length)]


def _byte_level(pattern: str, extra: list[str]) -> Tokenizer:
    """Train a byte-level BPE that never merges across the pieces of a pattern."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=len(SPECIALS) + 256 + 110 + len(extra),
        special_tokens=SPECIALS,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS + extra * 40, trainer)
    return tokenizer


def _sentencepiece() -> Tokenizer:
    """Train a BPE over ▁ with the dummy prefix space, single digits and byte fallback, as Llama 2 has it."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\d|▁+[^▁\d]*"), "isolated")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    alphabet = [chr(code) for code in range(33, 127)] + ["▁"]
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=len(SPECIALS) + 1 + 256 + 220,
        special_tokens=[*SPECIALS, "<unk>"],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator([piece for line in CORPUS for piece in line.split("\n")], trainer)
    # Byte pieces are ordinary entries of the model, not added tokens: text such as "<0x41>" must not turn into a byte.
    vocab = tokenizer.get_vocab()
    merges = _merges(tokenizer)
    vocab.update({piece: len(vocab) + rank for rank, piece in enumerate(byte_tokens)})
    tokenizer.model = models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    return tokenizer


def _merges(tokenizer: Tokenizer) -> list[tuple[str, str]]:
    """Read the merges back from the serialised tokenizer."""
    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]


def tiny_tokenizer(kind: TokenizerKind = "split") -> PreTrainedTokenizerFast:
    """Return a small lossless tokenizer that treats digits and spaces in one of the five ways that matter.

    `split`: single digits, the space a token of its own. `merge`: up to three digits a token, the space glued to
    words only. `glue`: the space glued to words and digits alike. `equals`: "=2" may be one token. `sentencepiece`:
    ▁ and a dummy prefix space. `merge` and `sentencepiece` put a beginning-of-sequence token in front by themselves.
    """
    if kind == "split":
        tokenizer = _byte_level(r"\p{N}|\s|[^\s\p{N}]+", [])
    elif kind == "merge":
        tokenizer = _byte_level(r"\p{N}{1,3}| ?[^\s\p{N}]+|\s", _digits("", 3))
    elif kind == "glue":
        tokenizer = _byte_level(r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s", _digits("", 2) + _digits(" ", 2))
    elif kind == "equals":
        tokenizer = _byte_level(r"=\p{N}|\p{N}|\s|[^\s\p{N}]", _digits("=", 1))
    else:
        tokenizer = _sentencepiece()
    if kind in ("merge", "sentencepiece"):
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        extra_special_tokens=["<|user|>", "<|assistant|>"],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=512,
    )


def _config(family: Family, rows: int) -> PreTrainedConfig:
    """Return the smallest configuration of a family that still has all its parts."""
    ids = {"vocab_size": rows, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    size = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "max_position_embeddings": 512}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    shared = ids | size | heads
    if family == "llama":
        return LlamaConfig(**shared)
    if family == "qwen2":
        return Qwen2Config(**shared)
    if family == "qwen3":
        return Qwen3Config(**shared, head_dim=8)
    capped = {"head_dim": 8, "final_logit_softcapping": 4.0, "sliding_window": 16, "tie_word_embeddings": False}
    if family == "gemma2":
        return Gemma2Config(**shared, **capped)
    if family == "gemma3":
        return Gemma3TextConfig(**shared, **capped)
    if family == "granite":
        return GraniteConfig(**shared, logits_scaling=0.7, embedding_multiplier=2.0, residual_multiplier=0.8)
    if family == "cohere":
        return CohereConfig(**shared, logit_scale=0.6)
    if family == "gpt2":
        return GPT2Config(**ids, n_embd=32, n_inner=48, n_layer=2, n_head=4, n_positions=512)
    if family == "opt":
        return OPTConfig(
            **ids, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=512
        )
    if family == "phi":
        return PhiConfig(**ids, **size, num_attention_heads=4)
    return MistralConfig(**shared, sliding_window=16)


def tiny_model(
    family: Family, vocab_rows: int, *, seed: int = 0, dtype: torch.dtype = torch.float32
) -> PreTrainedModel:
    """Return a random causal model with so many head rows, two layers and hidden size 32, in eval mode."""
    model = AutoModelForCausalLM.from_config(_config(family, vocab_rows), dtype=torch.float32)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() > 1:
                parameter.copy_(noise * 0.5)
            elif name.endswith("bias"):
                parameter.copy_(noise * 0.3)
            else:  # norm weights: around their neutral value, which is 0 in the gemma families
                parameter.copy_(noise * 0.1 + (0.0 if family.startswith("gemma") else 1.0))
    return model.to(dtype).eval()


def tiny_base(
    family: Family = "llama",
    tokenizer: TokenizerKind = "split",
    *,
    padded: int = 0,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> BaseLM:
    """Return a tiny base; `padded` is how many head rows stand beyond the tokenizer's ids."""
    words = tiny_tokenizer(tokenizer)
    model = tiny_model(family, len(words) + padded, seed=seed, dtype=dtype)
    return BaseLM.from_model(model, words, name=f"tiny-{family}")
