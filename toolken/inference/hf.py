"""The backend for bases that run here through transformers: hidden states, logits, ranked candidates.

A step of many questions is one pass for those that decode and few passes for those that read new text. Toolken logits
stand beside the word logits, with the calibrated bias and the caller's shift; ids that do not exist (padded rows)
never appear.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from toolken.inference.backend import Candidate, Request
from toolken.inference.contexts import open_contexts
from toolken.inference.ranking import candidates, perturb
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead


class HFBackend:
    """Ranks what may come next.

    Args:
        base: The frozen base.
        head: The toolkens; None for words alone.
        bias: Added to every toolken logit.
        temperature: Of requests with noise.
        top_p: Nucleus of requests with noise.
        token_budget: Padded tokens of one pass over new text.

    Attributes:
        seconds: Time spent in `rank`.
    """

    def __init__(
        self,
        base: BaseLM,
        head: ToolkenHead | None = None,
        *,
        bias: float = 0.0,
        temperature: float = 0.0,
        top_p: float = 1.0,
        token_budget: int = 4096,
    ) -> None:
        self.seconds = 0.0
        self._base, self._head, self._bias = base, head, bias
        self._temperature, self._top_p = temperature, top_p
        self._contexts = open_contexts(base, token_budget=token_budget)
        self._masks: dict[int, tuple[frozenset[int], Tensor]] = {}

    @property
    def eos_ids(self) -> frozenset[int]:
        """Every id that ends a text."""
        return self._base.eos_ids

    @property
    def max_length(self) -> int | None:
        """The longest context of the base."""
        return self._base.max_length

    @property
    def fed_tokens(self) -> int:
        """Tokens fed to the base so far, shared prefixes included."""
        return self._contexts.fed

    def token_text(self, ids: Sequence[int]) -> str:
        """Return the text of ids as they stand."""
        text = self._base.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return str(text)

    def release(self, slot: int) -> int:
        """Forget a context and return how many tokens were fed for it."""
        self._masks.pop(slot, None)
        return self._contexts.release(slot)

    def rank(self, requests: Sequence[Request]) -> list[Iterator[Candidate]]:
        """Return for each request its candidates, best first."""
        start = time.perf_counter()
        hidden = self._contexts.hidden(requests)  # (N, d)
        words = self._base.word_logits(hidden)  # (N, V)
        scores = torch.cat([words, self._toolken_logits(hidden, requests).to(words.device)], dim=-1)  # (N, V + K)
        ranked = [
            candidates(self._perturbed(row, request.noise), words=words.shape[-1])
            for row, request in zip(scores, requests, strict=True)
        ]
        self.seconds += time.perf_counter() - start
        return ranked

    def _toolken_logits(self, hidden: Tensor, requests: Sequence[Request]) -> Tensor:
        """Return the logits of toolkens (N, K), those that a request does not allow at minus infinity."""
        if self._head is None:
            return hidden.new_empty((len(hidden), 0), dtype=torch.float32)
        # The columns stay when nothing is allowed: a draw has the same noise in any company.
        if not any(request.toolkens for request in requests):
            return hidden.new_full((len(hidden), len(self._head.bias)), -torch.inf, dtype=torch.float32)
        with torch.no_grad():
            logits = self._head.logits(hidden, self._base) + self._bias
        allowed = torch.stack([self._allowed(request) for request in requests])
        return logits.masked_fill(~allowed.to(logits.device), -torch.inf)

    def _allowed(self, request: Request) -> Tensor:
        """Return the mask (K,) of a request; a slot that asks with the same set again gets the same mask."""
        kept = self._masks.get(request.slot)
        if kept is not None and kept[0] is request.toolkens:
            return kept[1]
        mask = torch.zeros(len(self._head.bias) if self._head is not None else 0, dtype=torch.bool)
        mask[sorted(request.toolkens)] = True
        self._masks[request.slot] = (request.toolkens, mask)
        return mask

    def _perturbed(self, scores: Tensor, noise: int | None) -> Tensor:
        if noise is None or self._temperature == 0:
            return scores
        return perturb(scores, seed=noise, temperature=self._temperature, top_p=self._top_p)
