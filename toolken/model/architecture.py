"""Every fact about a base's architecture that the rest relies on, and the probe that confirms them.

`word logits = f(head(h))`, `f(raw) = cap * tanh(raw * factor / divisor / cap)`, parts that a model lacks left out.
Facts come from the configuration. At start-up a few ids go through the model: its head must read the last hidden state
of its body, and its own logits must be `f(head(h))`. An architecture where that fails is refused with the reason.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from toolken.errors import UserError

PROBE_LENGTH = 12
# Relative to the largest logit. The probe repeats the model's own arithmetic, so only its rounding may differ.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
ATTENTION_LAYERS = {"full_attention", "sliding_attention", "chunked_attention"}


class Transform(NamedTuple):
    """What a model does to its head's output: `cap * tanh(raw * factor / divisor / cap)`; affine without a cap."""

    factor: float = 1.0
    divisor: float = 1.0
    cap: float | None = None

    def __call__(self, raw: Tensor) -> Tensor:
        """Apply it to raw logits of any shape; differentiable."""
        if self.factor != 1.0:
            raw = raw * self.factor
        if self.divisor != 1.0:
            raw = raw / self.divisor
        if self.cap is not None:
            raw = torch.tanh(raw / self.cap) * self.cap
        return raw


class Architecture(NamedTuple):
    """The parts of a model and its facts.

    Attributes:
        trunk: The body; its last hidden state is what the head reads.
        head: The output head with its bias, if it has one.
        head_device: Where the head reads.
        hidden_size: Width of the head's input.
        vocab_size: Ids that exist; head rows at or beyond it are padding.
        transform: `f`.
        cache_argument: What the trunk calls its cache: `cache` in newer releases, `past_key_values` before.
        takes_positions: Whether the trunk takes position ids.
        croppable: Whether a cache that keeps every position serves all layers.
        sliding_window: Positions that a windowed layer sees, where there are such layers.
        max_length: Longest context in tokens, where there is a limit.
        eos_ids: Every end-of-sequence id that is declared anywhere.
    """

    trunk: torch.nn.Module
    head: torch.nn.Module
    head_device: torch.device
    hidden_size: int
    vocab_size: int
    transform: Transform
    cache_argument: str
    takes_positions: bool
    croppable: bool
    sliding_window: int | None
    max_length: int | None
    eos_ids: frozenset[int]


class Probe(NamedTuple):
    """What a few ids show: all (T, ...) of one sequence."""

    logits: Tensor
    head_input: Tensor
    hidden: Tensor


def examine(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, name: str) -> Architecture:
    """Find the facts of a model in eval mode and confirm them on a few ids.

    Raises:
        UserError: Its logits cannot be reproduced from its head.
    """
    config: Any = model.config.get_text_config(decoder=True)
    trunk: torch.nn.Module = model.base_model
    head: Any = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    if trunk is model or head is None:
        raise UserError(name, f"{type(model).__name__} has no output head on a body", "use a causal language model")
    rows = int(getattr(head, "out_features", None) or head.weight.shape[0])
    vocabulary = min(max(tokenizer.get_vocab().values()) + 1, rows)
    probe = _run_probe(model, trunk, head, vocabulary=vocabulary)
    vocabulary = min(vocabulary, probe.logits.shape[-1])
    tolerance = TOLERANCE.get(model.dtype, TOLERANCE[torch.bfloat16])
    if _distance(probe.head_input, probe.hidden) > tolerance:
        raise _refusal(model, name, "its head does not read the last hidden state of its body")
    transform = _find_transform(model, config, head, probe=probe, vocabulary=vocabulary, tolerance=tolerance, name=name)
    names = inspect.signature(trunk.forward).parameters
    return Architecture(
        trunk=trunk,
        head=head,
        head_device=probe.head_input.device,
        hidden_size=probe.hidden.shape[-1],
        vocab_size=vocabulary,
        transform=transform,
        cache_argument="cache" if "cache" in names else "past_key_values",
        takes_positions="position_ids" in names,
        croppable=set(getattr(config, "layer_types", None) or ()) <= ATTENTION_LAYERS,
        sliding_window=_sliding_window(config),
        max_length=getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None),
        eos_ids=_eos_ids(model.generation_config, config, tokenizer),
    )


