"""The frozen base model: hidden states, word logits and their statistics, with one code path for training and decoding.

The model itself is only called: it stays in eval mode, no parameter requires grad, and nothing is wrapped or resized.
What differs between architectures is found and confirmed in `toolken.model.architecture`, whose probe is the only one
that hooks it, for one pass. Matmuls run in the base's dtype, everything after the head in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import Cache, DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from toolken.errors import UserError
from toolken.model.architecture import examine
from toolken.model.fingerprint import fingerprint
from toolken.model.loading import load_base


class WordStatistics(NamedTuple):
    """Of the word logits over the real vocabulary: float32 (N,) each, on the CPU."""

    lse: Tensor
    max: Tensor
    target: Tensor


class BaseLM:
    """A frozen causal language model with its tokenizer.

    Attributes:
        name: The name that it was asked for by.
        fingerprint: SHA-256 over weights, architecture, tokenizer, dtype, quantisation and adapter.
        model: The transformers model; only ever called.
        tokenizer: The transformers tokenizer.
        device: Where input ids go.
        dtype: Of the head's input and of the vocabulary matmul.
        hidden_size: Width of the head's input.
        vocab_size: Ids that exist; padded head rows at or beyond it do not.
        eos_ids: Every end-of-sequence id that the model or its tokenizer declares.
        max_length: Longest context in tokens, where the model has a limit.
        sliding_window: Positions that a windowed layer sees, where the model has such layers.
        affine: Whether `transform` is affine, which makes the training objective convex.
        croppable: Whether the caches of `new_cache` keep every position of every layer.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str,
        loaded: str = "quantization=none",
    ) -> None:
        model.requires_grad_(False)
        model.train(False)
        self.fingerprint = fingerprint(model, tokenizer, loaded=loaded)
        facts = examine(model, tokenizer, name=name)
        self.name = name
        self.model = model
        self.tokenizer = tokenizer
        self.device: torch.device = model.get_input_embeddings().weight.device  # type: ignore[assignment]
        self.dtype: torch.dtype = model.dtype
        self.hidden_size = facts.hidden_size
        self.vocab_size = facts.vocab_size
        self.eos_ids = facts.eos_ids
        self.max_length = facts.max_length
        self.sliding_window = facts.sliding_window
        self.affine = facts.transform.cap is None
        self.croppable = facts.croppable
        self._facts = facts

    @classmethod
    def load(
        cls,
        name: str = "embedded",
        *,
        revision: str | None = None,
        dtype: str = "auto",
        device: str = "auto",
        device_map: str | None = None,
        quantization: str = "none",
        adapter: str | None = None,
    ) -> BaseLM:
        """Load a hub id, a local directory, a `.gguf` file or `embedded`; the arguments are those of `BaseSection`.

        Raises:
            UserError: It cannot be found or loaded here, or its logits cannot be reproduced.
        """
        model, tokenizer = load_base(
            name,
            revision=revision,
            dtype=dtype,
            device=device,
            device_map=device_map,
            quantization=quantization,
            adapter=adapter,
        )
        return cls(model, tokenizer, name=name, loaded=f"quantization={quantization}")

    @classmethod
    def from_model(cls, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, name: str) -> BaseLM:
        """Take a model that is in memory; it is frozen and probed as a loaded one is."""
        return cls(model, tokenizer, name=name)

    @torch.no_grad()
    def hidden(
        self, ids: Tensor, *, mask: Tensor | None = None, positions: Tensor | None = None, cache: Cache | None = None
    ) -> Tensor:
        """Return the head's input (B, T, d) for ids (B, T).

        Args:
            ids: Real vocabulary ids.
            mask: (B, past + T), 0 at padding; positions follow from it where they are not given.
            positions: (B, T) position of every id in its own context.
            cache: Filled with the keys and values of these ids, and read for those before.
        """
        if positions is None and mask is not None:
            positions = (mask.long().cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        arguments: dict[str, Any] = {"input_ids": ids.to(self.device), "use_cache": cache is not None}
        if mask is not None:
            arguments["attention_mask"] = mask.to(self.device)
        if positions is not None and self._facts.takes_positions:
            arguments["position_ids"] = positions.to(self.device)
        if cache is not None:
            arguments[self._facts.cache_argument] = cache
        hidden: Tensor = self._facts.trunk(**arguments).last_hidden_state
        return hidden

    @torch.no_grad()
    def word_logits(self, hidden: Tensor) -> Tensor:
        """Return `f(W h + c)` of hidden (..., d): float32 (..., vocab_size), padded rows cut off."""
        raw: Tensor = self._facts.head(hidden.to(self._facts.head_device, self.dtype))
        return self.transform(raw[..., : self.vocab_size].float())

    def transform(self, raw: Tensor) -> Tensor:
        """Return `f(raw)`: what the model does to its head's output, for toolken logits; differentiable."""
        return self._facts.transform(raw)

    @torch.no_grad()
    def word_statistics(self, hidden: Tensor, targets: Tensor, *, block: int = 256) -> WordStatistics:
        """Reduce the word logits of hidden (N, d) to three numbers a position.

        Args:
            hidden: Head inputs.
            targets: (N,) word ids whose logits are kept.
            block: Positions whose `vocab_size` logits are held at once; it bounds memory and changes nothing else.
        """
        lse, largest, target = (torch.empty(len(hidden), dtype=torch.float32) for _ in range(3))
        for start in range(0, len(hidden), block):
            rows = slice(start, start + block)
            logits = self.word_logits(hidden[rows])  # (b, vocab_size)
            lse[rows] = logits.logsumexp(-1).cpu()
            largest[rows] = logits.amax(-1).cpu()
            target[rows] = logits.gather(-1, targets[rows, None].to(logits.device))[:, 0].cpu()
        return WordStatistics(lse, largest, target)

    def new_cache(self) -> Cache:
        """Return an empty cache.

        Attention layers keep every position, windowed ones too, so that a cache can be cropped; layers with a recurrent
        state need the cache that the configuration describes.
        """
        return DynamicCache() if self.croppable else DynamicCache(config=self.model.config)

    def head_rows(self, ids: Sequence[int]) -> Tensor:
        """Return the head's rows of some word ids: float32 (n, d) on the CPU.

        Raises:
            UserError: The head is quantised.
        """
        weight: Tensor = self._facts.head.weight  # type: ignore[assignment]
        if not weight.is_floating_point():
            raise UserError(self.name, "the head is quantised, so its rows cannot be read", "use prior: zero")
        return weight[torch.as_tensor(list(ids), device=weight.device)].detach().float().cpu()
