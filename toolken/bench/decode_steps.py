"""The time of one decoding step beside the number of toolkens: many contexts in one batch, as the engine asks for them.

Heads of different sizes take turns on the same contexts, step by step; every step feeds the same next token to all of
them, so that only the rows differ. Rows are random: their values change no time.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import torch

from toolken.bench.measure import in_turns
from toolken.data.prompts import Prompt
from toolken.inference.backend import Request
from toolken.inference.hf import HFBackend
from toolken.model.artefact import HeadInfo, PromptRecord, ToolRecord
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.tools.tool import Tool

WARM_UP_STEPS = 2
ROW_SCALE = 0.02


class _Decoding:
    """One head at work on all contexts; a call is a step."""

    def __init__(self, base: BaseLM, head: ToolkenHead, contexts: Sequence[Request], fed: Sequence[int]) -> None:
        self._backend = HFBackend(base, head)
        rows = frozenset(range(len(head.names)))
        self._requests = [request._replace(toolkens=rows) for request in contexts]
        self._fed = fed
        self._steps = 0

    def __call__(self) -> None:
        """Rank what comes next, look at the best of every context, and feed the token that is fed to all heads."""
        for ranked in self._backend.rank(self._requests):
            next(ranked)
        token = self._fed[self._steps % len(self._fed)]
        self._requests = [request._replace(ids=[*request.ids, token]) for request in self._requests]
        self._steps += 1


def random_head(base: BaseLM, tools: int) -> ToolkenHead:
    """Return so many random rows, of tools that take nothing."""
    records = [
        ToolRecord.of(Tool(f"tool_{row}", "", {"type": "object", "properties": {}}, ()), examples=1)
        for row in range(tools)
    ]
    generator = torch.Generator().manual_seed(tools)
    weight = ROW_SCALE * torch.randn(tools, base.hidden_size, generator=generator)
    return ToolkenHead(weight, torch.zeros(tools), HeadInfo.for_base(base, records, prompt=PromptRecord()))


def step_seconds(
    base: BaseLM, prompt: Prompt, questions: Sequence[str], *, sizes: Sequence[int], steps: int
) -> dict[int, float]:
    """Return the median seconds of a step for every number of toolkens.

    Args:
        base: The frozen base.
        prompt: The reasoning prompt; its shared part is computed once a head, before the clock starts.
        questions: One context of the batch each.
        sizes: Numbers of toolkens.
        steps: Steps measured for each.
    """
    prefix = prompt.prefix_ids(base.tokenizer)
    asked = [prompt.question_ids(base.tokenizer, question) for question in questions]
    contexts = [Request(slot, [*prefix, *ids], prefix, frozenset(), None) for slot, ids in enumerate(asked)]
    runs = {str(size): _Decoding(base, random_head(base, size), contexts, asked[0]) for size in sizes}
    in_turns(runs, 1 + WARM_UP_STEPS)  # the first step reads the prompts
    seconds = in_turns(runs, steps)
    return {size: statistics.median(seconds[str(size)]) for size in sizes}
