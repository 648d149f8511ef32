"""The state of a household while a plan is carried out, and the questions that actions ask about it.

Invariant: only `World` changes, the `Scene` beneath never does; the same steps from the same start give the same
state. A name stands for one thing throughout a plan: the one that was walked to or found first.
"""

from __future__ import annotations

from toolken.errors import UserError
from toolken.evaluation.virtualhome.scene import OFFICE, Scene, Thing

HANDS = 2


class World:
    """A scene at some moment.

    Args:
        scene: Where things stand at the start.
        room: The room that the character starts in.

    Attributes:
        states: States of every thing, by id; those of the character are SITTING and LYING.
        near: What the character is close to.
        facing: What the character faces.
        held: What is in the hands: thing -> where it was taken from, None if nowhere.
    """

    def __init__(self, scene: Scene, room: str) -> None:
        rooms = [thing for thing in scene.named(room) if thing.room]
        if not rooms:
            raise UserError(f"room {room}", "the scene has no such room", "name a room of the scene")
        self.scene = scene
        self.states: dict[int, frozenset[str]] = {id: thing.states for id, thing in scene.things.items()}
        self.near: set[int] = set()
        self.facing: set[int] = set()
        self.held: dict[int, int | None] = {}
        self.room: int = rooms[0].id
        self._known: dict[str, int] = {}
        self._moved: dict[int, int] = {}
        self._asked: str | None = None

    # Names and things

    def known(self, name: str) -> Thing | None:
        """Return the thing that a name stands for already."""
        id = self._known.get(name)
        return None if id is None else self.scene.things[id]

    def choose(self, name: str) -> Thing | None:
        """Return the thing that a name stands for, choosing one at its first use.

        What is at reach comes first, then what is in the room that was last walked to (the home office, until there is
        one), then what the graph lists first.
        """
        if (thing := self.known(name)) is not None:
            return thing
        preferred = [room.id for room in self.scene.named(self._asked or OFFICE)]
        ordered = sorted(
            self.scene.named(name), key=lambda thing: (not self.reaches(thing), self.room_of(thing.id) not in preferred)
        )
        if not ordered:
            return None
        self._known[name] = ordered[0].id
        return ordered[0]

    def room_of(self, id: int) -> int | None:
        """Return the room that a thing is in now."""
        if id in self.held or id == self.scene.character:
            return self.room
        return self._moved.get(id) or self.scene.room(id)

    # What actions ask

    def is_in(self, thing: Thing, state: str) -> bool:
        """Return whether a thing is in a state."""
        return state in self.states[thing.id]

    @property
    def seated(self) -> bool:
        """Whether the character sits or lies."""
        return bool(self.states[self.scene.character] & {"SITTING", "LYING"})

    def reaches(self, thing: Thing) -> bool:
        """Return whether a thing is close to the character, or close to or on something that is."""
        if thing.id in self.held or thing.id in self.near:
            return True
        if thing.id in self._moved:
            return False
        around = self.scene.close.get(thing.id, frozenset()) | self.scene.on.get(thing.id, frozenset())
        return bool(around & self.near)

    def faces(self, thing: Thing) -> bool:
        """Return whether the character faces a thing, or something that faces it."""
        onward = self.scene.facing.get
        return thing.id in self.facing or any(thing.id in onward(id, frozenset()) for id in self.facing)

    def shut_in(self, thing: Thing) -> bool:
        """Return whether a thing is in something that is closed."""
        if thing.id in self.held or thing.id in self._moved:
            return False
        around = self.scene.inside.get(thing.id, frozenset())
        return any("CLOSED" in self.states[id] and not self.scene.things[id].room for id in around)

    def free_hand(self) -> bool:
        """Return whether a hand is empty."""
        return len(self.held) < HANDS

    def crowded(self, thing: Thing, room_for: int) -> bool:
        """Return whether so many things are on it that nobody else fits."""
        return sum(thing.id in on for on in self.scene.on.values()) >= room_for

    # What actions do

    def change(self, thing: Thing, *, add: str = "", drop: str = "") -> None:
        """Give a thing one state and take another from it."""
        self.states[thing.id] = (self.states[thing.id] - {drop}) | ({add} if add else frozenset())

    def go_to(self, thing: Thing) -> None:
        """Walk: into a room, or to a thing, what holds it and what it stands on; what is in the hands comes along."""
        room = self.room_of(thing.id)
        self.room = self.room if room is None else room
        self.facing.clear()
        self.near = set(self.held)
        if thing.room:
            self._asked = thing.name
            return
        around = self.scene.inside.get(thing.id, frozenset()) | self.scene.on.get(thing.id, frozenset())
        self.near |= {thing.id} | {id for id in around if not self.scene.things[id].room}
        if "CAN_OPEN" in thing.properties:
            self.near |= {id for id, holders in self.scene.inside.items() if thing.id in holders}

    def take(self, thing: Thing) -> None:
        """Take a thing into a free hand, and remember where it was."""
        places = [*self.scene.on.get(thing.id, ()), *self.scene.inside.get(thing.id, ())]
        places += sorted(self.scene.close.get(thing.id, ()))
        found = [id for id in places if not self.scene.things[id].room and id != self.scene.character]
        self.held[thing.id] = found[0] if found else None
        self.near |= {thing.id, *found[:1]}

    def let_go(self, thing: Thing, place: int | None) -> None:
        """Open the hand: the thing lies in this room, near a place if there is one."""
        del self.held[thing.id]
        self._moved[thing.id] = self.room
        self.near |= {thing.id} | ({place} if place is not None else set())
