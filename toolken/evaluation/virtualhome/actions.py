"""What each action needs and does: preconditions and effects on a household.

The semantics are those of VirtualHome's evolving graph: one walks before one uses, seated one reaches only what is
near, a hand holds one thing, what is off can be switched on, what one watches one faces. Invariant: `act` either
changes the world and returns None, or leaves it as it was and returns the reason. Left out: actions on two things,
clothes, doors between rooms (all are open), other people.
Source: Puig et al., "VirtualHome: Simulating Household Activities via Programs", CVPR 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from toolken.evaluation.virtualhome.scene import Thing
from toolken.evaluation.virtualhome.world import World

_SEATED = {"couch": 4, "bed": 4, "chair": 1}
_LAID = {"couch": 2, "bed": 3}
_OPENABLE = frozenset({"desk", "window"})
"""Things that open although they lack the property."""

Check = Callable[[World, Thing], bool]


class Need(NamedTuple):
    """A precondition and what it is called when it fails."""

    holds: Check
    failure: str


class Action(NamedTuple):
    """An action on one thing."""

    needs: tuple[Need, ...]
    do: Callable[[World, Thing], None]


def _has(*properties: str, names: frozenset[str] = frozenset()) -> Need:
    def holds(world: World, thing: Thing) -> bool:
        return bool(thing.properties & set(properties)) or thing.name in names

    return Need(holds, f"it is not {' or '.join(properties).lower().replace('_', ' ')}")


def _in_state(state: str) -> Need:
    return Need(lambda world, thing: world.is_in(thing, state), f"it is not {state.lower().replace('_', ' ')}")


def _not_in_state(state: str) -> Need:
    return Need(lambda world, thing: not world.is_in(thing, state), f"it is {state.lower().replace('_', ' ')}")


def _room_on(places: Mapping[str, int]) -> Need:
    return Need(lambda world, thing: not world.crowded(thing, places.get(thing.name, 1)), "it is taken")


_STANDING = Need(lambda world, thing: not world.seated, "one has to stand up first")
_NEAR = Need(World.reaches, "it is out of reach")
_OUT = Need(lambda world, thing: not world.shut_in(thing), "it is in something closed")
_HAND = Need(lambda world, thing: world.free_hand(), "no hand is free")
_HELD = Need(lambda world, thing: thing.id in world.held, "it is not in a hand")
_NOT_HELD = Need(lambda world, thing: thing.id not in world.held, "it is in a hand already")
_FACED = Need(World.faces, "one does not face it")
_SAME_ROOM = Need(lambda world, thing: world.room_of(thing.id) == world.room, "it is in another room")
_NOT_SITTING = Need(lambda world, thing: "SITTING" not in world.states[world.scene.character], "one sits already")
_NOT_LYING = Need(lambda world, thing: "LYING" not in world.states[world.scene.character], "one lies already")
_PULLED = _has("MOVABLE", names=frozenset({"button", "chair", "curtain"}))
_HAS_PLACE = Need(lambda world, thing: world.held.get(thing.id) is not None, "it has no place to go back to")


def _walk(world: World, thing: Thing) -> None:
    world.go_to(thing)


def _find(world: World, thing: Thing) -> None:
    if not world.reaches(thing):
        world.go_to(thing)
    world.facing.clear()
    world.near.add(thing.id)


def _sit(world: World, thing: Thing) -> None:
    world.change(world.scene.things[world.scene.character], add="SITTING", drop="LYING")
    world.facing |= world.scene.facing.get(thing.id, frozenset())


def _lie(world: World, thing: Thing) -> None:
    world.change(world.scene.things[world.scene.character], add="LYING", drop="SITTING")


def _turn(world: World, thing: Thing) -> None:
    world.facing.clear()
    world.facing.add(thing.id)


def _take(world: World, thing: Thing) -> None:
    world.take(thing)


def _drop(world: World, thing: Thing) -> None:
    world.let_go(thing, None)


def _put_back(world: World, thing: Thing) -> None:
    world.let_go(thing, world.held[thing.id])


def _look(world: World, thing: Thing) -> None:
    """Nothing changes."""


def _changes(add: str, drop: str) -> Callable[[World, Thing], None]:
    def do(world: World, thing: Thing) -> None:
        world.change(thing, add=add, drop=drop)

    return do


_FINDABLE = Need(lambda world, thing: not world.seated or world.reaches(thing), "it is out of reach of one who sits")

ACTIONS: Mapping[str, Action] = {
    "WALK": Action((_STANDING,), _walk),
    "RUN": Action((_STANDING,), _walk),
    "FIND": Action((_FINDABLE,), _find),
    "SIT": Action((_NEAR, _NOT_SITTING, _has("SITTABLE"), _room_on(_SEATED)), _sit),
    "LIE": Action((_NEAR, _NOT_LYING, _has("LIEABLE"), _room_on(_LAID)), _lie),
    "TURNTO": Action((), _turn),
    "LOOKAT": Action((_FACED,), _look),
    "POINTAT": Action((_FACED,), _look),
    "WATCH": Action((_has("LOOKABLE"), _SAME_ROOM, _FACED), _look),
    "GRAB": Action((_has("GRABBABLE", names=frozenset({"water"})), _NOT_HELD, _NEAR, _OUT, _HAND), _take),
    "DROP": Action((_HELD,), _drop),
    "PUTOBJBACK": Action((_HELD, _HAS_PLACE), _put_back),
    "TOUCH": Action((_NEAR, _OUT), _look),
    "PUSH": Action((_NEAR, _OUT, _HAND), _look),
    "PULL": Action((_PULLED, _NEAR, _OUT, _HAND), _look),
    "TYPE": Action((_NEAR, _has("HAS_SWITCH", names=frozenset({"keyboard"}))), _look),
    "READ": Action((_has("READABLE"), _HELD), _look),
    "DRINK": Action((_has("DRINKABLE", "RECIPIENT"), _HELD), _look),
    "SWITCHON": Action(
        (_has("HAS_SWITCH"), _NEAR, _in_state("OFF"), _not_in_state("PLUGGED_OUT")), _changes("ON", "OFF")
    ),
    "SWITCHOFF": Action((_has("HAS_SWITCH"), _NEAR, _in_state("ON")), _changes("OFF", "ON")),
    "PLUGIN": Action((_has("HAS_PLUG"), _NEAR, _HAND, _in_state("PLUGGED_OUT")), _changes("PLUGGED_IN", "PLUGGED_OUT")),
    "OPEN": Action(
        (_has("CAN_OPEN", names=_OPENABLE), _NEAR, _HAND, _in_state("CLOSED"), _not_in_state("ON")),
        _changes("OPEN", "CLOSED"),
    ),
    "CLOSE": Action((_has("CAN_OPEN", names=_OPENABLE), _NEAR, _in_state("OPEN")), _changes("CLOSED", "OPEN")),
    "WASH": Action((_NEAR,), _changes("CLEAN", "DIRTY")),
    "RINSE": Action((_NEAR,), _changes("CLEAN", "DIRTY")),
}
"""Every action of the tasks; each takes one thing."""

_LOCATING = frozenset({"WALK", "RUN", "FIND"})
"""Only these may name a thing for the first time."""


def act(world: World, action: str, name: str) -> str | None:
    """Carry out one action; return None, or why it cannot be done.

    Args:
        world: Changed where the action can be done.
        action: A name of `ACTIONS`.
        name: What the thing is called.
    """
    known = ACTIONS.get(action)
    if known is None:
        return f"[{action}] is no action"
    thing = world.choose(name) if action in _LOCATING else world.known(name)
    if thing is None:
        return f"[{action}] <{name}>: it has not been found"
    for need in known.needs:
        if not need.holds(world, thing):
            return f"[{action}] <{name}>: {need.failure}"
    known.do(world, thing)
    return None
