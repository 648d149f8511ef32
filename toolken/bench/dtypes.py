"""How often the same rows decide otherwise when the base computes in the other dtype."""

from __future__ import annotations

from pathlib import Path

from toolken.bench.workload import Trained, Workload, cache_in
from toolken.model.base import BaseLM
from toolken.recipes.measurement import decide_split
from toolken.recipes.preparation import load_base
from toolken.recipes.solving import SplitFeatures, extract_all
from toolken.training.decisions import Decisions, detections, total


def compare_dtypes(work: Workload, trained: Trained, folder: Path) -> dict[str, object]:
    """Extract the rows once more in float32 (in bfloat16, if the base is in float32) and decide with the same head.

    Returns:
        `dtype_decisions`: positions of training and validation rows. `dtype_decisions_differ`: those of them where one
        dtype picks a word and the other a toolken, or another toolken. `dtype_val_f1`: by dtype.
    """
    other = "bfloat16" if str(work.base.dtype) == "torch.float32" else "float32"
    base = load_base(work.config.base.model_copy(update={"dtype": other}))
    features = extract_all(base, work.rows, section=cache_in(work.config, folder / other))
    own, others = (_decide(found, trained, each) for found, each in ((trained.features, work.base), (features, base)))
    differ = sum(int((a.predicted != b.predicted).sum()) for a, b in zip(own, others, strict=True))
    names = (str(work.base.dtype).removeprefix("torch."), other)
    f1 = [total(detections(split[1], len(work.tools))).f1 for split in (own, others)]
    return {
        "dtype_decisions": sum(len(split.predicted) for split in own),
        "dtype_decisions_differ": differ,
        "dtype_val_f1": dict(zip(names, f1, strict=True)),
    }


def _decide(features: SplitFeatures, trained: Trained, base: BaseLM) -> list[Decisions]:
    return [decide_split(part, trained.head, base=base) for part in (features.train, features.validation)]
