"""`toolkens.json`: what the rows beside it are, on which base they stand, and how they came about.

Every field is checked when it is read; what does not fit (a newer format, another base, a damaged file) is refused with
the fix. Nothing in it is ever imported or evaluated: a tool's reference is a name to compare.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from toolken.data.prompts import Prompt
from toolken.errors import UserError
from toolken.files import check_input, is_unicode, read_text, sweep, write_bytes, write_text
from toolken.model.base import BaseLM
from toolken.tools.strict_json import parse_json
from toolken.tools.tool import Tool

INFO = "toolkens.json"
NEXT = "toolkens.next.json"
"""The JSON of rows that are being saved; it takes the other one's place right after the rows have."""
WEIGHTS = "toolkens.safetensors"
FORMAT_VERSION = 1
_MAX_INFO = 2**30
_MAX_WEIGHTS = 2**34


class Record(BaseModel):
    """A frozen part of the artefact; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class BiasParts(Record):
    """What a row's bias is made of: as solved, plus the shift that all rows share, plus one of its own."""

    solved: float = 0.0
    shift: float = 0.0
    per_tool: float = 0.0


class ToolRecord(Record):
    """One row: the tool as it was when the row was trained.

    Attributes:
        name: Shown as `<name>`.
        description: What it does.
        parameters: JSON Schema of its arguments.
        order: Arguments in order.
        variadic: Argument that takes the rest.
        reference: Where it came from; only built-in ones bind by themselves.
        schema_hash: A tool that is passed must have the same.
        demonstrations: Worked calls that argument mode shows.
        trained: Whether there were examples; a row without is masked.
        examples: How many.
        bias_parts: Parts of the row's bias; None where they are not known.
    """

    name: str = Field(min_length=1)
    description: str = ""
    parameters: dict[str, JsonValue] = {}
    order: list[str] = []
    variadic: str | None = None
    reference: str = ""
    schema_hash: str = ""
    demonstrations: str = ""
    trained: bool = True
    examples: int = Field(default=0, ge=0)
    bias_parts: BiasParts | None = None

    @model_validator(mode="after")
    def _is_a_tool(self) -> ToolRecord:
        """Refuse what no tool can be, and a description that is not the one of the hash."""
        try:
            found = self.tool().schema_hash
        except (UserError, TypeError, AttributeError) as error:
            problem = error.problem if isinstance(error, UserError) else "its parameters are no JSON Schema"
            raise ValueError(f"{self.name[:40]!r} is no tool: {problem}") from error
        if self.schema_hash not in ("", found):
            raise ValueError(f"<{self.name}> is not the tool of its schema hash {self.schema_hash[:12]}")
        return self

    @classmethod
    def of(cls, tool: Tool, *, demonstrations: str = "", examples: int = 0) -> ToolRecord:
        """Describe a tool; it counts as trained if it has examples."""
        return cls(
            name=tool.name,
            description=tool.description,
            parameters=dict(tool.parameters),
            order=list(tool.order),
            variadic=tool.variadic,
            reference=tool.reference,
            schema_hash=tool.schema_hash,
            demonstrations=demonstrations,
            trained=examples > 0,
            examples=examples,
        )

    def tool(self) -> Tool:
        """Return the tool as it is described here; it has no function, so it cannot run."""
        return Tool(
            name=self.name,
            description=self.description,
            parameters=self.parameters,
            order=tuple(self.order),
            variadic=self.variadic,
            reference=self.reference,
        )


class PromptRecord(Record):
    """The reasoning prompt that the rows were trained after."""

    before: str = ""
    after: str = ""
    chat: bool = False
    answer_pattern: str = ""
    stop: list[str] = []
    conclusion: str = ""
    hash: str = ""

    @classmethod
    def of(cls, prompt: Prompt) -> PromptRecord:
        """Describe a prompt."""
        return cls(
            before=prompt.before,
            after=prompt.after,
            chat=prompt.chat,
            answer_pattern=prompt.answer_pattern,
            stop=list(prompt.stop),
            conclusion=prompt.conclusion,
            hash=prompt.hash,
        )

    def prompt(self) -> Prompt:
        """Return the prompt that was described."""
        fields = self.model_dump(exclude={"hash", "stop"})
        return Prompt(**fields, stop=tuple(self.stop))


