"""A tiny base on disk, and settings that train on it in seconds."""

from __future__ import annotations

from pathlib import Path

from tests.tiny import tiny_model, tiny_tokenizer
from toolken.config import Config

LONGEST = 8192


def save_tiny_base(folder: Path) -> Path:
    """Save a tiny llama and its tokenizer as a directory that `base.name` can name."""
    tokenizer = tiny_tokenizer("split")
    tokenizer.model_max_length = LONGEST
    model = tiny_model("llama", len(tokenizer))
    model.config.max_position_embeddings = LONGEST  # few-shot prompts are long where every character is a token
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tiny_config(base: Path, out: Path, **changes: object) -> Config:
    """Settings of a run on generated problems; `changes` are dotted keys with `__` for the dots."""
    document: dict[str, object] = {
        "name": "tiny",
        "out": out,
        "base": {"name": str(base), "dtype": "float32"},
        "data": {"generate": {"per_tool": 3, "plain": 4}, "validation_share": 0.3},
        "prompt": {"template": "builtin:plain", "demonstrations_per_tool": 1},
        "solver": {"l2": 1e-3},
        "inference": {"max_new_tokens": 24, "batch_size": 4},
        "tracking": {"mode": "disabled"},
    }
    for key, value in changes.items():
        *sections, name = key.split("__")
        target = document
        for section in sections:
            target = target.setdefault(section, {})  # type: ignore[assignment]
        target[name] = value
    return Config.model_validate(document)
