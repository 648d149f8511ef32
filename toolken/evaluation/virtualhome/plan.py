"""Plans: reading them from a text, carrying them out, comparing them.

Invariant: a plan is read line by line up to `[END]`; a line that is no step stays in it as a step that cannot be done,
so that nothing written is passed over. A run keeps the state changes after every step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from toolken.evaluation.virtualhome.actions import ACTIONS, act
from toolken.evaluation.virtualhome.scene import Scene
from toolken.evaluation.virtualhome.world import World

END = "[END]"
_STEP = re.compile(r"\[(\w+)\]((?:\s*<\w+>(?:\s*\(\d+\))?)*)")
_OBJECT = re.compile(r"<(\w+)>")

Changes = dict[int, frozenset[str]]
"""Things whose states are not those of the start, with their states."""


class Step(NamedTuple):
    """One line of a plan: an action and what it is done to; a line that is no step has neither."""

    action: str
    objects: tuple[str, ...]
    line: str

    def __eq__(self, other: object) -> bool:
        """Compare actions and objects; the line counts only where there is no action."""
        return isinstance(other, Step) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.action, self.objects) if self.action else (self.line,)


class Run(NamedTuple):
    """A plan carried out: the changes after each step that could be done, and why the next one could not."""

    changes: list[Changes]
    failure: str | None


def say(text: str) -> str:
    """Return the mark of an action or an object: all that its tool does."""
    return text


def step(action: str, name: str) -> Step:
    """Return the step of an action on one thing."""
    return Step(action, (name,), f"[{action}] <{name}>")


def read_plan(text: str) -> list[Step]:
    """Read a plan up to its `[END]`, or to the end of the text."""
    steps = []
    for raw in text.partition(END)[0].split("\n"):
        line = raw.strip()
        if not line:
            continue
        match = _STEP.fullmatch(line)
        steps.append(Step(match[1].upper(), tuple(_OBJECT.findall(match[2])), line) if match else Step("", (), line))
    return steps


def grounded(plan: Sequence[Step], objects: Sequence[str]) -> bool:
    """Return whether every line is an action on one thing, and every thing is among the objects of the task."""
    return bool(plan) and all(
        one.action in ACTIONS and len(one.objects) == 1 and one.objects[0] in objects for one in plan
    )


def carry_out(plan: Sequence[Step], scene: Scene, room: str) -> Run:
    """Carry out a plan, from the first step to the last or to the first that cannot be done."""
    world = World(scene, room)
    changes: list[Changes] = []
    for one in plan:
        failure = (
            act(world, one.action, one.objects[0]) if len(one.objects) == 1 else f"{one.line}: no action on a thing"
        )
        if failure is not None:
            return Run(changes, failure)
        changes.append({id: states for id, states in world.states.items() if states != scene.things[id].states})
    return Run(changes, None)


def face_first(plan: Sequence[Step], scene: Scene, room: str) -> list[Step]:
    """Return the plan with `[TURNTO]` before what one must face and does not, as the training texts have it."""
    world = World(scene, room)
    faced: list[Step] = []
    for one in plan:
        name = one.objects[0] if one.objects else ""
        thing = world.known(name)
        if one.action in ("WATCH", "LOOKAT", "POINTAT") and thing is not None and not world.faces(thing):
            faced.append(step("TURNTO", name))
            act(world, "TURNTO", name)
        faced.append(one)
        act(world, one.action, name)
    return faced


def common_length(first: Sequence[Step], second: Sequence[Step]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(second) + 1)
    for one in first:
        previous = 0
        for at, other in enumerate(second, start=1):
            previous, row[at] = row[at], previous + 1 if one == other else max(row[at], row[at - 1])
    return row[-1]
