"""KAMEL's rows: questions about one relation of one subject, and prose that states such a fact.

Invariant: an example has one call, whose span is the object of the fact. The objects of a supervised row are its
whole answer, joined by commas, as the lookup of the relation returns them. In prose the object stands where it was
last named as whole words: earlier places belong to the question or to the subject. Prose that does not hold its
object is refused.
Source: Kalo and Fichtel, "KAMEL: Knowledge Analysis with Multitoken Entities in Language Models", AKBC 2022.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from toolken.data.example import CallSpan, Example
from toolken.data.inline import check_call
from toolken.errors import UserError

_FACT = re.compile(r'<f>(\w+)\((.*)\)="(.*)"</f>', re.DOTALL)
_FORM = "a row has question, subject, answer (a list of texts) and api, or text, call and api"


def is_kamel(row: Mapping[str, object]) -> bool:
    """Return whether a row has one of KAMEL's forms."""
    return "api" in row and ("call" in row or "subject" in row or isinstance(row.get("answer"), list))


def join_objects(objects: Sequence[str]) -> str:
    """Return the objects of a fact as one text."""
    return ", ".join(objects)


def read_kamel(row: Mapping[str, object], where: str, tools: Sequence[str] | None) -> Example:
    """Read `{"question", "subject", "answer", "api"}` or `{"text", "call", "api"}`.

    Raises:
        UserError: A key is missing or of the wrong type (questions of the tests have no subject), the relation is
            unknown, or the text does not hold the object.
    """
    relation = _text(row, "api", where)
    check_call(relation, where, tools)
    if "call" in row:
        return _prose(_text(row, "text", where), relation, row["call"], where)
    question, subject = _text(row, "question", where), _text(row, "subject", where)
    objects = row.get("answer")
    if not isinstance(objects, list) or not objects or not all(isinstance(item, str) and item for item in objects):
        raise UserError(where, "`answer` is no list of texts", _FORM)
    answer = join_objects(objects)
    return Example(question, answer, (CallSpan(0, len(answer), relation, _quoted(subject)),), origin=where)


def _prose(text: str, relation: str, calls: object, where: str) -> Example:
    call = calls[0] if isinstance(calls, list) and len(calls) == 1 else None
    match = _FACT.fullmatch(call) if isinstance(call, str) else None
    if match is None or match[1] != relation:
        problem = f"`call` holds {str(calls)[:200]}, not one call of {relation}"
        raise UserError(where, problem, f'write ["<f>{relation}(\\"subject\\")=\\"object\\"</f>"]')
    places = [found.start() for found in re.finditer(rf"(?<!\w){re.escape(match[3])}(?!\w)", text)]
    if not match[3] or not places:
        raise UserError(where, f"the object {match[3]!r} does not stand in the text", "write it as the text has it")
    span = CallSpan(places[-1], places[-1] + len(match[3]), relation, match[2])
    return Example("", text, (span,), origin=where)


def _text(row: Mapping[str, object], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise UserError(where, f"`{key}` is {'missing' if key not in row else 'no text'}", _FORM)
    return value


def _quoted(subject: str) -> str:
    return json.dumps(subject, ensure_ascii=False)
