"""Dotted flags as text: `--solver.l2 1e-4`, `--solver.l2=1e-4`, `--data.train a b`, `--calibration.enabled False`.

A flag is a key of the model with `--` before it; `-` and `_` are the same. Values stay text where the model coerces
them. A list takes all values up to the next flag (or one `[a, b]`), and is added to where the flag is repeated; of a
repeated single value the last counts. `None` and `null` are no value, where the setting may have none; a yes/no
setting without a value is true. Flags are never abbreviated.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolken.errors import UserError
from toolken.settings.tree import Leaf, Tree
from toolken.settings.yaml_files import parse_list


def parse_flags(argv: Sequence[str], tree: Tree) -> dict[str, object]:
    """Return dotted key -> text, list of texts, bool or None.

    Raises:
        UserError: An unknown flag, with the nearest valid one; a missing value; a value that no flag takes.
    """
    values: dict[str, object] = {}
    position = 0
    while position < len(argv):
        name, equals, attached = argv[position].partition("=")
        if not name.startswith("--") or name == "--":
            fix = "write `--key value`, and quote values that hold spaces"
            raise UserError(argv[position], "belongs to no flag", fix)
        key = name[2:].replace("-", "_")
        if key in tree.sections:
            raise UserError(name, "is a section, not a value", f"its keys: {', '.join(tree.children(key))}")
        if key not in tree.leaves:
            raise UserError(name, "unknown flag", tree.suggest(key, "--"))
        position += 1
        given = [attached] if equals else _following(argv, position, tree.leaves[key])
        position += 0 if equals else len(given)
        value = _value(name, given, tree.leaves[key])
        earlier = values.get(key)
        values[key] = earlier + value if isinstance(earlier, list) and isinstance(value, list) else value
    return values


def _following(argv: Sequence[str], start: int, leaf: Leaf) -> list[str]:
    """Return the values after a flag: all for a list, else at most one; only a truth value for a yes/no setting."""
    end = start
    while end < len(argv) and not argv[end].startswith("--"):
        end += 1
    if leaf.takes_list:
        return list(argv[start:end])
    if leaf.takes_bool and end > start and argv[start].lower() not in ("true", "false"):
        return []
    return list(argv[start : min(end, start + 1)])


def _value(name: str, given: list[str], leaf: Leaf) -> object:
    if leaf.takes_none and given in (["None"], ["none"], ["null"]):
        return None
    if leaf.takes_list:
        return _bracketed(given[0]) if len(given) == 1 and given[0].startswith("[") else given
    if not given:
        if leaf.takes_bool:
            return True
        raise UserError(name, "has no value", "write `--key value`, or `--key=value` where the value starts with `--`")
    return given[0]


def _bracketed(text: str) -> list[object]:
    """Read `[a, b]` as sweeps write it; a text that only starts with a bracket (a file pattern) is one value."""
    parsed = parse_list(text)
    return [text] if parsed is None else parsed
