"""A household scene: what stands where, read from a scene graph and furnished for a task.

A scene graph of VirtualHome has things with properties and states, and relations between them. `furnish` makes of it
what the tasks presuppose: names as tasks use them (`couch` for the love seat), every thing of the task's list, a home
office in which seat, screen and keyboard stand together. Invariant: a scene never changes; a `World` does. Furnishing
depends on the scene and the list alone, never on a plan. Relations that are read: INSIDE, ON, CLOSE, FACING.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolken.errors import UserError
from toolken.tools.strict_json import read_object

Relation = Mapping[int, frozenset[int]]

OFFICE = "home_office"
ROOM = "Rooms"
_CHARACTER = "character"
_TAKE = "take the scene graphs as published"

NAMES = {"living_room": OFFICE, "love_seat": "couch", "lighting": "light"}
"""Names of the scene graphs that tasks call otherwise."""

SEATS = ("couch", "chair", "bed")
_OFFICE_THINGS = ("desk", "chair", "computer", "keyboard", "mouse", "phone", "television", "couch", "light")
_FACED = {"couch": "television", "chair": "computer"}

PROPERTIES: Mapping[str, frozenset[str]] = {
    "remote_control": frozenset({"GRABBABLE", "HAS_SWITCH", "MOVABLE"}),
    "novel": frozenset({"GRABBABLE", "READABLE", "CAN_OPEN", "MOVABLE"}),
    "bookmark": frozenset({"GRABBABLE", "MOVABLE"}),
    "check": frozenset({"GRABBABLE", "READABLE", "MOVABLE"}),
    "mail": frozenset({"GRABBABLE", "READABLE", "CAN_OPEN", "MOVABLE"}),
    "food_food": frozenset({"GRABBABLE", "EATABLE", "MOVABLE"}),
    "plate": frozenset({"GRABBABLE", "RECIPIENT", "SURFACES", "MOVABLE"}),
    "laptop": frozenset({"GRABBABLE", "HAS_SWITCH", "HAS_PLUG", "LOOKABLE", "MOVABLE"}),
    "cat": frozenset({"GRABBABLE", "MOVABLE"}),
    "button": frozenset({"GRABBABLE", "MOVABLE"}),
    "water": frozenset({"DRINKABLE", "POURABLE"}),
    "floor_lamp": frozenset({"HAS_SWITCH", "MOVABLE"}),
    "faucet": frozenset({"HAS_SWITCH"}),
    "cupboard": frozenset({"CAN_OPEN", "CONTAINERS"}),
    "kitchen_cabinet": frozenset({"CAN_OPEN", "CONTAINERS", "SURFACES"}),
}
"""Properties of things that the scene graphs lack."""

_FIRST_STATES = {"HAS_SWITCH": ("OFF", "ON"), "CAN_OPEN": ("CLOSED", "OPEN"), "HAS_PLUG": ("PLUGGED_IN", "PLUGGED_OUT")}
"""The state that a thing with this property starts in, where the graph gives it neither of the two."""


@dataclass(frozen=True)
class Thing:
    """A node of the graph: a room, a thing in it, or the character."""

    id: int
    name: str
    room: bool
    properties: frozenset[str]
    states: frozenset[str]


@dataclass(frozen=True)
class Scene:
    """What stands where at the start.

    Attributes:
        things: By id.
        character: Id of whoever acts.
        inside: Thing -> rooms and containers it is in.
        on: Thing -> what it stands on.
        close: Thing -> what is near it; symmetric.
        facing: Thing -> what it faces.
    """

    things: Mapping[int, Thing]
    character: int
    inside: Relation
    on: Relation
    close: Relation
    facing: Relation

    def named(self, name: str) -> list[Thing]:
        """Return the things of a name, in the order of the graph."""
        return [thing for thing in self.things.values() if thing.name == name]

    def room(self, id: int) -> int | None:
        """Return the room that a thing is in, through whatever contains it."""
        seen, waiting = {id}, [id]
        while waiting:
            here = waiting.pop(0)
            if self.things[here].room:
                return here
            waiting += [to for to in sorted(self.inside.get(here, ())) if to not in seen]
            seen.update(waiting)
        return None


@functools.lru_cache(maxsize=16)
def read_scene(path: Path) -> Scene:
    """Read a scene graph, with names as tasks use them.

    Raises:
        UserError: No such file, or it is no scene graph.
    """
    graph: Any = read_object(path, _TAKE)
    try:
        things = {node["id"]: _thing(node) for node in graph["nodes"]}
        edges = [(edge["relation_type"], edge["from_id"], edge["to_id"]) for edge in graph["edges"]]
        character = next(id for id, thing in things.items() if thing.name == _CHARACTER)
    except (KeyError, TypeError, StopIteration) as error:
        raise UserError(str(path), "this is no scene graph with a character", _TAKE) from error

    def relation(kind: str) -> dict[int, frozenset[int]]:
        pairs: dict[int, set[int]] = {}
        for found, start, end in edges:
            if found == kind and start in things and end in things:
                pairs.setdefault(start, set()).add(end)
        return {start: frozenset(ends) for start, ends in pairs.items()}

    inside, on, close, facing = map(relation, ("INSIDE", "ON", "CLOSE", "FACING"))
    return Scene(things, character, inside=inside, on=on, close=close, facing=facing)


def _thing(node: Mapping[str, object]) -> Thing:
    name, properties, states = str(node["class_name"]), node["properties"], node["states"]
    if not isinstance(node["id"], int) or not isinstance(properties, list) or not isinstance(states, list):
        raise TypeError
    return make_thing(node["id"], NAMES.get(name, name), properties, states=states, room=node.get("category") == ROOM)


def make_thing(
    id: int, name: str, properties: Iterable[str], *, states: Iterable[str] = (), room: bool = False
) -> Thing:
    """Return a thing in its first states: off, closed, plugged in, unless other ones are given."""
    found, given = frozenset(properties), set(states)
    for owner, pair in _FIRST_STATES.items():
        if owner in found and not given & set(pair):
            given.add(pair[0])
    return Thing(id, name, room, found, frozenset(given))


def furnish(scene: Scene, objects: Iterable[str]) -> Scene:
    """Return the scene with everything that a task's list names, laid out as the tasks presuppose.

    The home office gets its furniture and devices where it lacks them, all at reach of its couch and its chair; the
    couch faces the television, the chair the computer. Any other listed thing that the scene lacks lies in the home
    office, at reach of every seat of the house: where the published graphs put it is not known.
    """
    build = _Builder(scene)
    office = scene.named(OFFICE)[0].id
    inside = [name for name in _OFFICE_THINGS if scene.named(name)]
    placed = {name: build.find_or_add(name, office) for name in inside}
    seats = [placed[name] for name in SEATS if name in placed]
    for id in placed.values():
        build.bring_together(id, seats)
    for seat, faced in _FACED.items():
        if seat in placed and faced in placed:
            build.facing.setdefault(placed[seat], set()).add(placed[faced])
    everywhere = [thing.id for name in SEATS for thing in build.named(name)]
    for name in sorted(set(objects)):
        if not build.named(name):
            build.bring_together(build.find_or_add(name, office), [*everywhere, *placed.values()])
    return build.scene()


class _Builder:
    """A scene in the making."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.things = dict(scene.things)
        self.inside = {id: set(to) for id, to in scene.inside.items()}
        self.close = {id: set(to) for id, to in scene.close.items()}
        self.facing = {id: set(to) for id, to in scene.facing.items()}

    def named(self, name: str) -> list[Thing]:
        return [thing for thing in self.things.values() if thing.name == name]

    def find_or_add(self, name: str, room: int) -> int:
        """Return the first thing of this name in a room; one is put there if there is none."""
        known = self._scene.named(name)
        here = [thing.id for thing in known if self._scene.room(thing.id) == room]
        if here:
            return here[0]
        properties = known[0].properties if known else PROPERTIES.get(name, frozenset())
        id = max(self.things) + 1
        self.things[id] = make_thing(id, name, properties)
        self.inside[id] = {room}
        return id

    def bring_together(self, id: int, others: Iterable[int]) -> None:
        for other in others:
            if other != id:
                self.close.setdefault(id, set()).add(other)
                self.close.setdefault(other, set()).add(id)

    def scene(self) -> Scene:
        inside, close, facing = (
            {id: frozenset(to) for id, to in relation.items()} for relation in (self.inside, self.close, self.facing)
        )
        return Scene(self.things, self._scene.character, inside=inside, on=self._scene.on, close=close, facing=facing)
