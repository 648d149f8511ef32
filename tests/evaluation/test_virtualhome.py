"""VirtualHome as a benchmark: its tools and their rule, its tasks, its marks."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.evaluation.household import LISTED, write_scene
from toolken.data.formats import read_examples
from toolken.data.marks import mark_text
from toolken.errors import UserError
from toolken.evaluation.benchmarks.benchmark import Cause, Item, Mark
from toolken.evaluation.benchmarks.catalogue import load_benchmark
from toolken.evaluation.benchmarks.virtualhome import VIRTUALHOME
from toolken.evaluation.scoring import Verdict
from toolken.evaluation.virtualhome.tasks import listed_objects
from toolken.inference.engine import Answer
from toolken.tools.executor import Executor

MARKS = ["[SIT]", "[WALK]", "[SWITCHON]", "[FIND]", "<couch>", "<television>", "<cat>", "[END]"]
GOLD = ["[WALK] <couch>", "[SIT] <couch>", "[FIND] <television>", "[SWITCHON] <television>"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder in the layout of the data sets, with one scene, three texts and one program."""
    scene = write_scene(tmp_path / "vh/scenes/house.json")
    (tmp_path / "vh/func_dict.json").write_text(json.dumps({mark: row for row, mark in enumerate(MARKS)}))
    listed = f"I am in ['bedroom']. The objects I can manipulate are {list(LISTED)}."
    task = f"Task 2:\n{listed}\nGoal:\nTV\nHint:\nSit.\nPlan:\n"
    plan = "\n".join([*GOLD, "[END]"])
    marks = [word for line in [*GOLD, "[END]"] for word in line.split()]
    row = {"text": f"Task 1:\nPlan:\n[SIT] <couch>\n\n{task}{plan}", "tar_eq": marks}
    (tmp_path / "vh/legal_train_v4_embedding.json").write_text(json.dumps([row] * 48))
    program = {
        "goal": "TV ",
        "hint": "Sit down.\n",
        "plan": ["[Walk] <living_room> (1)", "[Find] <sofa> (1)", "[Sit] <sofa> (1)", "[Find] <television> (1)"],
        "scene": scene.stem,
    }
    program["plan"] = [*program["plan"], "[SwitchOn] <television> (1)", "[Watch] <television> (1)"]
    (tmp_path / "vh/test_programs.json").write_text(json.dumps([program]))
    return tmp_path


@pytest.fixture
def mark(root: Path) -> Callable[[str], Mark]:
    """Marks a plan as the answer to the only validation scene's first task."""
    item = VIRTUALHOME.items(root, "validation")[0]
    return lambda text: VIRTUALHOME.mark(item, answer(text))


def answer(text: str) -> Answer:
    return cast(Answer, SimpleNamespace(text=text))


def test_tools_stand_in_the_official_order_and_say_their_marks(root: Path) -> None:
    tools = load_benchmark("virtualhome").tools(root)
    assert [mark_text(name) for name in tools.names] == MARKS
    with Executor() as executor:
        assert [executor.run(tool, {}).result for tool in tools] == MARKS


@pytest.mark.parametrize(
    ("listed", "problem"),
    [
        ('{"[SIT]": 0, "[WALK]": 5}', "does not number"),
        ('{"[SIT]": 0, "[WALK]": "1"}', "does not number"),
        ('{"[SIT]": 0, ', "cannot be read as JSON"),
        ('["[SIT]"]', "does not hold an object"),
    ],
)
def test_a_list_of_marks_that_is_damaged_is_refused(root: Path, listed: str, problem: str) -> None:
    (root / "vh/func_dict.json").write_text(listed)
    with pytest.raises(UserError, match=rf"func_dict\.json: .*{problem}"):
        VIRTUALHOME.tools(root)


def test_the_rule_lets_a_plan_be_nothing_but_actions_on_listed_objects(root: Path) -> None:
    rule, question = VIRTUALHOME.tools(root).rule, VIRTUALHOME.items(root, "validation")[0].question
    assert rule is not None
    first, second, third = rule(question, ()), rule(question, ("[SIT]",)), rule(question, ("[SIT]", "couch"))
    assert first is not None and first.names == {"[SIT]", "[WALK]", "[SWITCHON]", "[FIND]"} and first.text == ""
    assert second is not None and second.names == {"couch", "television"} and second.text == " ", "no cat in the list"
    assert third is not None and third.names == first.names | {"[END]"} and third.text == "\n"
    assert rule(question, ("[SIT]", "couch", "[END]")) is None
    assert not any(turn.words for turn in (first, second, third))


