"""Events in colour: words plain, toolkens and their arguments in cyan, results in green, what failed in red.

Written to be read while it happens: nothing is printed twice and nothing is taken back.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.text import Text as Styled

from toolken.inference.events import Call, Event, Result, Text

STYLES = {"words": "", "call": "bold cyan", "result": "bold green", "failed": "red", "stop": "dim"}


def show(event: Event) -> Styled:
    """Return an event as styled text; control characters of a model or a tool stay visible as escapes."""
    if isinstance(event, Text):
        return Styled(printable(event.text), STYLES["words"])
    if isinstance(event, Call):
        again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
        return Styled(f"<{event.tool}>({printable(event.raw_arguments)}){again}", STYLES["call"])
    if isinstance(event, Result):
        if event.outcome.ok:
            return Styled(f"={printable(event.text)}", STYLES["result"])
        return Styled(f"[{event.outcome.status}: {printable(event.outcome.detail)}]", STYLES["failed"])
    return Styled(f"  ({event.reason})\n", STYLES["stop"])


def printer(console: Console) -> Callable[[Event], None]:
    """Return what prints an event as it comes."""
    return lambda event: console.print(show(event), end="", soft_wrap=True, highlight=False, markup=False)


def printable(text: str) -> str:
    """Keep a terminal from being driven by what a model or a tool wrote."""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)