@torch.no_grad()
def _run_probe(model: PreTrainedModel, trunk: torch.nn.Module, head: torch.nn.Module, *, vocabulary: int) -> Probe:
    """Run the whole model and its body alone on ids from all over the vocabulary; the hook is gone afterwards."""
    device: Any = model.get_input_embeddings().weight.device
    ids = torch.linspace(0, vocabulary - 1, PROBE_LENGTH).long()[None].to(device)
    arguments = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "use_cache": False}
    seen: list[Tensor] = []
    hook = head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    try:
        logits = model(**arguments).logits[0]
    finally:
        hook.remove()
    hidden = trunk(**arguments).last_hidden_state[0]
    head_input = seen[-1].reshape(-1, seen[-1].shape[-1]) if seen else hidden[:0]
    return Probe(logits, head_input, hidden.to(head_input.device))


@torch.no_grad()
def _find_transform(
    model: PreTrainedModel,
    config: Any,
    head: torch.nn.Module,
    *,
    probe: Probe,
    vocabulary: int,
    tolerance: float,
    name: str,
) -> Transform:
    """Return the transform that reproduces the model's own logits best, if it does so within the tolerance."""
    raw = head(probe.hidden)[:, :vocabulary].float()
    own = probe.logits[:, :vocabulary].float().to(raw.device)
    distances = [(_distance(own, transform(raw)), transform) for transform in _candidates(config)]
    distance, transform = min(distances, key=lambda pair: pair[0])
    if not distance <= tolerance:
        problem = f"its logits differ from f(head(h)) by {distance:.1e} of the largest (allowed: {tolerance:.0e}) for "
        raise _refusal(model, name, problem + "every f that its configuration names")
    return transform


def _candidates(config: Any) -> list[Transform]:
    """List the transforms that the facts of a configuration can mean; the probe decides between them."""
    transforms = [Transform()]
    for key in ("final_logit_softcapping", "logits_soft_cap"):  # gemma 2 to 4; recurrent gemma
        if cap := getattr(config, key, None):
            transforms.append(Transform(cap=float(cap)))
    for key in ("logit_scale", "lm_head_multiplier", "logits_scaling"):  # cohere; falcon-h1; hyperclova x
        if factor := getattr(config, key, None):
            transforms.append(Transform(factor=float(factor)))
    if divisor := getattr(config, "logits_scaling", None):  # granite
        transforms.append(Transform(divisor=float(divisor)))
    return transforms


def _sliding_window(config: Any) -> int | None:
    window = getattr(config, "sliding_window", None)
    types = getattr(config, "layer_types", None)
    if not window or (types and "sliding_attention" not in types):
        return None
    return None if getattr(config, "use_sliding_window", True) is False else int(window)


def _eos_ids(generation: Any, config: Any, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    ids: set[int] = set()
    for holder in (generation, config, tokenizer):
        declared = getattr(holder, "eos_token_id", None)
        ids.update(declared if isinstance(declared, (list, tuple)) else [] if declared is None else [declared])
    return frozenset(int(i) for i in ids)


def _distance(a: Tensor, b: Tensor) -> float:
    """Largest difference, relative to the largest entry."""
    if a.shape != b.shape:
        return float("inf")
    a, b = a.float(), b.float()
    return float((a - b).abs().max() / a.abs().max().clamp(min=1e-30))


def _refusal(model: PreTrainedModel, name: str, reason: str) -> UserError:
    return UserError(
        name, f"{type(model).__name__} cannot be used exactly: {reason}", "use a base of another architecture"
    )
