"""One subcommand: its arguments, what it does, what its help says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from toolken.config import Config, Section
from toolken.settings.loading import parse_arguments

A = TypeVar("A", bound=Section)


@dataclass(frozen=True)
class Command(Generic[A]):
    """A subcommand.

    Attributes:
        arguments: Model of its flags.
        run: Does it, and returns the JSON object that is printed last; none where another process prints it.
        summary: One line of help.
        positional: Flags that may be given without their name, in this order.
    """

    arguments: type[A]
    run: Callable[[A], dict[str, object] | None]
    summary: str
    positional: tuple[str, ...] = ()

    def as_flags(self, argv: list[str]) -> list[str]:
        """Give leading positional values their flags: `FILE --tools x` becomes `--file FILE --tools x`."""
        named: list[str] = []
        rest = list(argv)
        for flag in self.positional:
            if not rest or rest[0].startswith("-"):
                break
            named += [f"--{flag}", rest.pop(0)]
        return named + rest

    def __call__(self, argv: list[str], *, prog: str) -> dict[str, object] | None:
        """Run with what stands behind the command's name."""
        return self.run(parse_arguments(self.arguments, self.as_flags(argv), prog=prog, description=self.summary))


def run_settings(arguments: Config) -> Config:
    """Return the settings of a run alone, without the further flags of a subcommand."""
    return Config.model_validate({name: getattr(arguments, name) for name in Config.model_fields})
