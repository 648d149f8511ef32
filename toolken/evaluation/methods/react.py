"""`react`: a prompt that names the tools and shows worked calls; the base writes calls in words, the engine runs them.

Source: Yao et al., "ReAct", ICLR 2023 (arXiv 2210.03629), as a baseline of Hao et al., "ToolkenGPT" (arXiv
2305.11554, section 4), whose prompt files hold calls as `<name>(...)=result`.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolken.data.prompts import load_prompt
from toolken.errors import UserError
from toolken.evaluation.benchmarks.benchmark import Item
from toolken.evaluation.methods.method import HeadKind, Setting
from toolken.inference.engine import Engine


class React:
    """The base with calls in words."""

    name = "react"
    head: HeadKind = "none"

    def open(self, setting: Setting, items: Sequence[Item]) -> Engine:
        """Return an engine that runs written calls.

        Raises:
            UserError: The settings name no prompt with worked calls.
        """
        template = setting.config.evaluation.react_template
        if template is None:
            fix = "name a text file with worked calls, or use the method icl, which builds a prompt from training rows"
            raise UserError("evaluation.react_template", "is unset, and `react` needs it", fix)
        section = setting.config.prompt.model_copy(update={"template": template})
        prompt = load_prompt(section, root=setting.root, tokenizer=setting.base.tokenizer)
        return Engine(setting.base, written=setting.tools, prompt=prompt, config=setting.config.inference)
