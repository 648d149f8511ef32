"""Tasks: a description with the things at hand, a scene, and the plan of a person.

Published are the 50 test programs as people wrote them, with goal and hint, and the bare scene graphs; the graphs that
were made for each program, and the lists of things that its prompt showed, are not. Both are made here as the training
texts show them. Invariant: a task depends on its program, its place in the file and the training texts alone; the same
files give the same tasks.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from toolken.data.example import Example
from toolken.data.formats import read_examples
from toolken.data.rows import read_rows
from toolken.errors import UserError
from toolken.evaluation.virtualhome.plan import Step, face_first, read_plan
from toolken.evaluation.virtualhome.scene import OFFICE, furnish, read_scene

TEXTS = "vh/legal_train_v4_embedding.json"
PROGRAMS = "vh/test_programs.json"
SCENES = "vh/scenes"
HELD_OUT = 47
"""The last training texts, by the official split: validation."""

_ALIASES = {"living_room": OFFICE, "entrance_hall": OFFICE, "sofa": "couch", "book": "novel", "document": "check"}
"""What people call things, and what the training texts call them."""

_ROOMS = ("bathroom", "bedroom", "dining_room", OFFICE)
_PLACE = re.compile(r"I am in \['(\w+)'\]")
_LIST = re.compile(r"The objects I can manipulate are \[([^\]]*)\]")
_TAKE = "take the files as published"


class Task(NamedTuple):
    """A task with its solution.

    Attributes:
        question: What the prompt shows.
        room: Where the character starts.
        objects: What the question lists.
        scene: File of the scene graph.
        plan: The steps of a person.
    """

    question: str
    room: str
    objects: tuple[str, ...]
    scene: Path
    plan: list[Step]


def listed_objects(question: str) -> tuple[str, ...]:
    """Return the things that a question lists; none if it lists none."""
    found = _LIST.search(question)
    return tuple(re.findall(r"'(\w+)'", found[1])) if found else ()


def validation_tasks(root: Path) -> list[Task]:
    """Return the tasks of the held-out training texts.

    The texts do not say in which scene they were made; they are laid into the seven scenes in turn.

    Raises:
        UserError: A file is missing or malformed.
    """
    scenes = sorted((root / SCENES).glob("*.json"))
    if not scenes:
        raise UserError(str(root / SCENES), "there is no scene graph", _TAKE)
    examples = _training_texts(f"{TEXTS}[-{HELD_OUT}:]", root)
    return [_as_task(example, scenes[at % len(scenes)]) for at, example in enumerate(examples)]


def _training_texts(source: str, root: Path) -> list[Example]:
    return read_examples([source], root=root, tools=None).examples


def _as_task(example: Example, scene: Path) -> Task:
    place, objects = _PLACE.search(example.question), listed_objects(example.question)
    if place is None or not objects:
        raise UserError(example.origin, "the text names no room or no objects", _TAKE)
    return Task(example.question, place[1], objects, scene, read_plan(example.answer))


def program_tasks(root: Path) -> list[Task]:
    """Return the tasks of the test programs.

    Names become those of the training texts. Where a plan watches what it does not face, it turns to it first, as
    those texts do. The list shows what every scene has, what the plan uses, and other things as often as the training
    texts list them without using them; the character starts in a room that the plan does not enter first.

    Raises:
        UserError: A file is missing or malformed.
    """
    examples = _training_texts(f"{TEXTS}[:-{HELD_OUT}]", root)
    listed = [set(listed_objects(example.question)) for example in examples]
    used = [{call.tool for call in example.calls} for example in examples]
    always = set.intersection(*listed)
    unused = Counter(name for names, calls in zip(listed, used, strict=True) for name in names - calls)
    free = {name: sum(name not in calls for calls in used) for name in unused}
    shares = {name: unused[name] / free[name] for name in sorted(unused.keys() - always)}
    tasks = []
    for at, row in enumerate(read_rows(PROGRAMS, root=root)):
        if not isinstance(row.value, dict) or not {"goal", "hint", "plan", "scene"} <= row.value.keys():
            raise UserError(row.where, "the program lacks goal, hint, plan or scene", _TAKE)
        tasks.append(_program(row.value, at, always=always, shares=shares, scenes=root / SCENES))
    return tasks


def _program(
    program: Mapping[str, object], at: int, *, always: set[str], shares: Mapping[str, float], scenes: Path
) -> Task:
    lines = program["plan"]
    plan = [_renamed(one) for one in read_plan("\n".join(lines) if isinstance(lines, list) else str(lines))]
    draw = random.Random(f"virtualhome {at}")
    objects = always | {name for one in plan for name in one.objects}
    objects |= {name for name, share in shares.items() if draw.random() < share}
    shown = sorted(objects)
    draw.shuffle(shown)
    entered = next((name for one in plan for name in one.objects if name in _ROOMS), None)
    path = scenes / f"{program['scene']}.json"
    scene = furnish(read_scene(path), shown)
    elsewhere = [name for name in _ROOMS if name not in (entered, OFFICE) and scene.named(name)]
    room = OFFICE if entered is None or not elsewhere else draw.choice(elsewhere)
    faced = face_first(plan, scene, room)
    return Task(_describe(room, shown, str(program["goal"]), str(program["hint"])), room, tuple(shown), path, faced)


def _renamed(one: Step) -> Step:
    objects = tuple(_ALIASES.get(name, name) for name in one.objects)
    return Step(one.action, objects, f"[{one.action}]" + "".join(f" <{name}>" for name in objects))


def _describe(room: str, objects: Sequence[str], goal: str, hint: str) -> str:
    return (
        f"I am in {[room]}. The objects I can manipulate are {list(objects)}.\n"
        f"Goal:\n{goal.strip()}\nHint:\n{hint.strip()}"
    )
