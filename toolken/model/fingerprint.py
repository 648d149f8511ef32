"""One SHA-256 that tells whether two bases give the same numbers: it keys caches and is written into artefacts.

It covers every tensor's name, shape, dtype and bytes, the facts that shapes do not show, and the tokenizer. Bases of
more than `WHOLE_BYTES` are read in a fixed stride per tensor, the head still whole. Where a model lies and what it is
called do not enter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
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
)


def fingerprint(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    head: torch.nn.Module,
    facts: Mapping[str, object],
) -> str:
    """Return the hexadecimal SHA-256 of a base.

    Args:
        model: Its parameters must be on a real device.
        tokenizer: Its vocabulary, merges and splitting rules enter; the state of its padding does not.
        head: The module whose tensors are always read whole.
        facts: Further facts, in JSON types.
    """
    config: Any = model.config.get_text_config(decoder=True)
    described = {key: getattr(config, key, None) for key in CONFIG_KEYS} | {"rope": _rope(config)}
    digest = hashlib.sha256(_json({"facts": dict(facts), "config": described, "tokenizer": _tokenizer(tokenizer)}))
    tensors = model.state_dict()
    whole = sum(tensor.nbytes for tensor in tensors.values()) <= WHOLE_BYTES
    heads = {tensor.data_ptr() for tensor in head.state_dict().values()}
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
