"""KAMEL: which of 30, 60, 100 or 234 relations a question asks for, and the answer that its lookup gives.

Two scores. `selection`: the first call names exactly the gold relation. Accuracy, end to end: the answer starts with
an object of the gold fact, by any of its names; a call looks its subject up in a knowledge base of the benchmark's own
rows. `complete`: the answer's first line names all objects. The published test, a substring, counts P17 inside P176.
Sources: Hao et al., "ToolkenGPT", arXiv 2305.11554, figure 2; Kalo and Fichtel, AKBC 2022.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from toolken.data.kamel_facts import SIZES, SUPERVISED, look_up, normalise, object_names, read_frames
from toolken.data.rows import RawRow, read_rows
from toolken.errors import UserError
from toolken.evaluation.benchmarks.benchmark import Cause, Item, Mark, Split
from toolken.evaluation.scoring import Verdict
from toolken.inference.engine import Answer
from toolken.tools.strict_json import read_object
from toolken.tools.tool import Tool
from toolken.tools.toolset import ToolSet

RELATION, SUBJECT = "relation", "subject"
"""Keys of an item's metadata; the subject is null where the question is not of its relation's form."""

_TAKE = "check `data.root`, and take the files as published"
_ORDER, _DESCRIPTIONS, _DEVELOPMENT = "kamel/func_dict.json", "kamel/api_desc.json", SUPERVISED[1]
_PUBLISHED = {
    "ToolkenGPT, supervised": (0.98, 0.97, 0.97, 0.932),
    "ToolkenGPT, synthetic": (0.592, 0.392, 0.320, 0.254),
    "ICL": (0.502, 0.242, 0.142, 0.082),
    "ICL, descriptions": (0.212, 0.136, 0.126, 0.056),
    "Prompting": (0.230, 0.208, 0.190, 0.190),
}


@dataclass(frozen=True)
class Kamel:
    """KAMEL with the first `size` relations."""

    size: int
    published_base: str = "LLaMA-13B"
    published_measure: str = "selection"
    measures: tuple[str, ...] = ("selection", "complete")

    @property
    def name(self) -> str:
        """Return the name in settings: `kamel_30`."""
        return f"kamel_{self.size}"

    @property
    def title(self) -> str:
        """Return the name in reports."""
        return f"KAMEL, {self.size} relations"

    @property
    def published(self) -> Mapping[str, float]:
        """Return the shares that the paper prints: of questions whose relation was picked."""
        return {method: shares[SIZES.index(self.size)] for method, shares in _PUBLISHED.items()}

    def tools(self, root: Path) -> ToolSet:
        """Return one lookup a relation, in the official order.

        Raises:
            UserError: A file is missing or malformed.
        """
        order, descriptions = (read_object(root / file, _TAKE) for file in (_ORDER, _DESCRIPTIONS))
        rows = {row: relation for relation, row in order.items() if type(row) is int}
        if any(row not in rows or rows[row] not in descriptions for row in range(self.size)):
            raise UserError(_ORDER, f"it does not number {self.size} described relations", _TAKE)
        relations = [rows[row] for row in range(self.size)]
        return ToolSet(self._lookup(relation, str(descriptions[relation]), root) for relation in relations)

    def _lookup(self, relation: str, description: str, root: Path) -> Tool:
        subject = {"type": "string", "description": "name of the subject"}
        return Tool(
            name=relation,
            description=description,
            parameters={
                "type": "object",
                "properties": {"subject": subject},
                "required": ["subject"],
                "additionalProperties": False,
            },
            order=("subject",),
            function=functools.partial(look_up, relation=relation, folder=str(root.resolve())),
            reference=f"benchmark:{self.name}#{relation}",
        )

    def items(self, root: Path, split: Split) -> list[Item]:
        """Return the official test questions, or the held-out supervised questions of the first relations."""
        if split == "test":
            rows = read_rows(f"kamel/test_first_{self.size}.json", root=root)
            return [_item(row, number, root) for number, row in enumerate(rows)]
        relations = set(self.tools(root).names)
        numbered = enumerate(read_rows(_DEVELOPMENT, root=root))
        items = [_item(row, number, root) for number, row in numbered]
        return [item for item in items if item.metadata[RELATION] in relations]

    def mark(self, item: Item, answer: Answer) -> Mark:
        """Say whether the answer states the fact, and whether the right relation was picked."""
        relation = str(item.metadata[RELATION])
        objects = object_names(item.gold)
        stated = [any(starts_with(answer.text, name) for name in names) for names in objects]
        named = [any(holds(answer.text, name) for name in names) for names in objects]
        verdict = Verdict.RIGHT if any(stated) else Verdict.WRONG if answer.text.strip() else Verdict.UNSCORABLE
        selected = bool(answer.calls) and answer.calls[0].tool == relation
        measures = {"selection": float(selected), "complete": float(any(stated) and all(named))}
        published = published_verdict(answer, relation)
        return Mark(verdict, _cause(item, answer, verdict), published, measures, (relation,))


KAMEL = tuple(Kamel(size) for size in SIZES)


def _item(raw: RawRow, number: int, root: Path) -> Item:
    row = raw.value
    if not isinstance(row, dict) or not isinstance(row.get("question"), str) or not isinstance(row.get("api"), str):
        raise UserError(raw.where, "the row has no `question` or no `api`", _TAKE)
    gold: list[JsonValue] = [[*names] for names in object_names(row.get("answer"))]
    if not gold:
        raise UserError(raw.where, "`answer` names no object", _TAKE)
    relation = row["api"]
    frame = read_frames(str(root.resolve())).get(relation)
    subject = row.get("subject") or (frame.subject(row["question"]) if frame else None)
    return Item(number, row["question"], gold, {RELATION: relation, SUBJECT: subject})


def _cause(item: Item, answer: Answer, verdict: Verdict) -> Cause:
    """Return why an answer is right or wrong, judging by its first call and by the later attempts at the same tool."""
    if verdict is Verdict.RIGHT:
        return Cause.RIGHT
    if not answer.calls:
        return Cause.NO_CALL if verdict is Verdict.WRONG else Cause.UNSCORABLE
    first = answer.calls[0]
    if first.tool != item.metadata[RELATION]:
        return Cause.WRONG_TOOL
    same = [call for call in answer.calls if call.tool == first.tool]
    asked = {
        normalise(str(call.arguments["subject"])) for call in same if call.arguments and "subject" in call.arguments
    }
    subject = item.metadata[SUBJECT]
    if subject is None or normalise(str(subject)) in asked:
        return Cause.WRONG_FINAL if any(call.outcome.ok for call in same) else Cause.TOOL_FAILED
    return Cause.WRONG_ARGUMENTS


def starts_with(text: str, name: str) -> bool:
    """Return whether a text starts with a name, as whole words, case, accents, articles and punctuation aside."""
    return f"{_first_line(text)} ".startswith(f"{normalise(name)} ")


def holds(text: str, name: str) -> bool:
    """Return whether the first line of a text names something, as whole words."""
    return f" {normalise(name)} " in f" {_first_line(text)} "


def _first_line(text: str) -> str:
    return normalise(text.strip().partition("\n")[0])


def published_verdict(answer: Answer, relation: str) -> bool:
    """Return the verdict of the published test: the relation's id stands somewhere in what was written.

    What was written ends with the first call, and its tool stands there by name, so that P17 is found in P176.
    """
    if not answer.calls:
        return relation in answer.text
    first = answer.calls[0]
    written = answer.text[: first.start] if first.start is not None else answer.text
    return relation in f"{written}<{first.tool}>"
