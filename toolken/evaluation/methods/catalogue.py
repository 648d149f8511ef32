"""The methods by name: the only list of them."""

from __future__ import annotations

from typing import NamedTuple

from toolken.errors import UserError, did_you_mean
from toolken.evaluation.methods.base import Base
from toolken.evaluation.methods.icl import Icl
from toolken.evaluation.methods.icl_retrieved import IclRetrieved
from toolken.evaluation.methods.method import Method
from toolken.evaluation.methods.react import React
from toolken.evaluation.methods.toolken import Toolken, ToolkenAdam
from toolken.evaluation.methods.zero_shot import ZeroShot

_ALL: tuple[Method, ...] = (Base(), ZeroShot(), React(), Icl(), IclRetrieved(), Toolken(), ToolkenAdam())

METHODS = {method.name: method for method in _ALL}


class Chosen(NamedTuple):
    """A method as it was asked for: `toolken-adam:1` is the published recipe with seed 1."""

    spec: str
    method: Method
    seed: int | None


def choose_method(spec: str) -> Chosen:
    """Return the method that a text names.

    Raises:
        UserError: There is none, or a seed is given that it does not take or that is no number.
    """
    name, colon, seed = spec.partition(":")
    if name not in METHODS:
        raise UserError("--methods", f"no method {name}", did_you_mean(name, METHODS))
    method = METHODS[name]
    if not colon:
        return Chosen(spec, method, None)
    if method.head != "published":
        raise UserError("--methods", f"{name} takes no seed", f"write `{name}`")
    if not seed.isdecimal():
        raise UserError("--methods", f"`{spec}` has no number after the colon", f"write `{name}:1`")
    return Chosen(spec, method, int(seed))
