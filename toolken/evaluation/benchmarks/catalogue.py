"""The benchmarks by name: the only list of them."""

from __future__ import annotations

from toolken.errors import UserError, did_you_mean
from toolken.evaluation.benchmarks.benchmark import Benchmark
from toolken.evaluation.benchmarks.funcqa import MULTI_HOP, ONE_HOP
from toolken.evaluation.benchmarks.gsm8k_xl import GSM8K_XL
from toolken.evaluation.benchmarks.kamel import KAMEL
from toolken.evaluation.benchmarks.virtualhome import VIRTUALHOME

_ALL: tuple[Benchmark, ...] = (ONE_HOP, MULTI_HOP, GSM8K_XL, *KAMEL, VIRTUALHOME)

BENCHMARKS = {benchmark.name: benchmark for benchmark in _ALL}


def load_benchmark(name: str) -> Benchmark:
    """Return the benchmark of a name.

    Raises:
        UserError: There is none.
    """
    if name not in BENCHMARKS:
        raise UserError("evaluation.benchmark", f"no benchmark {name}", did_you_mean(name, BENCHMARKS))
    return BENCHMARKS[name]
