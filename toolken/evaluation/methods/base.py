"""`base`: words alone, in the settings' own prompt: few-shot chain of thought where that shows worked answers."""

from __future__ import annotations

from collections.abc import Sequence

from toolken.data.prompts import load_prompt
from toolken.evaluation.benchmarks.benchmark import Item
from toolken.evaluation.methods.method import HeadKind, Setting
from toolken.inference.engine import Engine


class Base:
    """The base without tools."""

    name = "base"
    head: HeadKind = "none"

    def open(self, setting: Setting, items: Sequence[Item]) -> Engine:
        """Return an engine without toolkens."""
        prompt = load_prompt(setting.config.prompt, root=setting.root, tokenizer=setting.base.tokenizer)
        return Engine(setting.base, prompt=prompt, config=setting.config.inference)
