from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import Field

from toolken.config import Config, Section
from toolken.errors import UserError
from toolken.settings.loading import dump_config, load_config, parse_arguments


def write(folder: Path, text: str, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refusal(*arguments: object) -> str:
    with pytest.raises(UserError) as caught:
        parse_arguments(Config, [str(argument) for argument in arguments])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_without_anything_the_settings_are_the_defaults() -> None:
    assert load_config(None) == Config()


@pytest.mark.parametrize(
    ("flags", "key", "value"),
    [
        (["--solver.l2", "1e-4"], "solver.l2", 1e-4),
        (["--solver.l2=1e-4"], "solver.l2", 1e-4),
        (["--solver.l2", "auto"], "solver.l2", "auto"),
        (["--inference.bias", "-2.7"], "inference.bias", -2.7),
        (["--data.train", "a.json", "b.json"], "data.train", ["a.json", "b.json"]),
        (["--data.train", "a.json", "--data.train", "b.json"], "data.train", ["a.json", "b.json"]),
        (["--data.train=['a.json', 'b.json']"], "data.train", ["a.json", "b.json"]),
        (["--data.train=[ab].json"], "data.train", ["[ab].json"]),
        (["--data.train=[no, 2020-01-01]"], "data.train", ["no", "2020-01-01"]),
        (["--data.train=[!!bool x]"], "data.train", ["[!!bool x]"]),
        (["--data.train"], "data.train", []),
        (["--solver.l2_grid=[1e-3, 1e-4]"], "solver.l2_grid", [1e-3, 1e-4]),
        (["--solver.l2-grid", "1e-3", "1e-4"], "solver.l2_grid", [1e-3, 1e-4]),
        (["--data.limit", "5"], "data.limit", 5),
        (["--data.limit", "None"], "data.limit", None),
        (["--data.limit=null"], "data.limit", None),
        (["--calibration.enabled", "False"], "calibration.enabled", False),
        (["--calibration.enabled=true"], "calibration.enabled", True),
        (["--data.require-examples"], "data.require_examples", True),
        (["--data.root", "here/there"], "data.root", Path("here/there")),
        (["--prompt.conclusion= --- [RESULT]."], "prompt.conclusion", " --- [RESULT]."),
        (["--prompt.answer_pattern", "####$"], "prompt.answer_pattern", "####$"),
        (["--solver.folds", "3", "--solver.folds", "4"], "solver.folds", 4),
    ],
)
def test_a_flag_sets_exactly_its_key(flags: list[str], key: str, value: object) -> None:
    config = parse_arguments(Config, flags)
    found: object = config
    for part in key.split("."):
        found = getattr(found, part)
    assert found == value
    section, _, name = key.rpartition(".")
    inner = getattr(Config(), section).model_copy(update={name: value})
    assert config == Config().model_copy(update={section: inner})


def test_later_files_win_over_earlier_ones_and_flags_over_files_key_by_key(tmp_path: Path) -> None:
    first = write(tmp_path, "solver: {l2: 1e-4, folds: 3}\ndata:\n  train: [a, b]\n", "first.yaml")
    second = write(tmp_path, "solver:\n  folds: 4\nbase:\n", "second.yaml")
    config = parse_arguments(Config, ["--config", str(first), "--solver.kind", "adam", f"--config={second}"])
    assert (config.solver.l2, config.solver.folds, config.solver.kind) == (1e-4, 4, "adam")
    assert config.data.train == ["a", "b"]
    assert config.name == "second"
    assert load_config(second, ["--name", "other"]).name == "other"


def test_yaml_reads_numbers_and_words_as_they_look(tmp_path: Path) -> None:
    config = load_config(
        write(tmp_path, "name: no\nsolver: {l2: 1e-4, lr: 3E-3, tolerance: .5}\nbase: {revision: 12:30}\n")
    )
    assert (config.name, config.solver.l2, config.solver.lr, config.solver.tolerance) == ("no", 1e-4, 3e-3, 0.5)
    assert config.base.revision == "12:30"


def test_paths_expand_home_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("MY_DATA", "/big/disk")
    path = write(
        tmp_path, "data: {root: ~/data, train: [$MY_DATA/train.json]}\nfeatures: {cache: '${MY_DATA}/cache'}\n"
    )
    config = load_config(path, ["--out", "$MY_DATA/run", "--prompt.answer_pattern", "$UNSET_HERE"])
    assert config.data.root == Path("/home/someone/data")
    assert config.data.train == ["/big/disk/train.json"]
    assert (config.features.cache, config.out) == (Path("/big/disk/cache"), Path("/big/disk/run"))
    assert config.prompt.answer_pattern == "$UNSET_HERE"
    assert "UNSET_HERE is not set" in refusal("--data.root", "$UNSET_HERE/data")


def test_the_resolved_settings_read_back_equal(tmp_path: Path) -> None:
    config = load_config(
        None, ["--solver.l2", "3e-7", "--data.root", "/d", "--name", "no", "--prompt.conclusion", " – so ½."]
    )
    assert load_config(write(tmp_path, dump_config(config))) == config


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("solver:\n  l22: 1\n", (":2", "`solver.l22`", "`solver.l2`")),
        ("folds: 1\n", (":1", "`folds`", "`solver.folds`")),
        ("solvr:\n  folds: 1\n", (":1", "`solvr`", "`solver`")),
        ("solver: 3\n", (":1", "`solver` is a section", "solver.l2")),
        ("solver: [1]\n", ("`solver` is a section",)),
        ("solver:\n  folds: 1\n", (":2", "`solver.folds`", "greater than or equal to 2")),
        ("solver:\n\n  folds: many\n", (":3", "`solver.folds`", "'many'", "integer")),
        ("solver: {l2: most}\n", ("`solver.l2`", "'most'", "number", "'auto'")),
        ("solver: {l2: -1}\n", ("`solver.l2`", "greater than or equal to 0")),
        ("solver: {l2: .nan}\n", ("`solver.l2`",)),
        ("solver: {tolerance: true}\n", ("`solver.tolerance`", "true")),
        ("data: {train: file.json}\n", ("`data.train`", "list")),
        ("data: {train: [1]}\n", ("`data.train`", "quotes")),
        ("name: 2024\n", ("`name`", "2024", "quotes")),
        ("base: {dtype: int8}\n", ("`base.dtype`", "'bfloat16'")),
        ("base: {name: {a: 1}}\n", ("`base.name`",)),
        ("solver: {folds: 3}\nsolver: {folds: 4}\n", (":2", "`solver` appears twice", "line 1")),
        ("solver:\n  folds: 3\n  folds: 4\n", (":3", "`solver.folds` appears twice", "line 2")),
        ("solver: {folds: 3\n", ("not valid YAML",)),
        ("a:\n\t- b\n", (":2", "not valid YAML")),
        ("- a\n- b\n", ("list where a mapping belongs",)),
        ("name: !!python/object/apply:os.system [true]\n", (":1", "not valid YAML")),
        ("name: &a [*a]\n", (":1", "an alias holds itself")),
        ("name: !!int ''\n", (":1", "the tag", "no place in settings")),
        ('name: "\\ud800"\n', ("half of a surrogate pair",)),
        ("name: " + "[" * 2000, ("nested too deep",)),
        ("data:\n  train: [" + "a," * 20_000 + "]\n", ("more than 20,000 values",)),
        ("# " + "x" * 2**18, ("longer than 262,144 bytes",)),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_line_key_and_what_is_valid(
    tmp_path: Path, text: str, parts: tuple[str, ...]
) -> None:
    path = write(tmp_path, text)
    message = refusal("--config", path)
    assert message.startswith(str(path))
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        (["--solver.l22", "1"], ("--solver.l22", "unknown flag", "`--solver.l2`")),
        (["--solver.l3", "1"], ("--solver.l3", "unknown flag", "`--solver.l2`")),
        (["--l2=1"], ("`--solver.l2`",)),
        (["--solver", "1"], ("section", "solver.l2")),
        (["--solver.folds", "1"], ("--solver.folds", "greater than or equal to 2")),
        (["--solver.folds", "x"], ("--solver.folds", "'x'", "integer")),
        (["--solver.folds"], ("--solver.folds", "has no value")),
        (["--solver.folds", "--solver.l2", "1"], ("--solver.folds", "has no value")),
        (["--solver.l2", "nan"], ("--solver.l2",)),
        (["--solver.folds", "3", "4"], ("4", "belongs to no flag")),
        (["--calibration.enabled", "maybe"], ("maybe", "belongs to no flag")),
        (["--data.limit", "none at all"], ("--data.limit", "integer")),
        (["stray"], ("stray", "belongs to no flag")),
        (["-x"], ("-x", "belongs to no flag")),
        (["--"], ("belongs to no flag",)),
        (["--config"], ("--config", "names no file")),
        (["--config", "--out", "x"], ("--config", "names no file")),
        (["--config", "nowhere/absent.yaml"], ("nowhere/absent.yaml", "no such file")),
    ],
)
def test_a_flag_that_is_wrong_is_refused_by_name(flags: list[str], parts: tuple[str, ...]) -> None:
    message = refusal(*flags)
    for part in parts:
        assert part in message