@pytest.mark.parametrize(
    ("lines", "verdict", "cause", "measures"),
    [
        (GOLD, Verdict.RIGHT, Cause.RIGHT, (1, 1, 1, 1, 1, 1)),
        ([*GOLD, "[FIND] <television>"], Verdict.RIGHT, Cause.RIGHT, (1, 1, 1, 1, 0, 0.8)),
        (["[FIND] <television>", *GOLD], Verdict.RIGHT, Cause.RIGHT, (1, 1, 1, 1, 0, 0.8)),
        ([*GOLD, "[SWITCHOFF] <television>"], Verdict.WRONG, Cause.WRONG, (1, 1, 0, 1, 0, 0.8)),
        ([*GOLD, "[SIT] <couch>"], Verdict.WRONG, Cause.TOOL_FAILED, (1, 0, 0, 1, 0, 0.8)),
        (GOLD[:2], Verdict.WRONG, Cause.WRONG, (1, 1, 0, 0, 0, 0.5)),
        ([*GOLD[:2], "[SWITCHON] <television>"], Verdict.WRONG, Cause.TOOL_FAILED, (1, 0, 0, 0, 0, 0.75)),
        ([*GOLD, "[FIND] <cat>"], Verdict.WRONG, Cause.WRONG_TOOL, (0, 0, 0, 1, 0, 0.8)),
        ([*GOLD, "and watch"], Verdict.WRONG, Cause.WRONG_TOOL, (0, 0, 0, 1, 0, 0.8)),
        ([], Verdict.UNSCORABLE, Cause.UNSCORABLE, (0, 0, 0, 0, 0, 0)),
    ],
)
def test_a_plan_is_marked_by_what_it_leaves(
    mark: Callable[[str], Mark], lines: list[str], verdict: Verdict, cause: Cause, measures: tuple[float, ...]
) -> None:
    found = mark("\n".join([*lines, "[END]", "[SIT] <couch>"]))
    assert (found.verdict, found.cause) == (verdict, cause)
    assert tuple(found.measures[name] for name in VIRTUALHOME.measures) == pytest.approx(measures)
    assert found.published == (verdict is Verdict.RIGHT)


def test_the_published_rule_reads_eight_lines(mark: Callable[[str], Mark]) -> None:
    late = mark("\n".join([*["[FIND] <couch>"] * 6, *GOLD]))
    assert late.verdict is Verdict.RIGHT and late.published is False


def test_a_goal_that_nobody_can_reach_is_not_scored(root: Path) -> None:
    item = VIRTUALHOME.items(root, "validation")[0]
    for gold in (["[WALK] <couch>"], ["[SIT] <couch>"]):
        other = Item(item.id, item.question, [*gold], item.metadata)
        assert VIRTUALHOME.mark(other, answer("[WALK] <couch>")).verdict is Verdict.UNSCORABLE


def test_programs_become_tasks_as_the_training_texts_have_them(root: Path) -> None:
    (item,) = VIRTUALHOME.items(root, "test")
    assert item.gold[0] == "[WALK] <home_office>" and item.gold[1] == "[FIND] <couch>"  # type: ignore[index]
    assert item.gold[-2:] == ["[TURNTO] <television>", "[WATCH] <television>"]  # type: ignore[index]
    assert item.question.startswith("I am in ['") and item.question.endswith("\nGoal:\nTV\nHint:\nSit down.")
    assert set(listed_objects(item.question)) == set(LISTED) and "home_office" not in item.metadata["room"]  # type: ignore[operator]
    assert VIRTUALHOME.items(root, "test") == [item]


def test_the_official_tasks(data_root: Path) -> None:
    validation, test = (VIRTUALHOME.items(data_root, split) for split in ("validation", "test"))
    assert (len(validation), len(test)) == (47, 50)
    assert not {item.question for item in validation} & {item.question for item in test}
    verdicts = [VIRTUALHOME.mark(item, answer("\n".join(map(str, item.gold)))).verdict for item in validation]  # type: ignore[arg-type]
    assert verdicts.count(Verdict.RIGHT) == 44 and verdicts.count(Verdict.UNSCORABLE) == 3
    names = {mark_text(name) for name in VIRTUALHOME.tools(data_root).names}
    used = {word for item in test for line in item.gold for word in str(line).split()}  # type: ignore[union-attr]
    assert used <= names and len(names) == 58
    sizes = [len(listed_objects(item.question)) for item in test]
    assert 18 <= min(sizes) and max(sizes) <= 29


def test_every_plan_of_the_training_texts_follows_the_rule_letter_by_letter(data_root: Path) -> None:
    tools = VIRTUALHOME.tools(data_root)
    examples = read_examples(["vh/legal_train_v4_embedding.json"], root=data_root, tools=tools.names).examples
    assert tools.rule is not None and len(examples) == 247
    for example in examples:
        written, calls = "", tuple(call.tool for call in example.calls)
        for at, name in enumerate(calls):
            turn = tools.rule(example.question, calls[:at])
            assert turn is not None and name in turn.names
            written += turn.text + mark_text(name)
        assert written == example.answer and tools.rule(example.question, calls) is None
