"""A small house, written as the published scene graphs are."""

import json
from pathlib import Path

from toolken.evaluation.virtualhome.scene import Scene, furnish, read_scene

LISTED = ("home_office", "bedroom", "couch", "chair", "television", "computer", "keyboard", "novel", "remote_control")
NODES = [
    (1, "living_room", [], True),
    (2, "bedroom", [], True),
    (3, "character", [], False),
    (10, "television", ["HAS_SWITCH", "LOOKABLE", "HAS_PLUG"], False),
    (11, "love_seat", ["SITTABLE", "LIEABLE", "SURFACES"], False),
    (12, "chair", ["SITTABLE", "GRABBABLE", "MOVABLE"], False),
    (13, "desk", ["SURFACES", "MOVABLE"], False),
    (20, "bed", ["SITTABLE", "LIEABLE"], False),
    (21, "chair", ["SITTABLE", "GRABBABLE", "MOVABLE"], False),
    (22, "drawer", ["CAN_OPEN", "CONTAINERS"], False),
    (24, "keyboard", ["GRABBABLE", "MOVABLE"], False),
    (25, "computer", ["HAS_SWITCH", "LOOKABLE"], False),
    (23, "key", ["GRABBABLE", "MOVABLE"], False),
]
EDGES = [
    (3, "INSIDE", 2),
    *((id, "INSIDE", 1) for id in (10, 11, 12, 13)),
    *((id, "INSIDE", 2) for id in (20, 21, 22, 24, 25)),
]
EDGES += [(23, "INSIDE", 22), (20, "CLOSE", 21), (21, "CLOSE", 20)]


def graph() -> dict[str, object]:
    """The graph of the small house."""
    nodes = [
        {
            "id": id,
            "class_name": name,
            "properties": properties,
            "states": [],
            "category": "Rooms" if room else "Furniture",
        }
        for id, name, properties, room in NODES
    ]
    edges = [{"from_id": start, "relation_type": kind, "to_id": end} for start, kind, end in EDGES]
    return {"nodes": nodes, "edges": edges}


def write_scene(path: Path) -> Path:
    """Write the graph to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(graph()))
    return path


def small_house(folder: Path) -> Scene:
    """The small house, furnished for `LISTED`."""
    return furnish(read_scene(write_scene(folder / "house.json")), LISTED)
