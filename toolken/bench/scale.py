"""`bench scale`: what a decoding step costs beside many toolkens, and what one more tool costs a trained set."""

from __future__ import annotations

import tempfile
from pathlib import Path

from toolken.bench.adding import bench_adding
from toolken.bench.decode_steps import step_seconds
from toolken.bench.measure import level_after_warm_up, machine_facts, say
from toolken.config import Config, GenerateSection
from toolken.data.generate import generate_examples
from toolken.data.prompts import load_prompt
from toolken.data.rows import data_root
from toolken.files import jsonable
from toolken.recipes.preparation import load_base
from toolken.tools.arithmetic import ARITHMETIC

FEW, MANY, VERY_MANY = 13, 10_000, 47_000
BATCH = 16
STEPS, QUICK_STEPS = 40, 5
QUESTION_SEED = 900_007


def bench_scale(config: Config, *, quick: bool = False) -> dict[str, object]:
    """Measure decoding steps and adding a tool.

    Args:
        config: Settings of a training run; its prompt and base serve for the steps as well.
        quick: Fewer steps, rows and examples: for trials. The record says so.

    Raises:
        UserError: Settings, data or base are at fault.
    """
    base = load_base(config.base)
    level_after_warm_up(base)
    prompt = load_prompt(config.prompt, root=data_root(config.data.root), tokenizer=base.tokenizer)
    say(f"steps of {BATCH} contexts beside {FEW}, {MANY:,} and {VERY_MANY:,} toolkens")
    problems = generate_examples(GenerateSection(per_tool=2), ARITHMETIC.names, seed=QUESTION_SEED)[:BATCH]
    steps = QUICK_STEPS if quick else STEPS
    seconds = step_seconds(base, prompt, [row.question for row in problems], sizes=(FEW, MANY, VERY_MANY), steps=steps)
    say("one more tool")
    with tempfile.TemporaryDirectory(prefix="toolken-bench-") as folder:
        adding = bench_adding(config, base, Path(folder), quick=quick)
    record = {
        "quick": quick,
        **machine_facts(base),
        "step_ratio_10000": seconds[MANY] / seconds[FEW],
        "step_ratio_47000": seconds[VERY_MANY] / seconds[FEW],
        "step_batch": BATCH,
        "steps": steps,
        "step_seconds": seconds,
        **adding,
    }
    return {key: jsonable(value) for key, value in record.items()}
