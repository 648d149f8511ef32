"""What a terminal shows."""

import io

from rich.console import Console

from tests.inference.scripted import EOS, play
from toolken.inference.events import Text
from toolken.inference.trace import printer
from toolken.tools.tool import Outcome


def test_the_trace_shows_words_calls_results_and_failures_in_their_colours() -> None:
    _, events, _ = play([" is ", 0, *"3,4)", *"1,2)", " [red]", EOS], outcomes=[Outcome("tool_error", "no")])
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system="standard", width=200)
    watch = printer(console)
    for event in events:
        watch(event)
    shown = out.getvalue()
    assert "\x1b[1;36m<add>(3,4)\x1b[0m" in shown and "\x1b[31m[tool_error: no]\x1b[0m" in shown
    assert "(attempt 2)" in shown and "\x1b[1;32m=3\x1b[0m" in shown and " [red]" in shown


def test_control_characters_do_not_reach_the_terminal() -> None:
    out = io.StringIO()
    printer(Console(file=out, force_terminal=True, width=80))(Text("a\x1b[2Jb\u202e"))
    assert "\x1b[2J" not in out.getvalue() and "\\x1b[2Jb\\u202e" in out.getvalue()
