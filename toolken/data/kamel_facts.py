"""KAMEL's facts as a knowledge base, and the lookup that its relations run.

Invariant: the facts are those of the benchmark's own rows, questions of the tests included; a lookup finds a subject
whatever its case, accents, punctuation and leading article, and refuses one that it does not know, never guessing a
near one. A question is split into its relation's words and its subject by the one pattern that all questions of the
relation share.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from toolken.data.kamel import join_objects
from toolken.data.rows import read_rows
from toolken.errors import ToolError, UserError

SIZES = (30, 60, 100, 234)
"""Numbers of relations among which the official tests choose."""

SUPERVISED = ("kamel/sup_train.jsonl", "kamel/sup_dev.jsonl")
TESTS = tuple(f"kamel/test_first_{size}.json" for size in SIZES)

_ARTICLE = re.compile(r"^(?:the|an?) (?=.)")


class Frame(NamedTuple):
    """The words around the subject in the questions of a relation: `Who owns `, `?`."""

    before: str
    after: str

    def subject(self, question: str) -> str | None:
        """Return the subject of a question, None where the question is not of this relation's form."""
        inner = question[len(self.before) : len(question) - len(self.after)]
        return inner if inner and question == self.before + inner + self.after else None


Facts = Mapping[tuple[str, str], tuple[str, ...]]
"""Relation and normalised subject -> objects."""


def normalise(name: str) -> str:
    """Return what two spellings of a name share: no case, accents, punctuation or leading article."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c)).casefold()
    return _ARTICLE.sub("", " ".join(re.findall(r"\w+", plain))) or name.strip()


@functools.lru_cache(maxsize=4)
def read_frames(folder: str) -> Mapping[str, Frame]:
    """Return the frame of every relation, as its supervised questions show it.

    Raises:
        UserError: The files are missing, or two questions of a relation differ in more than the subject.
    """
    frames: dict[str, Frame] = {}
    for where, row in _rows(SUPERVISED, folder):
        question, subject, relation = (str(row.get(key, "")) for key in ("question", "subject", "api"))
        frame = Frame(*question.partition(subject)[::2])
        if not subject or subject not in question or frames.setdefault(relation, frame) != frame:
            raise UserError(where, f"no usual question of {relation}: {question!r}", "take the files as published")
    return frames


@functools.lru_cache(maxsize=4)
def read_facts(folder: str) -> Facts:
    """Return the facts of all rows of KAMEL; where rows share a relation and a subject, their objects in a row.

    Args:
        folder: The folder that holds `kamel/`.

    Raises:
        UserError: A file is missing or malformed.
    """
    frames = read_frames(folder)
    facts: dict[tuple[str, str], tuple[str, ...]] = {}
    for _, row in _rows((*SUPERVISED, *TESTS), folder):
        relation = str(row.get("api", ""))
        subject = row.get("subject") or (frames[relation].subject(str(row["question"])) if relation in frames else None)
        if subject is not None:
            key = relation, normalise(str(subject))
            objects = tuple(names[0] for names in object_names(row.get("answer")))
            facts[key] = tuple(dict.fromkeys(facts.get(key, ()) + objects))
    return facts


def object_names(answer: object) -> list[list[str]]:
    """Return the names of every object of an answer, the usual one first: its texts, objects or lists of names."""
    objects = answer if isinstance(answer, list) else []
    named: list[list[str]] = []
    for item in objects:
        if isinstance(item, dict):
            names = [item.get("chosen"), item.get("rdf"), *(item.get("alternative") or [])]
            named.append(list(dict.fromkeys(name for name in names if isinstance(name, str) and name)))
        elif isinstance(item, (str, list)):
            named.append([item] if isinstance(item, str) else [name for name in item if isinstance(name, str)])
    return [names for names in named if names]


def look_up(subject: str, relation: str, folder: str) -> str:
    """Return the objects of a fact as one text.

    Args:
        subject: Name of the subject.
        relation: Its relation, such as `P17`.
        folder: The folder that holds `kamel/`.

    Raises:
        ToolError: Nothing is known of the subject under this relation.
    """
    objects = read_facts(folder).get((relation, normalise(subject)))
    if not objects:
        raise ToolError(f"{relation} of {subject!r} is not known")
    return join_objects(objects)


def _rows(files: tuple[str, ...], folder: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    for file in files:
        for where, row in read_rows(file, root=Path(folder)):
            if not isinstance(row, dict) or not isinstance(row.get("question"), str):
                raise UserError(where, "the row has no question", "take the files as published")
            yield where, row
