"""`toolken`: rows trained as the settings say, calibrated; `toolken-adam`: the published recipe with its fixed bias.

The published recipe learns its rows from the bare training texts and decodes in a few-shot prompt (Hao et al., arXiv
2305.11554, sections 3.2 and 4); both differ from `toolken` in nothing but rows and bias.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolken.config import InferenceSection
from toolken.data.prompts import load_prompt
from toolken.evaluation.benchmarks.benchmark import Item
from toolken.evaluation.methods.method import HeadKind, Setting
from toolken.inference.engine import Engine
from toolken.model.artefact import PromptRecord
from toolken.model.head import ToolkenHead


class Toolken:
    """Toolkens as this package trains them."""

    name = "toolken"
    head: HeadKind = "trained"

    def open(self, setting: Setting, items: Sequence[Item]) -> Engine:
        """Return an engine with toolkens, in the prompt that they were trained in."""
        head = required(setting)
        return Engine(setting.base, head, tools=setting.tools, config=among(setting, head))


class ToolkenAdam:
    """Toolkens of the published recipe."""

    name = "toolken-adam"
    head: HeadKind = "published"

    def open(self, setting: Setting, items: Sequence[Item]) -> Engine:
        """Return an engine with toolkens, in the prompt of the settings, with the recipe's bias."""
        prompt = load_prompt(setting.config.prompt, root=setting.root, tokenizer=setting.base.tokenizer)
        head = required(setting)
        # That rows are used in another prompt than the one of their training is the recipe, and no accident.
        moved = ToolkenHead(head.weight, head.bias, head.info.model_copy(update={"prompt": PromptRecord.of(prompt)}))
        config = among(setting, head).model_copy(update={"bias": setting.config.evaluation.published.bias})
        return Engine(setting.base, moved, tools=setting.tools, config=config)


def required(setting: Setting) -> ToolkenHead:
    """Return the head that a setting holds."""
    if setting.head is None:
        raise RuntimeError("the method was opened without its rows")
    return setting.head


def among(setting: Setting, head: ToolkenHead) -> InferenceSection:
    """Return how to decode with the benchmark's tools alone, where rows of others stand beside them."""
    config = setting.config.inference
    if config.allow or set(head.names) <= set(setting.tools.names):
        return config
    return config.model_copy(update={"allow": [name for name in setting.tools.names if name in head.names]})
