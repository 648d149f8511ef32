"""YAML files of settings: safe, without surprises, and every key knows its line.

Of the safe subset, plain values are read as YAML 1.2 does: `1e-4` is a number, only `true` and `false` are truth
values (`no` and `on` stay text), `12:30`, `010` and dates stay text. A key that appears twice is refused instead of
silently winning. No tag constructs anything.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import yaml

from toolken.errors import UserError
from toolken.files import read_text

_BOOLEAN = "tag:yaml.org,2002:bool"
_INTEGER = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_TIME = "tag:yaml.org,2002:timestamp"


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
        UserError: The file is missing, not readable, not YAML, not a mapping, or gives a key twice; with the line
            where there is one.
    """
    if not path.exists():
        raise UserError(str(path), "no such file", _available(path))
    return parse_yaml(read_text(path, "give a YAML file in UTF-8"), str(path))


def parse_yaml(text: str, where: str) -> Document:
    """Return the mapping that `text` holds; `where` names it in messages."""
    loader = _Loader(text)
    lines: dict[str, int] = {}
    try:
        node = loader.get_single_node()
        if node is not None:
            _check(node, "", where, lines, set())
        content = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"{where}:{mark.line + 1}" if mark else where
        raise UserError(line, f"not valid YAML: {error.problem or error}", "mind indentation and quotes") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(where, f"not valid YAML: {error}") from None
    finally:
        loader.dispose()
    if content is None:
        return Document({}, {})
    if not isinstance(content, dict):
        raise UserError(where, f"holds a {type(content).__name__} where a mapping belongs", "write `key: value` lines")
    return Document({str(key): value for key, value in content.items()}, lines)


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
    names = sorted(str(found) for found in folder.glob("*.yaml"))[:8] if folder.is_dir() else []
    return (
        f"there are: {', '.join(names)}" if names else "check the path; relative paths start in the working directory"
    )
