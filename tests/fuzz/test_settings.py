"""Settings: whatever a YAML file or a flag holds, it is a `Config`, or one line that names the file or the flag."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.limits import in_time
from tests.fuzz.texts import damaged
from toolken.config import Config
from toolken.errors import UserError
from toolken.files import user_path
from toolken.settings.loading import dump_config, parse_arguments
from toolken.settings.tree import Tree

KEYS = [*Tree.of(Config).leaves, *Tree.of(Config).sections]
CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))
RUN = settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
LONG_RUN = settings(max_examples=5_000, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(argv: list[str]) -> None:
    """Read settings: they can be written and read back, or the line starts with the file or the flag at fault."""
    try:
        with in_time(1):
            config = parse_arguments(Config, argv)
    except UserError as error:
        line = str(error)
        assert line.isprintable() and len(line) < 4000
        named = [*argv, *(argument.partition("=")[0] for argument in argv)]
        named += [str(user_path(argument.removeprefix("--config="))) for argument in argv]
        assert any(line.startswith(str(UserError(name, ""))[:-2]) for name in named), line
        return
    dump_config(config).encode()


def check_file(folder: Path, content: bytes) -> None:
    (folder / "a.yaml").write_bytes(content)
    check(["--config", str(folder / "a.yaml")])


@RUN
@given(content=damaged([file.read_bytes() for file in CONFIGS]))
def test_a_damaged_file_is_read_or_refused_by_name(tmp_path: Path, content: bytes) -> None:
    check_file(tmp_path, content)


@pytest.mark.long
@LONG_RUN
@given(content=damaged([file.read_bytes() for file in CONFIGS]))
def test_a_damaged_file_is_read_or_refused_by_name_at_length(tmp_path: Path, content: bytes) -> None:
    check_file(tmp_path, content)


SCALARS = st.sampled_from(
    ["1", "-1", "0", "1e-4", "1e999", ".nan", ".inf", "9" * 400, "9" * 5000, "true", "no", "null", "~", "''", "auto",
    "x y", "2020-01-01",
     "12:30", "0x1F", "010", "!!int 1", "!!python/object/apply:os.system [ls]", "!!binary ///", "!x y", "&a 1", "*a",
     "*b", "<<", "=",
     '"\\ud800"', '"\\0"', '"\\x1b[2J"', "|\n  a\n  b", "$HOME", "${NOPE}/x", "~root", "/", "%", "@", "`", "'", '"',
     "{", "[", "- a", "? a"]
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[" + ", ".join(items) + "]"),
        st.lists(st.tuples(SCALARS, inner), max_size=2).map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        ),
        inner.map(lambda value: f"&b [{value}, *b]"),
    ),
    max_leaves=5,
)
LINES = st.lists(
    st.tuples(st.sampled_from([*KEYS, "nope", "<<", "? [a]", "solver.l2", "1", ""]), VALUES), max_size=4
).map(lambda pairs: "\n".join(nested(key, value) for key, value in pairs))


def nested(key: str, value: str) -> str:
    """A dotted key as YAML nests it."""
    section, dot, name = key.rpartition(".")
    return f"{section}: {{{name}: {value}}}" if dot else f"{key}: {value}"


@RUN
@given(text=LINES)
def test_any_yaml_is_read_or_refused_by_name(tmp_path: Path, text: str) -> None:
    check_file(tmp_path, text.encode())


@pytest.mark.long
@LONG_RUN
@given(text=LINES)
def test_any_yaml_is_read_or_refused_by_name_at_length(tmp_path: Path, text: str) -> None:
    check_file(tmp_path, text.encode())


FLAGS = st.lists(
    st.one_of(
        st.sampled_from([f"--{key}" for key in KEYS]),
        st.sampled_from([f"--{key}=" for key in KEYS]),
        VALUES,
        st.text(max_size=10),
        st.sampled_from(
            ["--config", "--config=", "--", "-", "-x", "--nope", "--solver.l3", "--" + "a" * 10_000, "\udcff", "a\0"]
        ),
    ),
    max_size=5,
).filter(lambda argv: not {"-h", "--help"} & set(argv))


@RUN
@given(argv=FLAGS)
def test_any_flags_are_read_or_refused_by_name(argv: list[str]) -> None:
    check(argv)


@pytest.mark.long
@LONG_RUN
@given(argv=FLAGS)
def test_any_flags_are_read_or_refused_by_name_at_length(argv: list[str]) -> None:
    check(argv)


BOMB = "\n".join(
    f"{key}: &{here} [{', '.join([f'*{before}' if before else 'x'] * 9)}]"
    for key, here, before in zip(
        ["out", "tools", "init_from", "sample_questions", "base", "data", "prompt", "features", "name"],
        "abcdefghi",
        [None, *"abcdefgh"],
        strict=True,
    )
)


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        "name: &a [*a]",
        "name: &a {b: *a}",
        "<<: &a [*a]",
        "name: " + "[" * 100_000,
        "name: " + "{a: " * 20_000,
        "- " * 50_000,
        "? " * 50_000,
        "a:\n" + "".join(" " * depth + "a:\n" for depth in range(1, 400)),
        "name: !!python/object/new:os.system [ls]",
        "name: !!python/name:os.system",
        "name: !<tag:yaml.org,2002:python/object/apply:os.system> [ls]",
        "%TAG ! tag:yaml.org,2002:python/\n---\nname: !name:os.system",
        "name: a\nname: b",
        "solver: {l2: 1}\nsolver: {lr: 1}",
        "x" * 10**6,
        "\x00",
    ],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_hostile_yaml_is_refused_in_time(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with in_time(3), pytest.raises(UserError, match=r"a\.yaml"):
        parse_arguments(Config, ["--config", str(tmp_path / "a.yaml")])


def test_a_device_is_not_read_without_end() -> None:
    with in_time(3), pytest.raises(UserError, match="/dev/zero"):
        parse_arguments(Config, ["--config", "/dev/zero"])
