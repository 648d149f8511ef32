"""Schemas of arguments: judged as the standard says, in bounded steps, and nothing outside them is ever looked up."""

from __future__ import annotations

import json
import re
import socket
import time
from fractions import Fraction
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools import hostile_tools
from toolken.errors import ToolError, UserError
from toolken.tools.arguments import parse_arguments
from toolken.tools.executor import Executor
from toolken.tools.schema import check_schema
from toolken.tools.tool import Tool
from toolken.tools.validation import find_problem


def tool_of(schema: object, **more: object) -> Tool:
    return Tool("f", "", {"type": "object", "properties": {"x": schema}, **more}, ("x",))


NUMBERS = st.one_of(st.integers(-5, 5), st.sampled_from([0.5, 1.0, 1.5, -2.5]))
VALUES: st.SearchStrategy[object] = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(alphabet="ab", max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=6,
)
TYPES = ["string", "number", "integer", "boolean", "null", "array", "object"]
COUNTS = st.integers(0, 3)
PLAIN = st.fixed_dictionaries(
    {},
    optional={
        "type": st.one_of(
            st.sampled_from(TYPES), st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True)
        ),
        "enum": st.lists(VALUES, min_size=1, max_size=4),
        "const": VALUES,
        **dict.fromkeys(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], NUMBERS),
        **dict.fromkeys(["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"], COUNTS),
        "multipleOf": st.sampled_from([1, 2, 0.5, 1.5]),
        "uniqueItems": st.booleans(),
        "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
        "additionalProperties": st.booleans(),
        "$ref": st.just("#/$defs/d"),
    },
)


def combined(inner: st.SearchStrategy[dict[str, object]]) -> st.SearchStrategy[dict[str, object]]:
    return st.tuples(
        PLAIN,
        st.fixed_dictionaries(
            {},
            optional={
                **dict.fromkeys(["items", "not", "if", "then", "else", "contains", "propertyNames"], inner),
                **dict.fromkeys(["anyOf", "oneOf", "allOf", "prefixItems"], st.lists(inner, min_size=1, max_size=2)),
                "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
                "additionalProperties": inner,
            },
        ),
    ).map(lambda parts: {**parts[0], **parts[1]})


SCHEMAS = st.recursive(PLAIN, combined, max_leaves=4)


@settings(max_examples=250)
@given(schema=SCHEMAS, definition=PLAIN, value=VALUES)
def test_values_are_judged_as_the_standard_says(
    schema: dict[str, object], definition: dict[str, object], value: object
) -> None:
    root = {**schema, "$defs": {"d": {key: part for key, part in definition.items() if key != "$ref"}}}
    check_schema(root, "here")
    expected = jsonschema.Draft202012Validator(root).is_valid(value)
    assert (find_problem(value, root) is None) == expected


def test_exact_fractions_are_numbers_and_multiples_are_those_that_are_written() -> None:
    schema = {"type": "number", "multipleOf": 0.1, "minimum": 0.3}
    assert find_problem(Fraction(3, 10), schema) is None
    assert find_problem(Fraction(7, 20), schema) is not None
    assert find_problem(Fraction(10**400, 3), schema) is not None
    assert find_problem(Fraction(1, 2), {"type": "integer"}) is not None


@pytest.mark.parametrize(
    ("value", "schema", "fits"),
    [
        (True, {"enum": [1]}, False),
        (1, {"const": True}, False),
        (1.0, {"const": 1}, True),
        ([True, 1], {"uniqueItems": True}, True),
        ([{"a": 1}, {"a": 1.0}], {"uniqueItems": True}, False),
        ({"a": [False]}, {"enum": [{"a": [0]}]}, False),
        (True, {"type": "number"}, False),
        (True, {"minimum": 5}, True),
        (2.0, {"type": "integer"}, True),
    ],
)
def test_truth_values_are_no_numbers_and_whole_floats_are_integers(
    value: object, schema: dict[str, object], fits: bool
) -> None:
    assert jsonschema.Draft202012Validator(schema).is_valid(value) == fits
    assert (find_problem(value, schema) is None) == fits


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (True, "parameters.properties.x is bool"),
        ({"type": 5}, "`type`"),
        ({"type": "float"}, "`type`"),
        ({"type": [["string"]]}, "`type`"),
        ({"type": []}, "`type`"),
        ({"enum": 5}, "`enum`"),
        ({"minimum": "a"}, "`minimum`"),
        ({"maximum": float("nan")}, "`maximum`"),
        ({"multipleOf": 0}, "`multipleOf`"),
        ({"maxLength": -1}, "`maxLength`"),
        ({"anyOf": {}}, "`anyOf`"),
        ({"anyOf": [5]}, "x.anyOf.0 is int"),
        ({"type": "array", "items": True}, "x.items is bool"),
        ({"properties": ["a"]}, "`properties`"),
        ({"required": 5}, "`required`"),
        ({"additionalProperties": 5}, "`additionalProperties`"),
        ({"$ref": "http://127.0.0.1:9/x"}, "must stay inside"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "must stay inside"),
        ({"$ref": "file:///etc/passwd"}, "must stay inside"),
        ({"$ref": "other.json#/a"}, "must stay inside"),
        ({"$ref": "#anchor"}, "must stay inside"),
        ({"$ref": "#/nowhere"}, "which is not there"),
        ({"$ref": 5}, "must stay inside"),
        ({"enum": list(range(30_000))}, "more than 20000 parts"),
        ({"allOf": [{}] * 30_000}, "more than 20000 parts"),
    ],
    ids=str,
)
def test_what_is_no_schema_is_refused_when_the_tool_is_made(
    schema: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "socket", lambda *_, **__: pytest.fail("a schema reached the network"))
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        tool_of(schema)
    assert len(str(caught.value)) < 1000


