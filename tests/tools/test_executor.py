from __future__ import annotations

import ast
import functools
import os
import subprocess
import sys
import textwrap
import time
import types
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.tools import hostile_tools as hostile
from toolken.tools import arithmetic
from toolken.tools.arithmetic import ARITHMETIC
from toolken.tools.executor import Executor
from toolken.tools.loading import load_tools
from toolken.tools.tool import Outcome, Tool, tool

LIMIT = 1.0


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with Executor(timeout=LIMIT, memory_mb=128) as made:
        made.run(hostile.echo, {"x": 1})
        yield made


def local_copy(made: Tool) -> Tool:
    """The same tool as a function that no other process can import."""
    function = made.function
    assert isinstance(function, types.FunctionType)

    call = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    call.__annotations__ = function.__annotations__
    call.__qualname__ = f"somewhere.<locals>.{function.__name__}"
    return Tool(made.name, made.description, made.parameters, made.order, made.variadic, call)


HOSTILE = [
    (hostile.endless, "timeout", "1 s"),
    (hostile.stubborn, "timeout", "1 s"),
    (hostile.writes_forever, "timeout", "1 s"),
    (hostile.prints_forever, "tool_error", "printed more than"),
    (hostile.prints_and_swallows, "tool_error", "printed more than"),
    (hostile.dies, "crash", "exit status 3"),
    (hostile.segfaults, "crash", "SIGSEGV"),
    (hostile.closes_everything, "crash", "ended"),
    (hostile.exits, "tool_error", "SystemExit: 4"),
    (hostile.raises_nasty, "tool_error", "Nasty"),
    (hostile.interrupts, "tool_error", "KeyboardInterrupt"),
    (hostile.says_no, "refused", "not today"),
    (hostile.returns_huge, "refused", "longer than"),
    (hostile.returns_huge_number, "refused", "too large"),
    (hostile.returns_object, "refused", "no JSON form"),
    (hostile.returns_nan, "refused", "nan"),
    (hostile.returns_self, "refused", "nested"),
    (hostile.eats_memory, "tool_error", "128 MB of memory"),
    (hostile.leaves_thread, "ok", ""),
    (hostile.leaves_child, "ok", ""),
    (hostile.closes_stdout, "ok", ""),
    (hostile.reads_stdin, "tool_error", "EOFError"),
]


@pytest.mark.parametrize("forked", [False, True], ids=["spawned", "forked"])
@pytest.mark.parametrize(("bad", "status", "detail"), HOSTILE, ids=[case[0].name for case in HOSTILE])
def test_law_12_a_hostile_tool_returns_an_outcome_in_time_and_the_next_call_works(
    executor: Executor, bad: Tool, status: str, detail: str, forked: bool
) -> None:
    bad, echo = (local_copy(bad), local_copy(hostile.echo)) if forked else (bad, hostile.echo)
    start = time.monotonic()
    outcome = executor.run(bad, {})
    assert time.monotonic() - start < LIMIT + 1
    assert (outcome.status, detail in outcome.detail) == (status, True), outcome
    assert outcome.ok or outcome.result is None
    assert executor.run(echo, {"x": 5}).result == 5


@pytest.mark.parametrize(
    ("name", "arguments", "status"),
    [
        ("power", {"base": 9, "exponent": 9**9}, "refused"),
        ("choose", {"n": 10**9, "k": 5 * 10**8}, "refused"),
        ("permutate", {"n": 10**9, "k": 5 * 10**8}, "refused"),
        ("permutate", {"n": 200, "k": 150}, "ok"),
        ("lcm", {"a": 10**4000, "b": 10**4000 - 1}, "refused"),
        ("divide", {"a": 1, "b": 0}, "refused"),
        ("sqrt", {"x": -1}, "refused"),
        ("gcd", {"a": 12.5, "b": 3}, "refused"),
        ("gcd", {"a": 12}, "refused"),
        ("gcd", {"a": 12, "b": 3, "c": 4}, "refused"),
        ("add", {"a": "os", "b": float("inf")}, "refused"),
    ],
)
def test_law_12_large_and_wrong_arithmetic_is_answered_at_once(
    executor: Executor, name: str, arguments: dict[str, object], status: str
) -> None:
    start = time.monotonic()
    outcome = executor.run(ARITHMETIC[name], arguments)
    assert outcome.status == status, outcome
    assert bool(outcome.detail) == (status == "refused")
    assert time.monotonic() - start < LIMIT


def test_a_child_process_that_a_tool_left_is_killed(executor: Executor) -> None:
    pid = executor.run(hostile.leaves_child, {}).result
    assert isinstance(pid, int)
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline and Path(f"/proc/{pid}").exists():
        if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            break
        time.sleep(0.01)
    else:
        assert not Path(f"/proc/{pid}").exists()


def test_exact_numbers_reach_the_tool_and_come_back_exact(executor: Executor) -> None:
    assert executor.run(
        ARITHMETIC["add"], {"a": 10**300, "b": Fraction(1, 3), "more": [1]}
    ).result == 10**300 + Fraction(4, 3)
    assert executor.run(ARITHMETIC["permutate"], {"n": 5, "k": 3}).result == 60


def test_values_have_the_types_that_the_function_names(executor: Executor) -> None:
    arguments = {"whole": Fraction(4), "decimal": Fraction(1, 2), "exact": 0.5, "names": ["a"]}
    assert executor.run(hostile.kinds, arguments).result == "int float Fraction list bool"


