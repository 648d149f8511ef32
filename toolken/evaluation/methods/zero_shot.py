"""`zero-shot`: the question in the frame of the settings' prompt, after an instruction and without a worked answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolken.data.align import RESULT
from toolken.data.prompts import Prompt, load_prompt
from toolken.evaluation.benchmarks.benchmark import Item
from toolken.evaluation.methods.method import HeadKind, Setting
from toolken.inference.engine import Engine


class ZeroShot:
    """The base without tools and without examples."""

    name = "zero-shot"
    head: HeadKind = "none"

    def open(self, setting: Setting, items: Sequence[Item]) -> Engine:
        """Return an engine without toolkens, in a prompt without examples."""
        prompt = load_prompt(setting.config.prompt, root=setting.root, tokenizer=setting.base.tokenizer)
        return Engine(setting.base, prompt=without_examples(prompt), config=setting.config.inference)


def without_examples(prompt: Prompt) -> Prompt:
    """Return a prompt whose worked answers give way to an instruction; one that shows none stays as it is.

    Worked answers are set apart by empty lines, and each begins as the question to come does. A paragraph at the top
    that begins otherwise is an instruction, and is kept.
    """
    shown, gap, label = prompt.before.rpartition("\n\n")
    if prompt.chat or not gap:
        return prompt
    first = shown.partition("\n\n")[0]
    instruction = "" if label and first.startswith(label.rstrip()) else first
    return replace(prompt, before=f"{instruction or _instruction(prompt)}\n\n{label}")


def _instruction(prompt: Prompt) -> str:
    """Ask for an answer that can be read: the sentence at its end is the one that worked answers end with."""
    ending = prompt.conclusion.replace(RESULT, "X").strip()
    return f'Answer the question step by step. End with "{ending}"' if ending else "Answer the question."
