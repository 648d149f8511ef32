"""The dotted keys of a pydantic model: which exist, what each takes, and which one was meant.

Built from the model alone, so that YAML files, flags and messages share one idea of what a valid key is.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from toolken.errors import did_you_mean


@dataclass(frozen=True)
class Leaf:
    """One setting: what its annotation lets through, and its docstring."""

    help: str
    takes_path: bool
    takes_bool: bool
    takes_list: bool
    takes_none: bool


@dataclass(frozen=True)
class Tree:
    """Every key of a model, by dotted name."""

    leaves: dict[str, Leaf]
    sections: frozenset[str]

    @classmethod
    def of(cls, model: type[BaseModel]) -> Tree:
        """Walk the model's fields; a field whose type is a model is a section."""
        leaves: dict[str, Leaf] = {}
        sections: set[str] = set()
        _walk(model, "", leaves, sections)
        return cls(leaves, frozenset(sections))

    def __contains__(self, key: str) -> bool:
        return key in self.leaves or key in self.sections

    def children(self, section: str) -> list[str]:
        """Return the settings directly or indirectly under `section`."""
        return [key for key in self.leaves if key.startswith(section + ".")]

    def suggest(self, key: str, dashes: str = "") -> str:
        """Say which key was probably meant: one of the same last name, else the most similar one."""
        last = key.rpartition(".")[2]
        same = [known for known in self.leaves if known.rpartition(".")[2] == last]
        if len(same) == 1:
            return f"did you mean `{dashes}{same[0]}`?"
        return did_you_mean(dashes + key, [dashes + known for known in (*self.leaves, *sorted(self.sections))])

    def describe(self, key: str) -> str:
        """Return the first sentence of the setting's docstring."""
        text = " ".join(self.leaves[key].help.split())
        return f"{key}: {text}" if text else ""


def _walk(model: type[BaseModel], prefix: str, leaves: dict[str, Leaf], sections: set[str]) -> None:
    for name, field in model.model_fields.items():
        key = prefix + name
        inner = next((option for option in _options(field) if _is_model(option)), None)
        if inner is None:
            leaves[key] = _leaf(field)
        else:
            sections.add(key)
            _walk(typing.cast("type[BaseModel]", inner), key + ".", leaves, sections)


def _leaf(field: FieldInfo) -> Leaf:
    options = list(_options(field))
    return Leaf(
        help=field.description or "",
        takes_path=Path in options or list[Path] in options,
        takes_bool=bool in options or any(isinstance(v, bool) for option in options for v in _literals(option)),
        takes_list=any(typing.get_origin(option) in (list, tuple, set, frozenset) for option in options),
        takes_none=type(None) in options,
    )


def _options(field: FieldInfo) -> Iterable[object]:
    """Yield the alternatives of a field's type: `float | Literal["auto"]` has two."""
    return _alternatives(field.annotation)


def _alternatives(annotation: object) -> Iterable[object]:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        yield from _alternatives(typing.get_args(annotation)[0])
    elif origin is types.UnionType or str(origin) == "typing.Union":
        for part in typing.get_args(annotation):
            yield from _alternatives(part)
    else:
        yield annotation


def _literals(option: object) -> tuple[object, ...]:
    return typing.get_args(option) if typing.get_origin(option) is typing.Literal else ()


def _is_model(option: object) -> bool:
    return isinstance(option, type) and issubclass(option, BaseModel)