def test_a_deep_schema_and_one_that_holds_itself_are_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(1000):
        deep = {"items": deep}
    round_and_round: dict[str, Any] = {}
    round_and_round["items"] = round_and_round
    for schema in (deep, round_and_round):
        with pytest.raises(UserError, match="more than 40 levels"):
            tool_of(schema)


def doubling(levels: int) -> dict[str, Any]:
    """Definitions that branch in two at every level."""
    branches = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(levels)}
    return {**branches, f"a{levels}": {}}


MANY = list(range(19_000))
OBJECTS = [{"a": number} for number in range(15_000)]
DISTINCT = ",".join(f'{{"a":{number}}}' for number in range(400))
SLOW = [
    (tool_of({"$ref": "#/properties/x"}), "(1)", "refers to itself"),
    (tool_of({"anyOf": [{"$ref": "#/properties/x"}, {"$ref": "#/properties/x"}]}), "(1)", "refers to itself"),
    (tool_of({"$ref": "#/$defs/a0"}, **{"$defs": doubling(40)}), "(1)", "steps"),
    (tool_of({"not": {"$ref": "#/$defs/a0"}}, **{"$defs": doubling(40)}), "(1)", "steps"),
    (tool_of({"type": "array", "items": {"enum": MANY}}), "([" + "18999," * 600 + "18999])", "choices"),
    (tool_of({"type": "array", "items": {"enum": [*OBJECTS, 0]}}), '{"x": [' + "0," * 1000 + "0]}", "steps"),
    (tool_of({"type": "array", "uniqueItems": True}), '{"x": [' + DISTINCT + "]}", "steps"),
    (
        Tool("f", "", {"properties": {"x": {"type": "array", "items": {"enum": MANY}}}}, ("x",), variadic="x"),
        "(" + "18999, " * 500 + "18999)",
        "choices",
    ),
]


@pytest.mark.parametrize(("made", "text", "message"), SLOW, ids=range(len(SLOW)))
def test_law_12_however_a_schema_branches_the_check_ends(made: Tool, text: str, message: str) -> None:
    start = time.process_time()
    with pytest.raises(ToolError, match=message):
        parse_arguments(text, made)
    assert time.process_time() - start < 0.5


EVIL = r"^(a+)+$"
PATTERNS = [
    {"type": "string", "pattern": EVIL},
    {"$schema": "http://json-schema.org/draft-07/schema#", "type": "string", "pattern": EVIL},
    {"allOf": [{"$schema": "http://json-schema.org/draft-04/schema#", "pattern": EVIL}]},
    {"type": "object", "patternProperties": {EVIL: {}}, "additionalProperties": False},
    {"type": "object", "patternProperties": {EVIL: {}}, "unevaluatedProperties": False},
    {"type": "object", "propertyNames": {"pattern": EVIL}},
    {"type": "string", "format": "regex"},
    {"type": "string", "pattern": "("},
]


@pytest.mark.parametrize("schema", PATTERNS, ids=str)
def test_law_12_regular_expressions_of_a_schema_are_never_run(schema: dict[str, object]) -> None:
    value = {"a" * 60 + "!": 1} if "string" not in str(schema.get("type")) else "a" * 60 + "!"
    start = time.process_time()
    assert parse_arguments(json.dumps({"x": value}), Tool("f", "", {"properties": {"x": schema, "y": {}}}, ("x", "y")))
    assert time.process_time() - start < 0.5


def test_messages_show_a_few_of_many_choices() -> None:
    with pytest.raises(ToolError, match="and 4980 more") as caught:
        parse_arguments("(zz)", tool_of({"enum": [f"choice{i}" for i in range(5000)]}))
    assert len(str(caught.value)) < 1000


def test_arguments_that_no_process_can_take_are_refused_and_never_raise() -> None:
    loop: list[object] = []
    loop.append(loop)
    with Executor(timeout=1) as executor:
        small = Tool("f", "", {"properties": {"x": {"maximum": 5}}}, ("x",), None, hostile_tools.echo.function)
        assert executor.run(small, {"x": 10**10_000}).status == "refused"
        for value in (loop, {"a": loop}, 10**10_000, float("nan"), {"a": float("inf")}, object(), b"x", [1] * 10**6):
            assert executor.run(Tool("f", "", {"properties": {"x": {}}}, ("x",), None, hostile_tools.echo.function),
                                {"x": value}).status == "refused"  # fmt: skip