def test_tools_run_in_another_process_without_secrets(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLKEN_TEST_SECRET", "hidden")
    executor.close()
    for made in (hostile.secret, local_copy(hostile.secret)):
        assert executor.run(made, {}).result == "none"
    assert executor.run(hostile.process_number, {}).result != os.getpid()


def test_printed_text_and_what_a_tool_knows_are_in_the_outcome(executor: Executor) -> None:
    outcome = executor.run(hostile.talks, {})
    assert (outcome.result, outcome.detail) == (1, "working on it")
    outcome = executor.run(hostile.knows_more, {})
    assert (outcome.transport, outcome.business, outcome.data, outcome.result) == ("200", "found", "complete", 7)
    assert set(outcome.as_dict()) == {"status", "detail", "transport", "business", "data"}


@pytest.mark.parametrize("status", ["weird", "OK", 5, None, []])
def test_a_status_of_a_tools_own_is_an_error_of_the_tool(executor: Executor, status: Any) -> None:
    def odd() -> str:
        """Return an outcome."""
        return Outcome(status, result=1)  # type: ignore[return-value]

    outcome = executor.run(tool(odd), {})
    assert outcome.status == "tool_error" and repr(status) in outcome.detail and outcome.result is None


def test_a_tool_without_a_function_is_refused(executor: Executor) -> None:
    described = Tool("P17", "", {"type": "object", "properties": {}}, ())
    assert executor.run(described, {}).status == "refused"


def test_a_new_local_tool_runs_although_the_fork_is_older(executor: Executor) -> None:
    for number in range(3):

        @tool
        def fresh(x: float, number: int = number) -> float:
            return x + number

        assert executor.run(fresh, {"x": 1}).result == 1 + number


@pytest.mark.parametrize("importable", [True, False])
def test_a_partial_runs_with_the_arguments_that_it_fixes(importable: bool) -> None:
    def here(a: int, b: int) -> int:
        return a + b

    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    function: Callable[..., object] = arithmetic.subtract if importable else here
    fixed = Tool("fixed", "", schema, ("a",), function=functools.partial(function, b=7))
    unsent = Tool("unsent", "", schema, ("a",), function=functools.partial(function, b=object()))
    with Executor(timeout=LIMIT) as executor:
        assert executor.run(fixed, {"a": 9}).result == (2 if importable else 16)
        assert ("forked" in executor._workers) is not importable
        assert executor.run(fixed, {"a": 9, "b": 1}).result in (None, 2 if importable else 16)
        assert executor.run(unsent, {"a": 9}).status == "refused"


def test_a_file_of_tools_is_imported_in_a_fresh_interpreter(tmp_path: Path) -> None:
    (tmp_path / "helper_of_mine.py").write_text("FACTOR = 2\n")
    file = tmp_path / "my_tools.py"
    file.write_text(
        textwrap.dedent("""
            import os
            from helper_of_mine import FACTOR
            print("imported")
            def twice(x: int) -> list[int]:
                return [FACTOR * x, os.getppid()]
            TOOLS = [twice]
        """)
    )
    tools = load_tools(f"{file}:TOOLS")
    with Executor(timeout=2) as executor:
        assert executor.run(tools["twice"], {"x": 4}).result == [8, os.getpid()]
        file.unlink()
        executor.close()
        outcome = executor.run(tools["twice"], {"x": 4})
    assert outcome.status == "crash"
    assert "no file" in outcome.detail


def test_a_tool_of_a_script_runs_without_running_the_script_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
            from toolken.tools.executor import Executor
            from toolken.tools.tool import tool
            print("once")
            @tool
            def speed(celsius: float) -> float:
                return 331.3 + 0.606 * celsius
            with Executor() as executor:
                print(executor.run(speed, {"celsius": 20}).result)
        """)
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
    )
    assert done.stdout.split() == ["once", "343.42"]


def test_an_executor_that_is_not_closed_leaves_no_process() -> None:
    executor = Executor()
    pid = executor.run(hostile.process_number, {}).result
    del executor
    assert not Path(f"/proc/{pid}").exists()


def test_importing_tools_does_not_import_torch() -> None:
    code = "import sys, toolken.tools.executor, toolken.tools.arguments; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.slow
def test_thousands_of_calls_take_a_few_milliseconds_each_at_most(executor: Executor) -> None:
    start = time.monotonic()
    for number in range(3000):
        assert executor.run(ARITHMETIC["add"], {"a": number, "b": 1}).result == number + 1
    assert (time.monotonic() - start) / 3000 < 5e-3


def test_law_11_no_module_of_the_package_evaluates_or_unpickles() -> None:
    package = Path(__file__).parents[2] / "toolken"
    forbidden = {"eval", "exec", "compile", "__import__", "execfile"}
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in forbidden, f"{file}:{node.lineno}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = ast.unparse(node.func)
                assert name not in ("os.system", "os.popen", "builtins.eval", "torch.load"), f"{file}:{node.lineno}"
            if isinstance(node, ast.keyword) and node.arg == "shell":
                assert isinstance(node.value, ast.Constant) and node.value.value is False, f"{file}:{node.value.lineno}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {getattr(node, "module", None), *(alias.name for alias in node.names)}
                assert not names & {"pickle", "marshal", "shelve", "dill", "cloudpickle"}, f"{file}:{node.lineno}"
