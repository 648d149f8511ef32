"""One SHA-256 that tells whether two bases give the same numbers: it keys caches and is written into artefacts.

It covers every tensor's name, shape, dtype and bytes, the facts that shapes do not show, and the tokenizer. Bases of
more than `WHOLE_BYTES` are read in a fixed stride per tensor, the head still whole. Where a model lies and what it is
called do not enter.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from toolken.errors import UserError

WHOLE_BYTES = 8 << 30
SAMPLE = 1 << 16
# Facts that change numbers and no shape. The whole configuration is not used: its defaults vary between releases.
CONFIG_KEYS = (
    "model_type",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_act",
    "rms_norm_eps",
    "layer_norm_eps",
    "sliding_window",
    "final_logit_softcapping",
    "logits_soft_cap",
    "logits_scaling",
    "logit_scale",
    "lm_head_multiplier",
)


def fingerprint(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, loaded: str) -> str:
    """Return the hexadecimal SHA-256 of a base.

    Args:
        model: Its parameters must be on a real device. A quantised one must not have been called yet: some libraries
            rearrange weights in the first call, and break when their state is read after it.
        tokenizer: Its vocabulary, merges and splitting rules enter; the state of its padding does not.
        loaded: How it was loaded, as far as that changes numbers.
    """
    config: Any = model.config.get_text_config(decoder=True)
    described = {key: getattr(config, key, None) for key in CONFIG_KEYS} | {"rope": _rope(config)}
    described |= {"loaded": loaded, "dtype": str(model.dtype)}
    digest = hashlib.sha256(_json([described, _tokenizer(tokenizer)]))
    tensors = model.state_dict()
    whole = sum(tensor.nbytes for tensor in tensors.values()) <= WHOLE_BYTES
    head = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    heads = set() if head is None else {parameter.data_ptr() for parameter in head.parameters()}
    for name, tensor in sorted(tensors.items()):
        if tensor.is_meta:
            raise UserError("base.device_map", f"{name} was left off the devices", "use more devices, or quantization")
        digest.update(_json([name, list(tensor.shape), str(tensor.dtype)]))
        digest.update(_content(tensor, whole=whole or tensor.data_ptr() in heads))
    return digest.hexdigest()


def _rope(config: Any) -> dict[str, object]:
    """Return the rotary embedding's facts; some releases keep empty entries beside those of each kind of layer."""
    facts: dict[str, object] = getattr(config, "rope_parameters", None) or {}
    by_layer: dict[str, object] = {key: value for key, value in facts.items() if isinstance(value, dict)}
    return by_layer or {key: value for key, value in facts.items() if value is not None}


def _content(tensor: Tensor, *, whole: bool) -> memoryview:
    flat = tensor.detach().reshape(-1)
    if not whole and len(flat) > SAMPLE:
        flat = flat[:: len(flat) // SAMPLE]
    return flat.contiguous().cpu().view(torch.uint8).numpy().data


def _tokenizer(tokenizer: PreTrainedTokenizerBase) -> object:
    """Describe what decides the ids of a text; padding and truncation change with use and are left out."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return sorted(tokenizer.get_vocab().items())
    rules: dict[str, object] = json.loads(backend.to_str())
    return {key: value for key, value in rules.items() if key not in ("padding", "truncation", "version")}


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, default=str).encode()
