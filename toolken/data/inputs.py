"""Which files a run reads its examples, prompt and demonstrations from, and what is in them.

Settings name files; a run is the same only while those hold the same. Not covered: hub data sets (their cache is keyed
by revision), the user's tools (their names and schemas decide, not their code), the base (it has a fingerprint).
"""

from __future__ import annotations

from collections.abc import Iterator

from toolken.config import Config
from toolken.data.formats import GENERATED
from toolken.data.prompts import BUILTIN
from toolken.data.rows import HUB, data_root, find_files, parse_source
from toolken.errors import UserError
from toolken.files import file_digest


def input_digests(config: Config) -> dict[str, str]:
    """Return the SHA-256 of every file that the settings name and that is there, by setting and name below the root."""
    root = data_root(config.data.root)
    digests = {}
    for key, pattern in _named(config):
        try:
            for file in find_files(pattern, root):
                name = file.relative_to(root) if file.is_relative_to(root) else file
                digests[f"{key}: {name}"] = file_digest(file)
        except (UserError, OSError):
            continue  # reading it says why, once it is needed
    return digests


def _named(config: Config) -> Iterator[tuple[str, str]]:
    data, prompt = config.data, config.prompt
    for key in ("train", "validation", "exclude", "negatives", "unseen_text"):
        for source in getattr(data, key):
            name = parse_source(source).name
            if name != GENERATED and not name.startswith(HUB):
                yield f"data.{key}", name
    for source in config.align.questions:
        yield "align.questions", parse_source(source).name
    if not prompt.template.startswith(BUILTIN):
        yield "prompt.template", prompt.template
    if prompt.demonstrations != "auto":
        yield "prompt.demonstrations", prompt.demonstrations.replace("{tool}", "*")
