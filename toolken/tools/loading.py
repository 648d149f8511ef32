"""Tool sets by the name that a user's flag gives: `arithmetic`, or `FILE.py:NAME`.

The file is imported, that is, run. So the reference must come from the user's own flag or code, never from an
artefact, a data file or a model. Everything that can be wrong with it is a one-line `UserError`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from toolken.errors import UserError, did_you_mean
from toolken.files import user_path
from toolken.tools.arithmetic import ARITHMETIC
from toolken.tools.tool import Tool
from toolken.tools.toolset import ToolSet

_FORMS = "write `arithmetic`, or FILE.py:NAME where NAME is a ToolSet or a list of tools in that file"


def load_tools(reference: str) -> ToolSet:
    """Return the built-in set `arithmetic`, or the set that a user's file holds under a name.

    Raises:
        UserError: The reference has another form, the file is missing or fails, or the name holds no tools.
    """
    if reference == "arithmetic":
        return ARITHMETIC
    file, colon, name = reference.rpartition(":")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise UserError(f"tools {reference}", "not a reference to tools", _FORMS)
    path = user_path(file).resolve()
    if not path.is_file():
        raise UserError(
            f"tools {reference}", f"there is no file {path}", "check the path; it starts at the working directory"
        )
    module = import_file(path)
    if not hasattr(module, name):
        found = [key for key, value in vars(module).items() if isinstance(value, (ToolSet, list, tuple, Tool))]
        public = [key for key in found if not key.startswith("_")]
        hint = did_you_mean(name, public) if public else f"write `{name} = ToolSet([...])` in it"
        raise UserError(f"tools {reference}", f"{path.name} has no `{name}`", hint)
    loaded = _as_tools(getattr(module, name), reference)
    if not loaded:
        raise UserError(f"tools {reference}", f"`{name}` holds no tools", "put @tool functions there")
    named = (
        item if item.reference else replace(item, reference=f"{reference}#{item.name}", origin=(str(path), name))
        for item in loaded
    )
    return ToolSet(named, rule=loaded.rule)


def import_file(path: Path) -> ModuleType:
    """Import a file under a name of its own; its folder can be imported from, as if it were run as a script.

    Raises:
        UserError: The file raises; the message names the line.
    """
    name = f"toolken_user_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(str(path), "this is not a Python file", _FORMS)
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        where = f"{path}:{_line(error, path)}"
        if isinstance(error, UserError):
            tool = "" if error.where == "tools" else f"{error.where}: "
            raise UserError(where, f"{tool}{error.problem}", error.fix) from error
        raise UserError(where, f"importing it raised {type(error).__name__}: {error}", "mend the file") from error
    return module


def _line(error: BaseException, path: Path) -> int:
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return (lines[-1] if lines else None) or 1


def _as_tools(value: object, reference: str) -> ToolSet:
    if isinstance(value, ToolSet):
        return value
    if isinstance(value, Tool):
        return ToolSet([value])
    if isinstance(value, Sequence) and not isinstance(value, str):
        for position, item in enumerate(value):
            if not isinstance(item, Tool) and not callable(item):
                raise UserError(
                    f"tools {reference}",
                    f"entry {position} is a {type(item).__name__}, not a tool",
                    "put @tool functions there",
                )
        try:
            return ToolSet(value)
        except UserError as error:
            raise UserError(f"tools {reference}", error.problem, error.fix) from error
    raise UserError(f"tools {reference}", f"it is a {type(value).__name__}, not a ToolSet or a list of tools", _FORMS)
