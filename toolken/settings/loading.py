"""From YAML files and dotted flags to frozen settings.

`--config a.yaml --config b.yaml --solver.l2 1e-4`: later files win over earlier ones, flags win over files, key by
key. Files and flags go through the same rules, those of the pydantic model: an unknown key is refused with the
nearest valid one, a wrong type or a broken bound names its key and the file and line (or the flag) that set it. Only
safe YAML is read; a key given twice in one file is refused. tyro prints the help.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import tyro
import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from toolken.config import Config
from toolken.errors import UserError
from toolken.files import user_path
from toolken.settings.flags import parse_flags
from toolken.settings.tree import Tree
from toolken.settings.yaml_files import read_yaml

M = TypeVar("M", bound=BaseModel)

_PATH_START = re.compile(r"(~|\$\{?(?P<variable>[A-Za-z_]\w*)\}?)(?=/|$)")
_STRING_HINT = "valid string"


class Layer(NamedTuple):
    """One source of settings: dotted key -> value, and dotted key -> where it was set."""

    values: Mapping[str, object]
    origins: Mapping[str, str]


def load_config(path: Path | str | None, overrides: Sequence[str] = ()) -> Config:
    """Return the settings of one training run.

    Args:
        path: YAML file, or None for the defaults.
        overrides: Flags such as `["--solver.l2", "1e-4"]`.

    Raises:
        UserError: For anything in the file or the flags that is not a valid setting.
    """
    return parse_arguments(Config, [*(["--config", str(path)] if path is not None else []), *overrides])


def parse_arguments(model: type[M], argv: Sequence[str], *, prog: str | None = None, description: str = "") -> M:
    """Return `model` filled from `--config FILE` (repeatable) and dotted flags.

    Where the model has a field `name` that nothing sets, it becomes the last file's name without ending. `-h` and
    `--help` print every field with its docstring, its value so far, and end the program.

    Args:
        model: Pydantic class; nested models are sections.
        argv: Arguments without the program's name.
        prog: Program name shown by the help.
        description: First lines of the help.

    Raises:
        UserError: One line with the file and line, or the flag, the key, and what is valid.
        SystemExit: After `--help`, with status 0.
    """
    tree = Tree.of(model)
    files, rest = split_configs(argv)
    layers = [file_layer(user_path(name), tree) for name in files]
    if files and "name" in tree.leaves:
        layers.insert(0, Layer({"name": Path(files[-1]).stem}, {"name": files[-1]}))
    wants_help = any(argument in ("-h", "--help") for argument in rest)
    if not wants_help:
        flags = parse_flags(rest, tree)
        layers.append(Layer(flags, {key: f"--{key}" for key in flags}))
    values = {key: value for layer in layers for key, value in layer.values.items()}
    origins = {key: origin for layer in layers for key, origin in layer.origins.items()}
    if wants_help:
        _print_help(model, values, prog=prog, description=description)
    return _validate(model, values, origins, tree)


def split_configs(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take every `--config FILE` and `--config=FILE` out of the arguments; the rest keeps its order."""
    files: list[str] = []
    rest: list[str] = []
    arguments = iter(argv)
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name != "--config":
            rest.append(argument)
            continue
        value = value if equals else next(arguments, "")
        if not value or value.startswith("--"):
            raise UserError("--config", "names no file", "write `--config FILE.yaml`")
        files.append(value)
    return files, rest


