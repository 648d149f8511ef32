"""What a run starts from."""

from __future__ import annotations

from toolken.config import DataSection, GenerateSection
from toolken.recipes.preparation import UNSEEN_SEED, load_splits


def test_law_13_unseen_text_is_never_trained_on() -> None:
    generate = GenerateSection(per_tool=2, plain=200, seed=UNSEEN_SEED)  # the very texts that are to be unseen
    splits = load_splits(DataSection(generate=generate, negatives=["generated"]), ["add"])
    trained = {(row.question, row.answer) for row in splits.train + splits.negatives}
    assert trained and not any((row.question, row.answer) in trained for row in splits.unseen)
    calm = load_splits(DataSection(generate=GenerateSection(per_tool=2, plain=200), negatives=["generated"]), ["add"])
    assert len(calm.unseen) > 190
