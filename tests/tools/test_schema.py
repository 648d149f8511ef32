"""Schemas of arguments: judged as the standard says, in bounded steps, and nothing outside them is ever looked up."""

from __future__ import annotations

import json
import re
import socket
import time
from fractions import Fraction
from typing import Any

import pytest

from tests.tools import hostile_tools
from toolken.errors import ToolError, UserError
from toolken.tools.arguments import parse_arguments
from toolken.tools.executor import Executor
from toolken.tools.schema import check_schema
from toolken.tools.tool import Tool
from toolken.tools.validation import find_problem
from toolken.tools.values import check_arguments


def tool_of(schema: object, **more: object) -> Tool:
    return Tool("f", "", {"type": "object", "properties": {"x": schema}, **more}, ("x",))


@pytest.mark.parametrize(
    ("schema", "fitting", "others"),
    [
        ({"type": ["string", "null"]}, ["", None], [0, False, [], {}]),
        ({"enum": [1, "a", None, [1]]}, [1, 1.0, "a", None, [1.0]], [True, "b", [True], 2]),
        ({"const": {"a": 0.1}}, [{"a": 0.1}], [{"a": 0.2}, {}]),
        ({"minimum": 1, "exclusiveMaximum": 2}, [1, Fraction(3, 2), "text"], [0, 2, Fraction(1, 2)]),
        ({"minLength": 2, "maxLength": 3}, ["ab", "éüö", 1], ["a", "abcd"]),
        ({"minItems": 1, "maxItems": 2, "uniqueItems": True}, [[1], [1, True]], [[], [1, 1.0], [1, 2, 3]]),
        ({"items": {"type": "integer"}, "prefixItems": [{"type": "string"}]}, [["a", 1], []], [[1], ["a", "b"]]),
        ({"contains": {"const": 1}, "maxContains": 1}, [[1, 2]], [[2], [1, 1]]),
        ({"items": False}, [[], 1], [[1]]),
        ({"properties": {"a": True, "b": False}, "required": ["a"]}, [{"a": 1}], [{}, {"a": 1, "b": 1}]),
        ({"additionalProperties": False, "properties": {"a": {}}}, [{"a": 1}], [{"b": 1}]),
        ({"additionalProperties": {"type": "string"}, "minProperties": 1}, [{"a": "b"}], [{}, {"a": 1}]),
        (
            {"propertyNames": {"maxLength": 1}, "dependentRequired": {"a": ["b"]}},
            [{"a": 1, "b": 1}],
            [{"ab": 1}, {"a": 1}],
        ),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, [{"a": 1, "b": 1}, {}], [{"a": 1}]),
        ({"anyOf": [{"type": "string"}, {"minimum": 2}]}, ["a", 2], [1]),
        ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, [1, Fraction(5, 2)], [2, Fraction(1, 2)]),
        ({"allOf": [{"type": "integer"}, {"minimum": 2}]}, [2], [1, Fraction(5, 2)]),
        ({"not": {"type": "string"}}, [1], ["a"]),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}}, ["ab", 2], ["a", 1]),
        (
            {"$ref": "#/$defs/t", "$defs": {"t": {"items": {"$ref": "#/$defs/t"}, "type": "array"}}},
            [[[], [[]]]],
            [[[1]]],
        ),
        ({"$ref": "#/definitions/a~1b%20c", "definitions": {"a/b c": {"type": "null"}}}, [None], [1]),
        ({"type": "string", "format": "date"}, ["no date"], [1]),
    ],
    ids=str,
)
def test_values_are_judged_as_the_standard_says(
    schema: dict[str, object], fitting: list[object], others: list[object]
) -> None:
    check_schema(schema, "here")
    for value in fitting:
        assert find_problem(value, schema) is None, value
    for value in others:
        problem = find_problem(value, schema)
        assert problem is not None and problem.text and "\n" not in problem.text, value


@pytest.mark.parametrize(
    ("value", "schema", "path", "text"),
    [
        (
            {"a": [1, "b"]},
            {"properties": {"a": {"items": {"type": "integer"}}}},
            ("a", 1),
            "`b` is not of type integer",
        ),
        ({"a": 1}, {"required": ["a", "b"]}, (), "`b` is missing"),
        ({"z": 1, "y": 2}, {"additionalProperties": False}, ("z",), "`1` is not expected there"),
        (Fraction(1, 3), {"minimum": 0.5}, (), "`0.333333` is less than 0.5"),
        ("x{}y", {"const": "{}"}, (), "`x{}y` is not {}"),
        ("ab", {"pattern": "^a$"}, (), "`ab` does not match `^a$`"),
        (1, {"anyOf": [{"type": "null"}]}, (), "`1` fits none of the alternatives"),
        ({"a": 1}, {"dependentRequired": {"a": ["b"]}}, (), "`{'a': 1}` does not fit `dependentRequired`"),
    ],
)
def test_a_problem_names_its_place_and_says_what_is_wrong(
    value: object, schema: dict[str, object], path: tuple[str | int, ...], text: str
) -> None:
    assert find_problem(value, schema) == (path, text)