def dump_config(config: BaseModel) -> str:
    """Return the resolved settings as YAML that reads back to an equal model."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)


def file_layer(path: Path, tree: Tree) -> Layer:
    """Read one YAML file into dotted keys; sections and keys must exist in `tree`."""
    document = read_yaml(path)
    values: dict[str, object] = {}
    for key, value in _flatten(document.content, tree):
        where = f"{path}:{document.lines.get(key, 1)}"
        if key in tree.sections:
            raise UserError(where, f"`{key}` is a section, not a value", f"its keys: {', '.join(tree.children(key))}")
        if key not in tree.leaves:
            raise UserError(where, f"unknown key `{key}`", tree.suggest(key))
        if isinstance(value, bool) and not tree.leaves[key].takes_bool:
            raise UserError(where, f"`{key}` is {str(value).lower()}, which is no valid value", tree.describe(key))
        values[key] = value
    return Layer(values, {key: f"{path}:{document.lines.get(key, 1)}" for key in values})


def _flatten(content: Mapping[str, object], tree: Tree, prefix: str = "") -> list[tuple[str, object]]:
    items: list[tuple[str, object]] = []
    for name, value in content.items():
        key = f"{prefix}{name}"
        if key in tree.sections and value is None:
            continue  # a section whose keys are all commented out
        if key in tree.sections and isinstance(value, dict):
            items += _flatten(value, tree, key + ".")
        else:
            items.append((key, value))
    return items


def _expand(value: object, where: str, *, path: bool) -> object:
    """Expand `~` and `$VARIABLE` at the start of a path.

    A text that need not be a path is left alone where it holds a space or the variable does not exist: questions and
    regular expressions hold `$` too.
    """
    if isinstance(value, list):
        return [item if isinstance(item, list) else _expand(item, where, path=path) for item in value]
    if isinstance(value, str) and "\0" in value:
        raise UserError(where, "a text holds a NUL character", "take it out")
    found = _PATH_START.match(value) if isinstance(value, str) else None
    if not isinstance(value, str) or found is None or (not path and re.search(r"\s", value)):
        return value
    variable = found["variable"]
    if variable is None:
        return str(user_path(value))
    if variable in os.environ:
        return os.environ[variable] + value[found.end() :]
    if path:
        raise UserError(
            where, f"the environment variable {variable} is not set", f"export {variable}=... or write the path"
        )
    return value


def _validate(model: type[M], values: Mapping[str, object], origins: Mapping[str, str], tree: Tree) -> M:
    expanded = {key: _expand(value, origins[key], path=tree.leaves[key].takes_path) for key, value in values.items()}
    try:
        return model.model_validate(_nest(expanded))
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise _readable(details, origins, tree) from error


def _readable(details: Sequence[ErrorDetails], origins: Mapping[str, str], tree: Tree) -> UserError:
    """Turn the first finding of pydantic into one line that names the key, the value and what is valid."""
    path = [str(part) for part in details[0]["loc"]]
    key = next((".".join(path[:length]) for length in range(len(path), 0, -1) if ".".join(path[:length]) in tree), "")
    if details[0]["type"] == "missing":
        return UserError(f"--{key.replace('_', '-')}", "is required", tree.describe(key) if key in tree.leaves else "")
    # A union reports one finding for each alternative: all of them say what would be valid.
    found = [
        item
        for item in details
        if (*(str(part) for part in item["loc"]), "")[: len(key.split("."))] == tuple(key.split("."))
    ]
    messages = dict.fromkeys(item["msg"][:1].lower() + item["msg"][1:] for item in found or details[:1])
    shown = repr(details[0]["input"])
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    quotes = "put quotes around it" if any(_STRING_HINT in message for message in messages) else ""
    fix = quotes or (tree.describe(key) if key in tree.leaves else "")
    return UserError(origins.get(key, key or "settings"), f"`{key}` is {shown}: {' or '.join(messages)}", fix)


def _nest(values: Mapping[str, object]) -> dict[str, object]:
    root: dict[str, object] = {}
    for key, value in values.items():
        *sections, name = key.split(".")
        target = root
        for section in sections:
            child = target.setdefault(section, {})
            if not isinstance(child, dict):
                raise UserError(key, f"`{section}` is set as a value and as a section", "keep one of them")
            target = child
        target[name] = value
    return root


def _print_help(model: type[M], values: Mapping[str, object], *, prog: str | None, description: str) -> None:
    """Let tyro print the help; fields that the files set show their value as the default."""
    default: M | None = None
    try:
        default = model.model_validate(_nest(values))
    except ValidationError:
        pass  # help must come whatever the files hold; required fields are shown as such
    text = "\n".join(part for part in (description, "--config FILE.yaml (repeatable) sets the defaults below.") if part)
    config = (tyro.conf.FlagConversionOff,)
    if default is None:
        tyro.cli(model, args=["--help"], prog=prog, description=text, config=config)
    else:
        tyro.cli(model, args=["--help"], prog=prog, description=text, config=config, default=default)
