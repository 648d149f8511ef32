"""The settings of VirtualHome, from training texts to plans, on a tiny base."""

from pathlib import Path

from tests.recipes.saved import save_tiny_base
from toolken.evaluation.benchmarks.virtualhome import VIRTUALHOME
from toolken.evaluation.virtualhome.plan import grounded, read_plan
from toolken.evaluation.virtualhome.tasks import listed_objects
from toolken.inference.engine import Engine
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.recipes.training_run import train
from toolken.settings.loading import load_config

ROOT = Path(__file__).parents[2]


def test_the_settings_train_rows_whose_plans_hold_nothing_but_what_is_in_the_scene(
    data_root: Path, tmp_path: Path
) -> None:
    folder = save_tiny_base(tmp_path / "base")
    small = ["--base.name", str(folder), "--base.dtype", "float32", "--data.limit", "3", "--solver.l2", "1e-3"]
    small += ["--out", str(tmp_path / "run"), "--data.root", str(data_root), "--tracking.mode", "disabled"]
    config = load_config(ROOT / "configs/virtualhome.yaml", [*small, "--inference.max_calls", "9"])
    run = train(config)
    base = BaseLM.load(str(folder), dtype="float32")
    head = ToolkenHead.load(run.directory / "toolkens", base=base)
    assert head.names == VIRTUALHOME.tools(data_root).names and head.info.prompt.after == "\nPlan:\n"
    items = VIRTUALHOME.items(data_root, "validation")[:2]
    with Engine(base, head, tools=VIRTUALHOME.tools(data_root), config=config.inference) as engine:
        answers = engine.answer([item.question for item in items])
    for item, answer in zip(items, answers, strict=True):
        whole = answer.text if answer.finish_reason == "stop" else answer.text.rpartition("\n")[0]
        assert grounded(read_plan(whole), listed_objects(item.question)), answer.text
        assert 1 <= len(answer.calls) <= 9 and all(call.outcome.ok for call in answer.calls)
