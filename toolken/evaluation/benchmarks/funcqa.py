"""FuncQA: 13 operations, questions with one call (60) and with several (68).

Source: Hao et al., "ToolkenGPT", arXiv 2305.11554, table 2. One-hop answers are exact after rounding to two decimals,
multi-hop ones within 0.1 %. Both share the 39 validation questions of the official file, which are one-hop.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolken.evaluation.benchmarks.calculation import CalculationBenchmark, called_steps
from toolken.tools.arithmetic import ARITHMETIC
from toolken.tools.toolset import ToolSet

_VALIDATION = "funcqa/funcqa_val.json"


def gold_steps(row: Mapping[str, object], tools: ToolSet) -> list[str] | None:
    """Return the steps of a row: its one `func`, or its `calculation`."""
    calls = row.get("calculation", [row.get("func")])
    return called_steps(calls, tools) if isinstance(calls, list) else None


ONE_HOP = CalculationBenchmark(
    name="funcqa_oh",
    title="FuncQA one-hop",
    published={"0-shot ChatGPT": 0.55, "CoT": 0.20, "ReAct": 0.57, "ToolkenGPT": 0.73},
    toolset=ARITHMETIC,
    files={"test": "funcqa/funcqa_oh.json", "validation": _VALIDATION},
    rule="round2",
    announcement="answer is",
    steps=gold_steps,
)

MULTI_HOP = CalculationBenchmark(
    name="funcqa_mh",
    title="FuncQA multi-hop",
    published={"0-shot ChatGPT": 0.09, "CoT": 0.03, "ReAct": 0.06, "ToolkenGPT": 0.15},
    toolset=ARITHMETIC,
    files={"test": "funcqa/funcqa_mh.json", "validation": _VALIDATION},
    rule="relative",
    announcement="####",
    steps=gold_steps,
)
