"""YAML files of settings: safe, without surprises, and every key knows its line.

Of the safe subset, plain values are read as YAML 1.2 does: `1e-4` is a number, only `true` and `false` are truth
values (`no` and `on` stay text), `12:30`, `010` and dates stay text. A key that appears twice is refused instead of
silently winning. Tags are refused, and so are aliases that hold themselves or unfold to very many values.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import yaml

from toolken.errors import UserError
from toolken.files import is_unicode

_BOOLEAN = "tag:yaml.org,2002:bool"
_INTEGER = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_TIME = "tag:yaml.org,2002:timestamp"
_MAX_BYTES = 2**18
_MAX_VALUES = 20_000


class Document(NamedTuple):
    """The mapping of a file, and the line of each dotted key."""

    content: dict[str, object]
    lines: dict[str, int]


class _Loader(yaml.SafeLoader):
    """The safe loader with its own table of implicit types (a copy: the base class keeps its own)."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in rules if tag not in (_BOOLEAN, _INTEGER, _FLOAT, _TIME)]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node that has no tag of its own: what a value is, its text says."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "tag", None) is not None:
            raise yaml.MarkedYAMLError(None, None, f"the tag {event.tag} has no place in settings", event.start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


_Loader.add_implicit_resolver(_BOOLEAN, re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
_Loader.add_implicit_resolver(_INTEGER, re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    _FLOAT,
    re.compile(r"^(?:[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan)$"),
    list("-+0123456789."),
)


def read_yaml(path: Path) -> Document:
    """Return the mapping that the file holds; an empty file is an empty mapping.

    Raises:
        UserError: The file is missing, not readable, too long for settings, not YAML, not a mapping, or gives a key
            twice; with the line where there is one.
    """
    try:
        if not path.exists():
            raise UserError(str(path), "no such file", _available(path))
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise UserError(
                str(path), f"it is longer than {_MAX_BYTES:,} bytes", "settings are shorter; name data by path"
            )
        return parse_yaml(content.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UserError(f"{path}:{line}", f"not UTF-8 text (byte {error.start})", "save the file as UTF-8") from error
    except OSError as error:
        raise UserError(str(path), f"cannot be read ({error.strerror})", "give a YAML file in UTF-8") from error


def parse_yaml(text: str, where: str) -> Document:
    """Return the mapping that `text` holds; `where` names it in messages.

    Raises:
        UserError: It is not YAML, not a mapping, or gives a key twice; with the line where there is one.
    """
    lines: dict[str, int] = {}
    content = _parse(text, where, lines)
    if content is None:
        return Document({}, {})
    if not isinstance(content, dict):
        raise UserError(where, f"holds a {type(content).__name__} where a mapping belongs", "write `key: value` lines")
    return Document({str(key): value for key, value in content.items()}, lines)


def parse_list(text: str) -> list[object] | None:
    """Return the list that a flag's text holds, None if it is none or not one for settings."""
    try:
        content = _parse(text, "", {})
    except UserError:
        return None
    return content if isinstance(content, list) else None


def _parse(text: str, where: str, lines: dict[str, int]) -> object:
    """Return the plain value of a text; `lines` is filled with the line of each dotted key."""
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is not None:
                _check(node, "", where, lines, set())
                _unfold(node, where, {})
            content: object = None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"{where}:{mark.line + 1}" if mark else where
        raise UserError(line, f"not valid YAML: {error.problem or error}", "mind indentation and quotes") from None
    except RecursionError:
        raise UserError(where, "not valid YAML: nested too deep", "settings have two levels") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UserError(where, f"not valid YAML: {error}") from None
    if not is_unicode(content):
        raise UserError(where, "a text holds half of a surrogate pair", "write whole characters")
    return content


def _unfold(node: yaml.Node, where: str, sizes: dict[int, int]) -> int:
    """Return how many values a node holds once its aliases are written out; 0 marks a node that is being counted."""
    if sizes.get(id(node)) == 0:
        raise UserError(f"{where}:{node.start_mark.line + 1}", "an alias holds itself", "write the value out")
    if id(node) not in sizes:
        sizes[id(node)] = 0
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        parts = node.value if isinstance(node, yaml.SequenceNode) else [part for pair in pairs for part in pair]
        sizes[id(node)] = 1 + sum(_unfold(part, where, sizes) for part in parts)
    if sizes[id(node)] > _MAX_VALUES:
        line = node.start_mark.line + 1
        raise UserError(
            f"{where}:{line}", f"more than {_MAX_VALUES:,} values", "settings hold fewer; name data by path"
        )
    return sizes[id(node)]


def _check(node: yaml.Node, prefix: str, where: str, lines: dict[str, int], visited: set[int]) -> None:
    """Refuse repeated keys everywhere in the document, and note the line of each; an aliased part is looked at once."""
    if id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check(item, prefix, where, lines, visited)
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for key, value in node.value:
        name = f"{prefix}{key.value}"
        line = key.start_mark.line + 1
        if name in seen:
            raise UserError(f"{where}:{line}", f"the key `{name}` appears twice", f"the first is in line {lines[name]}")
        seen.add(name)
        lines[name] = line
        _check(value, name + ".", where, lines, visited)


def _available(path: Path) -> str:
    """Name the YAML files that are there instead."""
    folder = path.parent
    found = folder.glob("*.yaml") if folder.is_dir() else ()
    names = sorted(str(file) for file in found if not file.name.startswith("."))[:8]
    return (
        f"there are: {', '.join(names)}" if names else "check the path; relative paths start in the working directory"
    )
