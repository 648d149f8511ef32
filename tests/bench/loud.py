"""A tool for tests, in a module that a worker process imports at once."""

from toolken.tools.tool import tool


@tool
def shout(name: str) -> str:
    """Say it loud; no result ends in a digit that the next word could extend."""
    return name + " !"
