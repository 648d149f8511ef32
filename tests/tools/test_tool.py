from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

import pytest

from toolken.errors import ToolError, UserError
from toolken.tools.arithmetic import ARITHMETIC
from toolken.tools.loading import load_tools
from toolken.tools.signature import call_function
from toolken.tools.tool import Outcome, Tool, tool
from toolken.tools.toolset import ToolSet


@tool
def speed_of_sound(celsius: float) -> float:
    """Speed of sound in air, m/s.

    More text that a model need not see.

    Args:
        celsius: Temperature of the air,
            in degrees.
    """
    return 331.3 + 0.606 * celsius


@tool(name="P17", description="country of a place")
def country(name: str, *others: str, style: Literal["long", "short"] = "long", limit: int | None = None) -> str:
    return f"{name} {others} {style} {limit}"


def test_a_typed_function_and_its_docstring_make_a_tool() -> None:
    assert (speed_of_sound.name, speed_of_sound.description) == ("speed_of_sound", "Speed of sound in air, m/s.")
    assert speed_of_sound.parameters == {
        "type": "object",
        "properties": {"celsius": {"type": "number", "description": "Temperature of the air, in degrees."}},
        "required": ["celsius"],
        "additionalProperties": False,
    }
    assert (speed_of_sound.arity, speed_of_sound.numeric) == ((1, 1), True)
    assert speed_of_sound(20) == pytest.approx(343.42)


def test_defaults_variadics_choices_and_options_are_in_the_schema() -> None:
    assert (country.name, country.description, country.variadic) == ("P17", "country of a place", "others")
    assert country.order == ("name", "others", "style", "limit")
    assert country.required == ("name",)
    assert country.properties["others"] == {"type": "array", "items": {"type": "string"}}
    assert country.properties["style"] == {"enum": ["long", "short"], "default": "long"}
    assert country.properties["limit"] == {"type": ["integer", "null"], "default": None}
    assert (country.arity, country.numeric) == ((1, None), False)


def test_checked_values_reach_the_function_as_its_annotations_say() -> None:
    def kinds(whole: int, plain: float, exact: Fraction, either: int | Fraction | float, *rest: float) -> list[str]:
        return [type(value).__name__ for value in (whole, plain, exact, either, *rest)]

    half = Fraction(1, 2)
    values: dict[str, object] = {"whole": Fraction(4), "plain": half, "exact": 1, "either": half, "rest": [half]}
    assert call_function(kinds, values) == ["int", "float", "Fraction", "Fraction", "float"]
    assert call_function(country.function or print, {"name": "a", "others": ["b"], "limit": 2}) == "a ('b',) long 2"
    with pytest.raises(ToolError, match="large"):
        call_function(speed_of_sound.function or print, {"celsius": 10**400})


def no_type(x):  # type: ignore[no-untyped-def]
    return x


def strange(x: object) -> None: ...


def keywords(**x: int) -> None: ...


async def later(x: int) -> None: ...


NOTHING = object()


def bad_default(x: list[int] = NOTHING) -> None: ...  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (no_type, "`x` has no type"),
        (strange, "`object` is not supported"),
        (keywords, r"`\*\*x` has no schema"),
        (later, "async"),
        (bad_default, "not a JSON value"),
        (lambda: 1, "cannot be shown"),
    ],
)
def test_a_function_that_has_no_schema_is_refused_when_the_tool_is_made(function: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        tool(function)  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["P17", "[WALK]", "home_office", "alias.tool-2"])
def test_names_of_all_data_sets_can_be_shown(name: str) -> None:
    made = Tool(name, "", {"type": "object", "properties": {}}, ())
    assert made.name == name
    with pytest.raises(ToolError, match="only described"):
        made()


@pytest.mark.parametrize("name", ["", "a b", "<gcd>", "1st", "a\n", "x" * 129])
def test_names_that_cannot_be_shown_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="name"):
        Tool(name, "", {"type": "object", "properties": {}}, ())


def test_an_order_that_does_not_name_each_argument_is_refused() -> None:
    with pytest.raises(UserError, match="order"):
        Tool("a", "", {"type": "object", "properties": {"x": {}}}, ())


def test_the_schema_hash_changes_with_what_a_model_is_told_and_with_nothing_else() -> None:
    assert replace(speed_of_sound, reference="elsewhere", function=None).schema_hash == speed_of_sound.schema_hash
    for changed in ({"name": "other"}, {"description": "other"}, {"parameters": {**speed_of_sound.parameters, "x": 1}}):
        assert replace(speed_of_sound, **changed).schema_hash != speed_of_sound.schema_hash  # type: ignore[arg-type]


def test_a_tool_set_is_an_ordered_hashable_value() -> None:
    both = ToolSet([speed_of_sound, country])
    assert both.names == ("speed_of_sound", "P17")
    assert (both["P17"], both[0], both.index("P17"), "P17" in both, country in both) == (
        country,
        speed_of_sound,
        1,
        True,
        True,
    )
    assert both == ToolSet([speed_of_sound]) + [country]
    assert hash(both) == hash(ToolSet([speed_of_sound, country]))
    assert both.hash != ToolSet([country, speed_of_sound]).hash
    assert both.subset(["P17"]).names == ("P17",)
    assert both[1:].names == ("P17",)
    assert list(both) == [speed_of_sound, country]


def test_two_tools_of_one_name_and_unknown_names_are_refused() -> None:
    with pytest.raises(UserError, match="two tools are called <P17>"):
        ToolSet([country, country])
    with pytest.raises(UserError, match="did you mean `gcd`"):
        ARITHMETIC.index("gdc")


def test_an_outcome_shows_exactly_five_fields() -> None:
    assert Outcome("ok", result=3).as_dict() == {
        "status": "ok",
        "detail": "",
        "transport": None,
        "business": None,
        "data": None,
    }
    assert Outcome("ok").ok and not Outcome("refused").ok


def test_tools_are_loaded_from_a_file_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def twice(x: int) -> int:\n    return 2 * x\nTOOLS = [twice]\n")
    loaded = load_tools("mine.py:TOOLS")
    assert loaded["twice"].reference == "mine.py:TOOLS#twice"
    assert loaded["twice"](4) == 8
    assert load_tools("arithmetic") is ARITHMETIC


@pytest.mark.parametrize(
    ("content", "reference", "message"),
    [
        ("", "arithmetics", "not a reference"),
        ("", "mine.py", "not a reference"),
        ("", "other.py:TOOLS", "there is no file"),
        ("TOOLS = []", "mine.py:TOOL", "did you mean `TOOLS`"),
        ("TOOLS = 3", "mine.py:TOOLS", "it is a int"),
        ("TOOLS = [3]", "mine.py:TOOLS", "entry 0 is a int"),
        ("x = 1\nraise KeyError('oh')", "mine.py:TOOLS", r"mine.py:2: importing it raised KeyError: 'oh'"),
        ("x = 1\n\ny =", "mine.py:TOOLS", r"mine.py:3: importing it raised SyntaxError"),
        ("import sys\nsys.exit(3)", "mine.py:TOOLS", r"mine.py:2: importing it raised SystemExit: 3"),
        ("def f(x): ...\nTOOLS = [f]", "mine.py:TOOLS", "`x` has no type"),
    ],
)
def test_what_is_wrong_with_a_file_of_tools_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, reference: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(content)
    with pytest.raises(UserError, match=message) as refusal:
        load_tools(reference)
    assert "\n" not in str(refusal.value)
