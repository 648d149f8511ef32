"""Files of tools that cannot be used: the file and its line, the tool and the argument, what to write."""

from __future__ import annotations

import pytest

from tests.commands.bad_input.refusal import INFER, TRAIN, Bench, Refusal, rows

ROWS = rows({"question": "3 + 4?", "answer": "It is <add>(3, 4)=7<eoe>7."})
CHECK = "data validate f.jsonl --tools t.py:TOOLS"
IMPORT = "from toolken import ToolSet, tool\n\n\n"


def made(code: str) -> dict[str, str | bytes]:
    """A file of tools, and rows to look at."""
    return {"f.jsonl": ROWS, "t.py": IMPORT + code}


REFUSALS = [
    Refusal(
        "no reference to tools",
        {"f.jsonl": ROWS},
        "data validate f.jsonl --tools calculator",
        "tools calculator: not a reference to tools; write `arithmetic`, or FILE.py:NAME where NAME is a "
        "ToolSet or a list of tools in that file",
    ),
    Refusal(
        "a file that is missing",
        {"f.jsonl": ROWS},
        CHECK,
        "tools t.py:TOOLS: there is no file {here}/t.py; check the path; it starts at the working directory",
    ),
    Refusal(
        "a folder for a file",
        {"f.jsonl": ROWS, "t.py/": ""},
        CHECK,
        "tools t.py:TOOLS: there is no file {here}/t.py; check the path; it starts at the working directory",
    ),
    Refusal(
        "a name that is missing",
        made("CALCULATOR = ToolSet([])\nTOOL = ToolSet([])\n"),
        CHECK,
        "tools t.py:TOOLS: t.py has no `TOOLS`; did you mean `TOOL`?",
    ),
    Refusal(
        "a file without tools",
        made(""),
        CHECK,
        "tools t.py:TOOLS: t.py has no `TOOLS`; write `TOOLS = ToolSet([...])` in it",
    ),
    Refusal(
        "what is no set of tools",
        made("TOOLS = 5\n"),
        CHECK,
        "tools t.py:TOOLS: it is a int, not a ToolSet or a list of tools; write `arithmetic`, or "
        "FILE.py:NAME where NAME is a ToolSet or a list of tools in that file",
    ),
    Refusal(
        "a list of other things",
        made("TOOLS = [len, 5]\n"),
        CHECK,
        "tools t.py:TOOLS: entry 1 is a int, not a tool; put @tool functions there",
    ),
    Refusal(
        "no tools at all",
        made("TOOLS = []\n"),
        CHECK,
        "tools t.py:TOOLS: `TOOLS` holds no tools; put @tool functions there",
    ),
    Refusal(
        "a file that is no Python",
        made("def (\n"),
        CHECK,
        "{here}/t.py:4: importing it raised SyntaxError: [...]; mend the file",
    ),
    Refusal(
        "a file that is no text",
        {"f.jsonl": ROWS, "t.py": b"x = \xff\n"},
        CHECK,
        "{here}/t.py:1: importing it raised SyntaxError: [...]; mend the file",
    ),
    Refusal(
        "a file that raises",
        made("import no_such_module\n"),
        CHECK,
        "{here}/t.py:4: importing it raised ModuleNotFoundError: No module named 'no_such_module'; mend the file",
    ),
    Refusal(
        "a file that ends the program",
        made("raise SystemExit(3)\n"),
        CHECK,
        "{here}/t.py:4: importing it raised SystemExit: 3; mend the file",
    ),
    Refusal(
        "two tools of one name in a list",
        made("@tool\ndef a(x: float) -> float:\n    return x\n\n\nTOOLS = [a, a]\n"),
        CHECK,
        "tools t.py:TOOLS: two tools are called <a>; rename one of them: `@tool(name=...)`",
    ),
    Refusal(
        "two tools of one name in a set",
        made("@tool\ndef a(x: float) -> float:\n    return x\n\n\nTOOLS = ToolSet([a, a])\n"),
        CHECK,
        "{here}/t.py:9: two tools are called <a>; rename one of them: `@tool(name=...)`",
    ),
    Refusal(
        "a name that cannot be shown",
        made("@tool(name='a b')\ndef a(x: float) -> float:\n    return x\n"),
        CHECK,
        "{here}/t.py:4: tool `a b`: the name cannot be shown as <name>; use letters, digits, `_`, `.`, `-`, "
        "`[` and `]`, up to 128",
    ),
    Refusal(
        "an argument without a type",
        made("@tool\ndef a(x) -> float:\n    return x\n"),
        CHECK,
        "{here}/t.py:4: tool `a`: the argument `x` has no type; write `x: float`, or another type",
    ),
    Refusal(
        "a type without a schema",
        made("@tool\ndef a(x: set) -> float:\n    return 1\n"),
        CHECK,
        "{here}/t.py:4: tool `a`, argument `x`: the type `set` is not supported; use int, float, Fraction, "
        "bool, str, list[...], dict[str, ...], Literal[...] or `X | None`",
    ),
    Refusal(
        "a type that nobody knows",
        made("@tool\ndef a(x: 'Nothing') -> float:\n    return 1\n"),
        CHECK,
        "{here}/t.py:4: tool `a`: its signature cannot be read: name 'Nothing' is not defined; use types "
        "that its module imports",
    ),
    Refusal(
        "named arguments of any name",
        made("@tool\ndef a(**x: float) -> float:\n    return 1\n"),
        CHECK,
        "{here}/t.py:4: tool `a`: `**x` has no schema; name every argument",
    ),
    Refusal(
        "a default that is no JSON",
        made("@tool\ndef a(x: float = object()) -> float:\n    return 1\n"),
        CHECK,
        "{here}/t.py:4: tool `a`, argument `x`: the default [...] is not a JSON value; use None and fill it "
        "inside the function",
    ),
    Refusal(
        "an async function",
        made("@tool\nasync def a(x: float) -> float:\n    return 1\n"),
        CHECK,
        "{here}/t.py:4: tool `a`: an async function cannot be a tool; write a plain `def`",
    ),
    Refusal(
        "a tool that is not the trained one",
        {"t.py": IMPORT + "@tool\ndef add(x: float) -> float:\n    return x\n\n\nTOOLS = [add]\n"},
        INFER + " --question a --tools t.py:TOOLS",
        "tool <add>: its schema 05ae37a6a82c is not the one that was trained, 427bab26e91a; pass the tool as "
        "it was (name, description, arguments, order), or train its row again",
    ),
    Refusal(
        "no new tool to add",
        {},
        TRAIN + " --init-from {run}/toolkens",
        "init_from: every tool of the set has a row already; add a tool, or train without init_from",
    ),
    Refusal(
        "no problems for a tool",
        {"t.py": IMPORT + "@tool\ndef a(x: float) -> float:\n    return x\n\n\nTOOLS = [a]\n"},
        TRAIN + " --tools t.py:TOOLS",
        "data source generated: no problems for <a>; did you mean `add`?",
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=[refusal.name for refusal in REFUSALS])
def test_tools_that_cannot_be_used_are_refused_in_one_line(bench: Bench, refusal: Refusal) -> None:
    bench.check(refusal)