def test_exact_fractions_are_numbers_and_multiples_are_those_that_are_written() -> None:
    schema = {"type": "number", "multipleOf": 0.1, "minimum": 0.3}
    assert find_problem(Fraction(3, 10), schema) is None
    assert find_problem(Fraction(7, 20), schema) is not None
    assert find_problem(Fraction(10**400, 3), schema) is not None
    assert find_problem(Fraction(1, 2), {"type": "integer"}) is not None
    assert find_problem(Fraction(1, 10), {"minimum": 0.1, "maximum": 0.1, "enum": [0.1], "const": 0.1}) is None


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
    assert (find_problem(value, schema) is None) == fits


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (5, "parameters.properties.x: `5` is not of type object or boolean"),
        ({"type": 5}, "x.type: `5` is none of array, boolean, integer"),
        ({"type": "float"}, "x.type: `float` is none of array, boolean, integer"),
        ({"type": [["string"]]}, "x.type: "),
        ({"type": []}, "x.type: "),
        ({"enum": 5}, "x.enum: `5` is not of type array"),
        ({"minimum": "a"}, "x.minimum: `a` is not of type number"),
        ({"maximum": float("nan")}, "x.maximum: `nan` is not of type number"),
        ({"maximum": True}, "x.maximum: `True` is not of type number"),
        ({"maximum": 10**4250}, "a number that is too large"),
        ({"default": {1, 2}}, "a set that is no JSON value"),
        ({"default": {1: 2}}, "a dict that is no JSON value"),
        ({"exclusiveMinimum": True}, "x.exclusiveMinimum: "),
        ({"multipleOf": 0}, "x.multipleOf: `0` is not more than 0"),
        ({"maxLength": -1}, "x.maxLength: `-1` is less than 0"),
        ({"anyOf": {}}, "x.anyOf: "),
        ({"anyOf": [5]}, "x.anyOf.0: `5` is not of type object or boolean"),
        ({"items": [{}]}, "x.items: "),
        ({"properties": ["a"]}, "x.properties: "),
        ({"required": 5}, "x.required: `5` is not of type array"),
        ({"additionalProperties": 5}, "x.additionalProperties: "),
        ({"pattern": "("}, "'(' is no regular expression"),
        ({"pattern": "((a{1000}){1000}){1000}"}, "repeats more than"),
        ({"patternProperties": {"(?R)": {}}}, "refers to itself"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "x has `$schema`"),
        ({"allOf": [{"$schema": "http://json-schema.org/draft-04/schema#"}]}, "x.allOf.0 has `$schema`"),
        ({"$id": "http://127.0.0.1:9/x"}, "x has `$id`"),
        ({"$dynamicRef": "#meta"}, "x has `$dynamicRef`"),
        ({"default": {"type": 5}, "$ref": "#/properties/x/default"}, "which is not there"),
        ({"$ref": "#/required/0"}, "which is not there"),
        ({f"x-{number}": 0 for number in range(60)}, "more than 50 keywords"),
        ({"required": [f"n{number}" for number in range(10_000)]}, "too large to be checked"),
        ({"$ref": "http://127.0.0.1:9/x"}, "must stay inside"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "must stay inside"),
        ({"$ref": "file:///etc/passwd"}, "must stay inside"),
        ({"$ref": "other.json#/a"}, "must stay inside"),
        ({"$ref": "#anchor"}, "must stay inside"),
        ({"$ref": "#/nowhere"}, "which is not there"),
        ({"$ref": 5}, "x.$ref: `5` is not of type string"),
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


@pytest.mark.parametrize(
    ("dialect", "known"),
    [
        ("https://json-schema.org/draft/2020-12/schema", True),
        ("http://json-schema.org/draft-07/schema#", True),
        ("http://json-schema.org/draft-04/schema#", False),
        ("http://127.0.0.1:9/x", False),
        (5, False),
    ],
)
def test_the_dialect_of_a_schema_is_one_that_reads_alike_and_changes_nothing(dialect: object, known: bool) -> None:
    named = {"$schema": dialect, "$id": "http://127.0.0.1:9/x"}
    if not known:
        with pytest.raises(UserError, match=re.escape("parameters.$schema")):
            tool_of({}, **named)
        return
    made = tool_of({"$ref": "#/$defs/a"}, **named, **{"$defs": {"a": {"prefixItems": [False]}}})
    with pytest.raises(ToolError, match="not expected there"):
        check_arguments(made, {"x": [1]})


