"""Resolves the name of a base."""

from __future__ import annotations

from typing import NamedTuple


class Source(NamedTuple):
    """Where a base lies: a directory or a hub id."""

    name: str
    path: str
    revision: str | None
    fix: str


def resolve(name: str, revision: str | None) -> Source:
    """Return where the base of a name lies."""
    return Source(name, name, revision, "check base.name")
