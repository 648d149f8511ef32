"""The rows that the methods of an evaluation ask for: training runs of their own, in `heads/` of its folder.

Invariant: a head depends on the settings without `evaluation`, so that several evaluations can share an artefact. The
published recipe learns from the bare texts, without negatives and calibration, and from a seed.
"""

from __future__ import annotations

from pathlib import Path

from toolken.config import AlignSection, Config, EvaluationSection
from toolken.data.prompts import BUILTIN
from toolken.evaluation.methods.catalogue import Chosen
from toolken.recipes.training_run import train
from toolken.run_directory import TOOLKENS

HEADS = "heads"


def train_rows(config: Config, one: Chosen, folder: Path, *, toolkens: Path | None) -> Path | None:
    """Return the artefact of a method, trained now unless it is there; None for a method without rows."""
    if one.method.head == "none":
        return None
    if one.method.head == "trained":
        return toolkens or train(rows_config(config, folder / HEADS / one.spec)).directory / TOOLKENS
    seed = one.seed if one.seed is not None else config.solver.seed
    name = f"{one.method.name}-{seed}"
    return train(published_config(config, folder / HEADS / name, seed=seed)).directory / TOOLKENS


def rows_config(config: Config, folder: Path) -> Config:
    """Return the settings of the training run of `toolken`."""
    name = f"{config.name}-{folder.name}"
    return config.model_copy(update={"name": name, "out": folder, "evaluation": EvaluationSection()})


def published_config(config: Config, folder: Path, *, seed: int) -> Config:
    """Return the settings of the training run of `toolken-adam`."""
    recipe, prompt = config.evaluation.published, config.prompt
    after = "" if recipe.template.startswith(BUILTIN) else prompt.after
    solver = {"kind": "adam", "softmax": "all", "lr": recipe.lr, "epochs": recipe.epochs, "seed": seed}
    return rows_config(config, folder).model_copy(
        update={
            "data": config.data.model_copy(update={"negatives": []}),
            "prompt": prompt.model_copy(update={"template": recipe.template, "after": after, "conclusion": ""}),
            "solver": config.solver.model_copy(update=solver),
            "align": AlignSection(),
            "calibration": config.calibration.model_copy(update={"enabled": False}),
        }
    )