def test_truth_values_are_schemas_and_say_nothing_about_how_a_text_is_read() -> None:
    made = Tool(
        "f", "", {"properties": {"x": True, "y": {"type": "array", "items": True}, "z": False}}, ("x", "y", "z")
    )
    assert parse_arguments("(x=a, y=[b, c])", made) == {"x": "a", "y": ["b", "c"]}
    with pytest.raises(ToolError, match="`3` is not expected there"):
        parse_arguments("(x=a, z=3)", made)


def test_a_deep_schema_and_one_that_holds_itself_are_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(1000):
        deep = {"items": deep}
    round_and_round: dict[str, Any] = {}
    round_and_round["items"] = round_and_round
    for schema in (deep, round_and_round):
        with pytest.raises(UserError, match="more than 80 levels"):
            tool_of(schema)


def doubling(levels: int) -> dict[str, Any]:
    """Definitions that branch in two at every level."""
    branches = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(levels)}
    return {**branches, f"a{levels}": {}}


MANY = list(range(19_000))
OBJECTS = [{"a": number} for number in range(6_000)]
FAILING = {"anyOf": [{"maxItems": 0}] * 6_000}
ONES = "1," * 1000
SLOW = [
    (tool_of({"$ref": "#/properties/x"}), "(1)", "refers to itself"),
    (tool_of({"anyOf": [{"$ref": "#/properties/x"}, {"$ref": "#/properties/x"}]}), "(1)", "refers to itself"),
    (tool_of({"$ref": "#/$defs/a0"}, **{"$defs": doubling(40)}), "(1)", "steps"),
    (tool_of({"not": {"$ref": "#/$defs/a0"}}, **{"$defs": doubling(40)}), "(1)", "steps"),
    (tool_of({"type": "array", "items": {"enum": MANY}}), "([" + "18999," * 600 + "18999])", "choices"),
    (tool_of({"type": "array", "items": {"enum": [*OBJECTS, 0]}}), '{"x": [' + "0," * 1000 + "0]}", "steps"),
    (tool_of(FAILING), '{"x": [' + ONES + "1]}", "steps"),
    (tool_of({"items": FAILING}), '{"x": [[' + ONES + "1]]}", "steps"),
    (tool_of({"items": {"allOf": [True] * 5_000}}), '{"x": [' + ONES + "1]}", "steps"),
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


EVIL = r"^(a|aa)+$"
HOSTILE = "a" * 60 + "!"
PATTERNS: list[tuple[dict[str, object], object]] = [
    ({"type": "string", "pattern": EVIL}, HOSTILE),
    ({"type": "array", "items": {"pattern": EVIL}}, [HOSTILE] * 50),
    ({"type": "object", "patternProperties": {EVIL: {}}}, {HOSTILE: 1}),
    ({"type": "object", "patternProperties": {EVIL: {}}, "additionalProperties": False}, {HOSTILE: 1}),
    ({"type": "object", "propertyNames": {"pattern": EVIL}}, {HOSTILE: 1}),
]


@pytest.mark.parametrize(("schema", "value"), PATTERNS, ids=[str(schema) for schema, _ in PATTERNS])
def test_law_12_regular_expressions_of_a_schema_are_searched_with_a_limit(
    schema: dict[str, object], value: object
) -> None:
    start = time.process_time()
    with pytest.raises(ToolError):
        parse_arguments(json.dumps({"x": value}), Tool("f", "", {"properties": {"x": schema, "y": {}}}, ("x", "y")))
    assert time.process_time() - start < 0.5


def test_law_12_a_pattern_is_never_run_by_the_library() -> None:
    schema = {"unevaluatedProperties": False, "patternProperties": {EVIL: {}}}
    start = time.process_time()
    with pytest.raises(ToolError, match="takes too long"):
        find_problem({HOSTILE: 1}, schema)
    assert time.process_time() - start < 0.5


def test_patterns_of_texts_and_of_names_are_applied() -> None:
    assert find_problem("ab12", {"pattern": r"[a-z]+\d"}) is None
    assert find_problem("12", {"pattern": r"[a-z]"}) == ((), "`12` does not match `[a-z]`")
    names = {"patternProperties": {"^n_": {"type": "integer"}}, "properties": {"a": {}}, "additionalProperties": False}
    assert find_problem({"a": "b", "n_x": 1}, names) is None
    assert find_problem({"n_x": "b"}, names) == (("n_x",), "`b` is not of type integer")
    assert find_problem({"m_x": 1}, names) == (("m_x",), "`1` is not expected there")


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
