"""VirtualHome: plans of actions and objects for 50 household tasks, carried out in a simulated household.

58 toolkens without arguments, 26 actions and 32 objects; picking one writes its mark. A rule lets an answer be nothing
but lines of an action and one object that the question lists, and `[END]`. Right is a plan that can be carried out to
its end and leaves the states that a person's plan leaves (`success`).

What differs from the paper's set-up, of which the programs and the bare scene graphs are published, and not the graphs
that were made for each program: the tasks' lists of objects, starting rooms and layouts are made here (see `tasks` and
`scene`); the simulator is our own (see `actions`); a person's plan is the program as it was written, in the training
texts' names. So numbers compare between methods here, and with the paper's only in their order.
Measures: `grounding`, every line is an action on a listed object; `executability`, the plan can be carried out;
`success_relaxed`, the goal states hold after some step; `exact`, the person's plan; `lcs`, the longest common
subsequence of steps over the longer plan. The published rule, in our household: the first eight lines count, and the
goal is one or two changed things.
Source: Hao et al., "ToolkenGPT", arXiv 2305.11554, table 3.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from toolken.data.marks import mark_name, mark_text
from toolken.errors import UserError
from toolken.evaluation.benchmarks.benchmark import Cause, Item, Mark, Split
from toolken.evaluation.scoring import Verdict
from toolken.evaluation.virtualhome.plan import (
    END,
    Changes,
    Run,
    Step,
    carry_out,
    common_length,
    grounded,
    read_plan,
    say,
)
from toolken.evaluation.virtualhome.scene import furnish, read_scene
from toolken.evaluation.virtualhome.tasks import Task, listed_objects, program_tasks, validation_tasks
from toolken.inference.engine import Answer
from toolken.tools.rule import Rule, Turn
from toolken.tools.strict_json import read_object
from toolken.tools.tool import Tool
from toolken.tools.toolset import ToolSet

ORDER = "vh/func_dict.json"
_TAKE = "check `data.root`, and take the files as published"
_PUBLISHED_LINES = 8
_PUBLISHED_CHANGES = (1, 2)


@dataclass(frozen=True)
class VirtualHome:
    """The household tasks."""

    name: str = "virtualhome"
    title: str = "VirtualHome"
    published: Mapping[str, float] = field(
        default_factory=lambda: {
            "ICL": 0.20,
            "ICL, translation": 0.24,
            "ICL, grounded decoding": 0.38,
            "ToolkenGPT": 0.68,
        }
    )
    published_base: str = "LLaMA-13B"
    published_measure: str = "accuracy"
    measures: tuple[str, ...] = ("grounding", "executability", "success", "success_relaxed", "exact", "lcs")

    def tools(self, root: Path) -> ToolSet:
        """Return the actions and objects in the official order, with the rule that plans follow.

        Raises:
            UserError: The official list is missing or malformed.
        """
        rows = read_object(root / ORDER, _TAKE)
        places = {place: mark for mark, place in rows.items() if type(place) is int}
        if sorted(places) != list(range(len(rows))):
            raise UserError(ORDER, "it does not number the marks", _TAKE)
        marks = [places[place] for place in range(len(rows))]
        return ToolSet((self._tool(mark) for mark in marks), rule=_rule(tuple(map(mark_name, marks))))

    def _tool(self, mark: str) -> Tool:
        name = mark_name(mark)
        kind = "action" if mark.startswith("[") else "object"
        return Tool(
            name=name,
            description=f"Writes {mark}, an {kind} of a household plan.",
            parameters={"type": "object", "properties": {}, "additionalProperties": False},
            order=(),
            function=functools.partial(say, text=mark),
            reference=f"benchmark:{self.name}#{name}",
        )

    def items(self, root: Path, split: Split) -> list[Item]:
        """Return the tasks of the test programs, or of the held-out training texts."""
        tasks = program_tasks(root) if split == "test" else validation_tasks(root)
        return [_item(task, number) for number, task in enumerate(tasks)]

    def mark(self, item: Item, answer: Answer) -> Mark:
        """Carry out the answer and the person's plan in the same household, and compare what they leave."""
        objects = listed_objects(item.question)
        scene = furnish(read_scene(Path(str(item.metadata["scene"]))), objects)
        room = str(item.metadata["room"])
        wanted, plan = _steps(item.gold), read_plan(answer.text)
        gold, made = carry_out(wanted, scene, room), carry_out(plan, scene, room)
        in_scene = grounded(plan, objects)
        measures = {
            "grounding": float(in_scene),
            "executability": float(in_scene and made.failure is None),
            "exact": float(plan == wanted),
            "lcs": common_length(plan, wanted) / max(len(plan), len(wanted), 1),
        }
        goal = gold.changes[-1] if gold.failure is None and gold.changes else {}
        if not goal:
            return Mark(Verdict.UNSCORABLE, Cause.UNSCORABLE, None, measures)
        success = made.failure is None and reached(made, goal, len(plan))
        measures["success"] = float(success)
        measures["success_relaxed"] = float(any(reached(made, goal, at + 1) for at in range(len(made.changes))))
        verdict = Verdict.RIGHT if success else Verdict.WRONG if plan else Verdict.UNSCORABLE
        cause = Cause.RIGHT if success else _cause(plan, in_scene, made)
        published = _published(plan, made, goal)
        return Mark(verdict, cause, published, measures)


VIRTUALHOME = VirtualHome()


def reached(run: Run, goal: Changes, length: int) -> bool:
    """Return whether, after so many steps, every thing of the goal is in the states that the goal gives it."""
    return 0 < length <= len(run.changes) and all(
        run.changes[length - 1].get(id) == states for id, states in goal.items()
    )


def _published(plan: Sequence[Step], made: Run, goal: Changes) -> bool:
    length = min(len(plan), _PUBLISHED_LINES)
    return _PUBLISHED_CHANGES[0] <= len(goal) <= _PUBLISHED_CHANGES[1] and reached(made, goal, length)


def _cause(plan: Sequence[Step], in_scene: bool, made: Run) -> Cause:
    if not plan:
        return Cause.UNSCORABLE
    if not in_scene:
        return Cause.WRONG_TOOL
    return Cause.TOOL_FAILED if made.failure is not None else Cause.WRONG


def _steps(gold: object) -> list[Step]:
    return read_plan("\n".join(map(str, gold)) if isinstance(gold, list) else "")


def _item(task: Task, number: int) -> Item:
    return Item(number, task.question, [one.line for one in task.plan], {"scene": str(task.scene), "room": task.room})


def _rule(names: Sequence[str]) -> Rule:
    """Return the rule of plans: an action, an object that the question lists, a new line; at last `[END]`."""
    actions = frozenset(name for name in names if mark_text(name) == name)
    objects = frozenset(names) - actions

    def turn(question: str, calls: tuple[str, ...]) -> Turn | None:
        last = calls[-1] if calls else ""
        if last == END:
            return None
        if last in actions:
            listed = objects & set(listed_objects(question))
            return Turn(listed or objects, text=" ", follows=mark_text(min(objects)))
        return Turn(actions, text="\n") if calls else Turn(actions - {END})

    return turn
