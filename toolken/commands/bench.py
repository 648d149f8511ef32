"""`toolken bench train | infer | scale`: how fast on this machine, base and rows, against the published way."""

from __future__ import annotations

from toolken.bench.inference import bench_infer
from toolken.bench.scale import bench_scale
from toolken.bench.training import bench_train
from toolken.commands.command import Command, run_settings
from toolken.config import Config


class BenchArguments(Config):
    """Settings of a training run, which say what is measured."""

    quick: bool = False
    """Fewer rows and rounds, in under a minute; the record says so."""


class TrainArguments(BenchArguments):
    """Settings of a training run, and what else is measured."""

    compare_dtypes: bool = False
    """Extract the rows in float32 and bfloat16, and count the decisions that differ."""


def train(arguments: TrainArguments) -> dict[str, object]:
    """Measure training."""
    return bench_train(run_settings(arguments), quick=arguments.quick, dtypes=arguments.compare_dtypes)


def infer(arguments: BenchArguments) -> dict[str, object]:
    """Measure answering."""
    return bench_infer(run_settings(arguments), quick=arguments.quick)


def scale(arguments: BenchArguments) -> dict[str, object]:
    """Measure decoding beside many toolkens, and adding a tool."""
    return bench_scale(run_settings(arguments), quick=arguments.quick)


TRAIN = Command(TrainArguments, train, "time training against the published algorithm")
INFER = Command(BenchArguments, infer, "time answering against the published loop")
SCALE = Command(BenchArguments, scale, "time steps beside many toolkens, and adding a tool")