class HeadInfo(Record):
    """Everything in `toolkens.json`.

    Attributes:
        format_version: Of the two files.
        base_name: How the base was asked for.
        base_fingerprint: The base's numbers; another base is refused.
        base_dtype: The base's dtype, to say the fix where only that differs.
        hidden_size: Width of the rows.
        tools: In row order.
        prompt: The reasoning prompt.
        training: How the rows were found.
        calibration: How the bias was shifted.
        data: Hash and licences of the examples.
        weights_sha256: Of `toolkens.safetensors`; filled in when the head is saved.
    """

    format_version: int = FORMAT_VERSION
    base_name: str
    base_fingerprint: str
    base_dtype: str = ""
    hidden_size: int = Field(ge=1)
    tools: list[ToolRecord]
    prompt: PromptRecord = PromptRecord()
    training: dict[str, JsonValue] = {}
    calibration: dict[str, JsonValue] = {}
    data: dict[str, JsonValue] = {}
    weights_sha256: str = ""

    @classmethod
    def for_base(
        cls,
        base: BaseLM,
        tools: Sequence[ToolRecord],
        *,
        prompt: PromptRecord,
        training: dict[str, JsonValue] | None = None,
        calibration: dict[str, JsonValue] | None = None,
        data: dict[str, JsonValue] | None = None,
    ) -> HeadInfo:
        """Describe rows that stand on a base."""
        return cls(
            base_name=base.name,
            base_fingerprint=base.fingerprint,
            base_dtype=str(base.dtype).removeprefix("torch."),
            hidden_size=base.hidden_size,
            tools=list(tools),
            prompt=prompt,
            training=training or {},
            calibration=calibration or {},
            data=data or {},
        )


def read_info(directory: Path) -> HeadInfo:
    """Read the `toolkens.json` of an artefact.

    Raises:
        UserError: It is missing, no JSON, of another format version, or has unknown, missing or bad fields.
    """
    path = directory / (NEXT if _was_cut_off(directory) else INFO)
    fix = "copy the artefact again, or train it again"
    check_input(path, _MAX_INFO)
    text = read_text(path, "name the folder that holds toolkens.json")
    try:
        content = parse_json(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}", f"no valid JSON: {error.msg}", fix) from error
    except ValueError as error:
        raise UserError(str(path), f"no valid JSON: {error}", fix) from error
    if not is_unicode(content):
        raise UserError(str(path), "a text in it holds half of a surrogate pair", fix)
    version = content.get("format_version") if isinstance(content, dict) else None
    if type(version) is not int or version != FORMAT_VERSION:
        raise UserError(
            str(path),
            f"format version {version} cannot be read, this toolken reads {FORMAT_VERSION}",
            "use the toolken release that wrote it, or train again",
        )
    try:
        return HeadInfo.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{path} ({place})", first["msg"].removeprefix("Value error, "), fix) from error


def save_files(directory: Path, weights: bytes, info: HeadInfo) -> None:
    """Replace both files of an artefact so that, whenever the process is killed, the old pair or the new one is read.

    Raises:
        UserError: The disk is full; the old pair is still there.
    """
    directory.mkdir(parents=True, exist_ok=True)
    sweep(directory)
    described = info.model_copy(update={"weights_sha256": hashlib.sha256(weights).hexdigest()})
    if _was_cut_off(directory):
        os.replace(directory / NEXT, directory / INFO)
    write_text(directory / NEXT, described.model_dump_json(indent=2) + "\n")
    try:
        write_bytes(directory / WEIGHTS, weights)
    except UserError:
        (directory / NEXT).unlink(missing_ok=True)
        raise
    os.replace(directory / NEXT, directory / INFO)


def _was_cut_off(directory: Path) -> bool:
    """Whether a save was killed between its two files: the rows are those of the JSON that waits to be renamed."""
    check_input(directory / NEXT, _MAX_INFO)
    check_input(directory / WEIGHTS, _MAX_WEIGHTS)
    try:
        waiting = json.loads((directory / NEXT).read_bytes())
        weights = (directory / WEIGHTS).read_bytes()
    except (OSError, ValueError, RecursionError):
        return False
    digest = hashlib.sha256(weights).hexdigest()
    return isinstance(waiting, dict) and waiting.get("weights_sha256") == digest


def check_base(info: HeadInfo, base: BaseLM, where: str) -> None:
    """Refuse a base whose numbers are not those that the rows were trained on.

    Raises:
        UserError: Naming both bases and what would make them one.
    """
    dtype = str(base.dtype).removeprefix("torch.")
    if info.base_fingerprint == base.fingerprint and info.hidden_size == base.hidden_size:
        return
    trained = f"`{info.base_name}` ({info.base_dtype}, d={info.hidden_size}, {info.base_fingerprint[:12]})"
    given = f"`{base.name}` ({dtype}, d={base.hidden_size}, {base.fingerprint[:12]})"
    if info.base_name != base.name:
        fix = f"load the base `{info.base_name}`, or train on `{base.name}`"
    elif info.hidden_size != base.hidden_size:
        fix = "another model lies there now: name the one of the training run, or train again"
    elif info.base_dtype and info.base_dtype != dtype:
        fix = f"load it with dtype: {info.base_dtype}, or train again"
    else:
        fix = "load it with the revision, quantization and adapter of the training run, or train again"
    raise UserError(where, f"the toolkens were trained on {trained}, this base is {given}", fix)
