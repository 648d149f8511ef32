"""What a run starts from: the base, the tools, the rows of every split, and the context that they are seen in.

Invariant: no question of a validation row (or of `data.exclude`) is trained on; a row that is left out is kept as one
line with the reason.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from toolken.config import BaseSection, Config, DataSection, GenerateSection, PromptSection
from toolken.data.align import Encoded, align
from toolken.data.example import Example
from toolken.data.formats import example_record, read_examples
from toolken.data.prompts import Demonstrations, Prompt, load_demonstrations, load_prompt
from toolken.data.questions import read_questions
from toolken.data.rows import data_root
from toolken.data.splits import drop_overlap, split_by_hash
from toolken.errors import UserError
from toolken.evaluation.benchmarks.catalogue import load_benchmark
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.tools.loading import load_tools
from toolken.tools.toolset import ToolSet

BENCHMARK = "benchmark:"
"""What a reference to the tools of a benchmark starts with."""

UNSEEN_SEED = 1_000_003
"""Seed of generated plain text that no training run draws from."""

NEGATIVES_SEED = 500_009
"""Added to the seed of generated negatives, so that they are not the plain texts among generated training rows."""

UNSEEN_TEXTS = 100
"""Generated plain texts at least, where the settings ask for fewer."""


@dataclass(frozen=True)
class Splits:
    """Examples of every split; `left_out` has one line for every row that is not used, with the reason."""

    train: list[Example]
    validation: list[Example]
    negatives: list[Example]
    unseen: list[Example]
    left_out: list[str] = field(default_factory=list)

    @property
    def hash(self) -> str:
        """SHA-256 of everything that rows and biases are made from: the lineage of an artefact."""
        rows = [[example_record(row) for row in split] for split in (self.train, self.validation, self.negatives)]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


class Aligned(NamedTuple):
    """The aligned examples of every split; negatives are part of `train`."""

    train: list[Encoded]
    validation: list[Encoded]
    unseen: list[Encoded]


class Context(NamedTuple):
    """What surrounds a question: in reasoning mode, and in the argument mode of every tool."""

    prompt: Prompt
    demonstrations: dict[str, Demonstrations]

    def prompt_without_conclusion(self) -> Prompt:
        """Return the prompt for texts that end as they end, such as the base's own answers."""
        return replace(self.prompt, conclusion="")


def load_base(section: BaseSection, *, announce: bool = True) -> BaseLM:
    """Load the base that a configuration names."""
    if announce:
        print(f"base model: {section.name}", file=sys.stderr)
    return BaseLM.load(**section.model_dump())


def load_tool_set(reference: str, root: Path | None) -> ToolSet:
    """Return the tools that a setting names: those of a benchmark, else those that `load_tools` knows.

    Args:
        reference: `arithmetic`, `benchmark:NAME` or `FILE.py:NAME`.
        root: Folder of the data sets; see `data_root`.

    Raises:
        UserError: The reference names nothing, or what it names cannot be loaded.
    """
    if reference.startswith(BENCHMARK):
        return load_benchmark(reference.removeprefix(BENCHMARK)).tools(data_root(root))
    return load_tools(reference)


def first_per_tool(rows: Sequence[Example], count: int) -> list[Example]:
    """Return the rows, in order, without those whose tools all have `count` rows already."""
    rows_of: Counter[str] = Counter()
    kept = []
    for row in rows:
        called = {call.tool for call in row.calls}
        if called and all(rows_of[tool] >= count for tool in called):
            continue
        rows_of.update(called)
        kept.append(row)
    return kept


