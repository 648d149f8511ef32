"""Heads over tiny bases that make calls happen, and prompts to use them in."""

from collections.abc import Sequence

import torch

from tests.tiny import Family, TokenizerKind, tiny_model, tiny_tokenizer
from toolken.config import PromptSection
from toolken.data.prompts import Prompt, load_prompt
from toolken.model.artefact import HeadInfo, PromptRecord, ToolRecord
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.tools.tool import Tool

BARE = Prompt(before="", after="", chat=False, answer_pattern="answer is", stop=(), conclusion="")
PLAIN = load_prompt(PromptSection(template="builtin:plain"))


def calling_base(family: Family, tokenizer: TokenizerKind = "split") -> BaseLM:
    """A tiny base that likes separators and closing brackets, so that arguments come to an end."""
    words = tiny_tokenizer(tokenizer)
    model = tiny_model(family, len(words))
    with torch.no_grad():
        for mark in ",)":
            model.get_output_embeddings().weight[words.convert_tokens_to_ids(mark)] *= 5
    return BaseLM.from_model(model, words, name=f"calling-{family}")


def head_of(
    base: BaseLM,
    tools: Sequence[Tool],
    *,
    prompt: Prompt = PLAIN,
    weight: torch.Tensor | None = None,
    bias: float = 0.0,
    trained: bool = True,
) -> ToolkenHead:
    """Rows of zeros unless given."""
    records = [
        ToolRecord.of(tool, demonstrations=f"Call <{tool.name}>.\n\nQ: [QUESTION]\nA:", examples=int(trained))
        for tool in tools
    ]
    info = HeadInfo.for_base(base, records, prompt=PromptRecord.of(prompt))
    rows = torch.zeros(len(tools), base.hidden_size) if weight is None else weight
    return ToolkenHead(rows, torch.full((len(tools),), bias), info)


def random_head(
    base: BaseLM, tools: Sequence[Tool], *, bias: float, seed: int = 0, prompt: Prompt = PLAIN
) -> ToolkenHead:
    """Rows like those of the base's own words, so that calls happen here and there."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn((len(tools), base.hidden_size), generator=generator) * 0.5
    return head_of(base, tools, prompt=prompt, weight=weight, bias=bias)


def firing_head(base: BaseLM, tools: Sequence[Tool], ids: Sequence[int], *, prompt: Prompt = PLAIN) -> ToolkenHead:
    """The first tool's row wins behind exactly these ids, and (almost) nowhere else; other rows never do."""
    hidden = base.hidden(torch.tensor([list(ids)]))[0, -1]
    best = float(base.word_logits(hidden).max())
    sharp = 400.0
    weight = torch.zeros(len(tools), base.hidden_size)
    weight[0] = sharp * hidden / hidden.dot(hidden)
    head = head_of(base, tools, prompt=prompt, weight=weight, bias=best + 1 - sharp)
    return head
