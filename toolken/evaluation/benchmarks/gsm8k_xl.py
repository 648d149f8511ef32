"""GSM8K-XL: 568 questions of GSM8K's test set with enlarged numbers, four operations.

Source: Hao et al., "ToolkenGPT", arXiv 2305.11554, table 2. Answers are exact after rounding to two decimals. The
1,000 validation questions have their original numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolken.data.gsm8k import OPERATORS
from toolken.evaluation.benchmarks.calculation import CalculationBenchmark, called_steps
from toolken.tools.arithmetic import ARITHMETIC
from toolken.tools.toolset import ToolSet

TOOLS = ARITHMETIC.subset(OPERATORS.values())

# an operator between two values; a sign stands at the start, or after another operator or a bracket
_BETWEEN = re.compile(r"(?<=[\d.)%])\s*([-+*/])")


def gold_steps(row: Mapping[str, object], tools: ToolSet) -> list[str] | None:
    """Return the steps of a row: the operators of its worked lines (`5*3-2 = 13`), or its `calculation`."""
    if isinstance(calls := row.get("calculation"), list):
        return called_steps(calls, tools)
    lines = row.get("enhanced_process")
    if not isinstance(lines, list):
        return None
    return [OPERATORS[mark] for line in lines for mark in _BETWEEN.findall(str(line).rpartition("=")[0])]


GSM8K_XL = CalculationBenchmark(
    name="gsm8k_xl",
    title="GSM8K-XL",
    published={"0-shot ChatGPT": 0.17, "CoT": 0.18, "ReAct": 0.32, "ToolkenGPT": 0.33},
    toolset=TOOLS,
    files={"test": "gsm8k-xl/test.json", "validation": "gsm8k-xl/val.json"},
    rule="round2",
    announcement="####",
    steps=gold_steps,
)