def load_splits(section: DataSection, tools: Sequence[str]) -> Splits:
    """Read every split, and keep held-out questions out of training.

    Raises:
        UserError: A source cannot be read, has a bad row (unless such rows are skipped), or leaves a split empty.
    """
    left_out: list[str] = []

    def read(sources: Sequence[str], generate: GenerateSection) -> list[Example]:
        rows = read_examples(
            sources,
            root=section.root,
            generate=generate,
            tools=tools,
            limit=section.limit,
            on_bad_row=section.on_bad_row,
        )
        left_out.extend(rows.refused)
        return rows.examples

    train = read(section.train, section.generate)
    if section.validation:
        following = section.generate.model_copy(update={"seed": section.generate.seed + 1})
        validation = read(section.validation, following)
    else:
        train, validation = split_by_hash(train, section.validation_share)
    excluded = [row.question for source in section.exclude for row in read_questions(source, root=section.root)]
    held_out = [row.question or row.answer for row in validation] + excluded
    train, dropped = drop_overlap(train, held_out)
    left_out += [f"{row.origin}: dropped, its question is held out" for row in dropped]
    if section.per_tool is not None:
        train = first_per_tool(train, section.per_tool)
    plain = _plain(section.generate, section.generate.seed + NEGATIVES_SEED)
    negatives, again = drop_overlap(read(section.negatives, plain), held_out)
    left_out += [f"{row.origin}: dropped, its text is held out" for row in again]
    seen = {(row.question, row.answer) for row in train + negatives}
    unseen = read(section.unseen_text or ["generated"], _plain(section.generate, UNSEEN_SEED))
    unseen = [row for row in unseen if (row.question, row.answer) not in seen]
    if not any(row.calls for row in train):
        raise UserError("data.train", "no training row has a call", "add rows with calls, or check `data.exclude`")
    return Splits(train, validation, negatives, unseen, left_out)


def _plain(section: GenerateSection, seed: int) -> GenerateSection:
    return GenerateSection(per_tool=0, two_hop=0, plain=max(section.plain, UNSEEN_TEXTS), seed=seed)


def extended_tools(old: ToolkenHead | None, tools: ToolSet) -> ToolSet:
    """Return the tools of an artefact, in row order, and those that are new; old ones need no function here.

    Raises:
        UserError: No tool is new.
    """
    if old is None:
        return tools
    known = [tools[record.name] if record.name in tools.names else record.tool() for record in old.info.tools]
    new = [tool for tool in tools if tool.name not in old.names]
    if not new:
        raise UserError(
            "init_from", "every tool of the set has a row already", "add a tool, or train without init_from"
        )
    return ToolSet([*known, *new])


def load_context(
    config: Config, *, base: BaseLM, tools: ToolSet, examples: Sequence[Example], old: ToolkenHead | None = None
) -> Context:
    """Load the prompt, and the demonstrations of every tool; `auto` ones come from training examples alone.

    Rows that are added to an artefact are trained after its prompt, unless the settings name another one.
    """
    root = data_root(config.data.root)
    if old is not None and config.prompt == PromptSection():
        prompt = old.info.prompt.prompt()
    else:
        prompt = load_prompt(config.prompt, root=root, tokenizer=base.tokenizer)
    return Context(prompt, load_demonstrations(config.prompt, root=root, tools=tools, examples=examples))


def align_splits(
    splits: Splits, prompt: Prompt, *, base: BaseLM, tools: Sequence[str], section: DataSection
) -> Aligned:
    """Align every split; a row that cannot be goes to `splits.left_out`, or stops the run (`data.on_bad_row`)."""
    left_out = splits.left_out if section.on_bad_row == "skip" else None
    parts = (splits.train + splits.negatives, splits.validation, splits.unseen)
    return Aligned(*(align_all(rows, prompt, base=base, tools=tools, left_out=left_out) for rows in parts))


def align_all(
    examples: Sequence[Example],
    prompt: Prompt,
    *,
    base: BaseLM,
    tools: Sequence[str],
    left_out: list[str] | None = None,
) -> list[Encoded]:
    """Align every example; one that cannot be is added to `left_out`, or stops the run where there is no such list.

    Raises:
        UserError: An example cannot be aligned, or is longer than the base's context.
    """
    encoded: list[Encoded] = []
    for example in examples:
        try:
            one = align(example, prompt=prompt, tokenizer=base.tokenizer, tools=tools)
            length = len(one.prefix) + len(one.ids)
            if base.max_length is not None and length > base.max_length:
                problem = f"{length} tokens with the prompt, more than the base's {base.max_length}"
                raise UserError(example.origin, problem, "shorten the row or the prompt")
            encoded.append(one)
        except UserError as error:
            if left_out is None:
                raise
            left_out.append(str(error))
    return encoded
