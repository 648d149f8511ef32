"""Law 11 where an artefact meets functions: only built-in tools bind by themselves, nothing it names is imported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from toolken.errors import UserError
from toolken.inference.binding import bind
from toolken.model.artefact import ToolRecord
from toolken.tools.arithmetic import ARITHMETIC
from toolken.tools.tool import tool
from toolken.tools.toolset import ToolSet


@tool
def look(name: str) -> str:
    """Look up a name."""
    return name


def record(reference: str, name: str = "gcd") -> ToolRecord:
    return ToolRecord.of(replace(ARITHMETIC[name], reference=reference), examples=1)


@pytest.mark.parametrize(
    "reference",
    ["{file}:TOOLS#gcd", "{file}:TOOLS", "{file}", "{module}.TOOLS", "os.system", "builtin:arithmetic.__doc__"],
)
def test_law_11_a_reference_in_an_artefact_is_never_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str
) -> None:
    marker = tmp_path / "imported"
    file = tmp_path / "planted.py"
    file.write_text(f"open({str(marker)!r}, 'w').close()\nfrom toolken.tools.arithmetic import ARITHMETIC as TOOLS\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    for passed in (None, ToolSet([look])):
        found = bind([record(reference.format(file=file, module="planted"))], passed)
        assert not found.tools and "<gcd> will not be called" in found.notes[0]
    assert not marker.exists()


def test_law_11_a_built_in_tool_binds_by_itself_and_any_other_is_passed() -> None:
    records = [record(ARITHMETIC["gcd"].reference), ToolRecord.of(look, examples=1)]
    assert bind(records, None).tools == {0: ARITHMETIC["gcd"]}
    assert bind(records, ToolSet([look])).tools == {0: ARITHMETIC["gcd"], 1: look}


def test_law_11_a_built_in_name_cannot_stand_for_another_schema() -> None:
    with pytest.raises(UserError, match="is not the one that was trained"):
        bind([record("builtin:arithmetic.lcm")], None)