def test_a_missing_file_names_those_that_are_there(tmp_path: Path) -> None:
    write(tmp_path, "", "funcqa.yaml")
    write(tmp_path, "", ".hidden.yaml")
    message = refusal("--config", tmp_path / "funcaq.yaml")
    assert "funcqa.yaml" in message and "hidden" not in message


def test_a_wrong_value_of_an_overridden_key_is_judged_by_what_wins(tmp_path: Path) -> None:
    path = write(tmp_path, "solver: {folds: 1}\n")
    assert load_config(path, ["--solver.folds", "3"]).solver.folds == 3
    assert refusal("--config", path, "--solver.folds", "0").startswith("--solver.folds")


class Asking(Section):
    """Another program's settings."""

    toolkens: Path
    """Artefact directory."""
    question: list[str] = []
    """What is asked."""
    trace: bool = False
    """Show the modes."""
    count: int = Field(default=1, ge=1)
    """How often."""


def test_any_model_can_be_filled() -> None:
    asked = parse_arguments(Asking, ["--toolkens", "d", "--question", "How much?", "--question", "Why?", "--trace"])
    assert asked == Asking(toolkens=Path("d"), question=["How much?", "Why?"], trace=True)
    with pytest.raises(UserError, match="--toolkens: is required; toolkens: Artefact directory."):
        parse_arguments(Asking, [])


@pytest.mark.parametrize("model", [Config, Asking])
def test_help_shows_every_key_with_its_docstring(model: type[Section], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_arguments(model, ["--help"], prog="program", description="What it does.")
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert "What it does." in shown
    for text in (
        ["--solver.l2", "--data.train", "Prior strength"] if model is Config else ["--toolkens", "Artefact", "--trace"]
    ):
        assert text in shown
