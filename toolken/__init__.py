"""Teach a frozen language model to call tools by training one output row per tool.

Names are resolved on first use, so that importing a tool's module costs no more than the tool.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolken.config import Config
    from toolken.data.example import CallSpan, Example
    from toolken.errors import ToolError, UserError
    from toolken.inference.engine import Answer, Engine
    from toolken.inference.events import Call, Result, Stop, Text
    from toolken.model.base import BaseLM
    from toolken.model.head import ToolkenHead
    from toolken.recipes.training_run import Run, train
    from toolken.settings.loading import load_config
    from toolken.tools.arithmetic import ARITHMETIC
    from toolken.tools.loading import load_tools
    from toolken.tools.tool import Outcome, Tool, tool
    from toolken.tools.toolset import ToolSet

_HOME = {
    "ARITHMETIC": "toolken.tools.arithmetic",
    "Answer": "toolken.inference.engine",
    "BaseLM": "toolken.model.base",
    "Call": "toolken.inference.events",
    "CallSpan": "toolken.data.example",
    "Config": "toolken.config",
    "Engine": "toolken.inference.engine",
    "Example": "toolken.data.example",
    "Outcome": "toolken.tools.tool",
    "Result": "toolken.inference.events",
    "Run": "toolken.recipes.training_run",
    "Stop": "toolken.inference.events",
    "Text": "toolken.inference.events",
    "Tool": "toolken.tools.tool",
    "ToolError": "toolken.errors",
    "ToolSet": "toolken.tools.toolset",
    "ToolkenHead": "toolken.model.head",
    "UserError": "toolken.errors",
    "load_config": "toolken.settings.loading",
    "load_tools": "toolken.tools.loading",
    "tool": "toolken.tools.tool",
    "train": "toolken.recipes.training_run",
}

__all__ = [
    "ARITHMETIC",
    "Answer",
    "BaseLM",
    "Call",
    "CallSpan",
    "Config",
    "Engine",
    "Example",
    "Outcome",
    "Result",
    "Run",
    "Stop",
    "Text",
    "Tool",
    "ToolError",
    "ToolSet",
    "ToolkenHead",
    "UserError",
    "load_config",
    "load_tools",
    "tool",
    "train",
]


def __getattr__(name: str) -> object:
    """Import a public name's module when the name is first asked for."""
    if name not in _HOME:
        raise AttributeError(f"module 'toolken' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
