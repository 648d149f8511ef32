"""Reports over evaluations, from records that were made up for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.evaluation.answers import answered, call
from toolken.errors import UserError
from toolken.evaluation.benchmarks.benchmark import Cause, Item, Mark
from toolken.evaluation.comparison.evaluations import FACTS, Evaluation, load_evaluation
from toolken.evaluation.comparison.plots import curves
from toolken.evaluation.comparison.report import PLOTS, finding, write_comparison
from toolken.evaluation.comparison.tables import MATH, all_tables, cost_table, paired, pooled_table
from toolken.evaluation.records import RECORDS, RecordFile, record_of
from toolken.evaluation.scoring import Verdict

HOSTILE = "<script>alert(1)</script>|`x`"


def evaluation(
    folder: Path, right: Mapping[str, int], *, benchmark: str = "funcqa_oh", n: int = 20, **facts: object
) -> Evaluation:
    """Write a folder in which each method answers so many of n questions right, the first ones, and read it."""
    folder.mkdir(parents=True)
    measures = ["selection", "complete"] if benchmark.startswith("kamel") else []
    known = {
        "name": "made-up",
        "benchmark": benchmark,
        "base": "embedded",
        "base_fingerprint": "f" * 64,
        "split": "test",
        "items": n,
        "of": n,
        "tools": 13,
        "per_tool": None,
        "measures": measures,
        "methods": {method: {"command": f"toolken eval {HOSTILE}", "seconds": 12.5} for method in right},
    }
    (folder / FACTS).write_text(json.dumps(known | facts))
    with RecordFile(folder / RECORDS) as file:
        for method, count in right.items():
            for number in range(n):
                good = number < count
                cause = Cause.RIGHT if good else Cause.WRONG_TOOL if number % 2 else Cause.NO_CALL
                calls = [call("add" if good else "lcm", {"a": 1}, 2)] if cause is not Cause.NO_CALL else []
                shares = {"selection": float(good), "complete": 0.25} if measures else {}
                verdict = Verdict.RIGHT if good else Verdict.WRONG
                mark = Mark(verdict, cause, number < count + 1, shares, ("add",))
                file.append(record_of(benchmark, method, Item(number, HOSTILE, "2"), answered("2", "2", calls), mark))
    return load_evaluation(folder)


def test_the_report_of_one_evaluation_says_every_rate_with_n_and_interval(tmp_path: Path) -> None:
    one = evaluation(tmp_path / "a", {"base": 3, "toolken": 12})
    page = write_comparison([one], tmp_path / "a")
    text = (tmp_path / "a" / "report.md").read_text()
    assert "| toolken | 20 | 0.600 [0.387, 0.781] | 0.650 [0.433, 0.819] | 1 | +0.450 [" in text
    assert "ToolkenGPT (published, LLaMA-33B) |  | 0.730" in text
    assert "toolken is above base (+0.450" in text
    assert "| toolken | add | lcm | 4 |" in text
    html = page.read_text()
    assert "0.600 [0.387, 0.781]" in html and "<script" not in html and "<script" not in text
    assert {path.stem for path in (tmp_path / "a" / PLOTS).iterdir()} == {"accuracy", "causes"}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (tmp_path / "a" / PLOTS).iterdir())


def test_a_run_that_was_killed_is_shown_as_what_it_is(tmp_path: Path) -> None:
    one = evaluation(tmp_path / "a", {"base": 3}, items=50, of=60)
    (table, *_) = all_tables([one])
    assert one.incomplete() == {"base": 20} and "Incomplete: base: 20 of 50 answers." in table.note
    assert "50 of 60 test questions" in table.note and finding(one) == ""


def test_math_benchmarks_are_pooled_and_others_are_not(tmp_path: Path) -> None:
    sets = [evaluation(tmp_path / name, {"base": 5, "toolken": 9}, benchmark=name) for name in MATH]
    sets.append(evaluation(tmp_path / "kamel", {"base": 0, "toolken": 20}, benchmark="kamel_30"))
    (row,) = pooled_table(sets).rows
    assert row[1:4] == ["toolken less base", ", ".join(MATH), "60"] and row[4].startswith("+0.200 [")
    other = evaluation(tmp_path / "other", {"base": 5, "toolken": 9}, base="big", base_fingerprint="0" * 64)
    assert [row[0] for row in pooled_table([*sets, other]).rows] == ["embedded", "big"], "never over two bases"


def test_no_question_is_pooled_twice_and_no_split_with_another(tmp_path: Path) -> None:
    one = evaluation(tmp_path / "a", {"base": 5, "toolken": 9})
    again = evaluation(tmp_path / "b", {"base": 5, "toolken": 9, "react": 7}, name="other")
    unseen = evaluation(tmp_path / "v", {"base": 5, "toolken": 9}, split="validation")
    (alone,) = pooled_table([one]).rows
    found = pooled_table([one, again, unseen])
    assert found.rows[0] == alone and alone[3] == "20" and "the first with both" in found.note
    assert [row[1] for row in found.rows] == [
        "toolken less base",
        "toolken less react",
        "react less base",
        "toolken less base",
    ]
    assert [row[2] for row in found.rows] == ["funcqa_oh"] * 3 + ["funcqa_oh (validation)"]
    assert "the first with both" not in pooled_table([one, unseen]).note


def test_the_time_of_a_question_is_not_known_before_a_method_has_ended(tmp_path: Path) -> None:
    whole = evaluation(tmp_path / "a", {"base": 3})
    killed = evaluation(tmp_path / "b", {"base": 3}, items=50)
    assert [row[-1] for row in cost_table([whole, killed]).rows] == ["0.62", "–"]


def test_seeds_of_the_published_recipe_count_with_their_mean(tmp_path: Path) -> None:
    one = evaluation(tmp_path / "a", {"toolken": 10, "toolken-adam:0": 4, "toolken-adam:1": 8})
    found = paired([one], "toolken", "toolken-adam")
    assert found is not None and found.difference == pytest.approx(0.5 - 0.3) and found.p is None
    assert paired([one], "toolken", "toolken-adam:1").p is not None  # type: ignore[union-attr]


def test_selection_is_drawn_over_the_number_of_tools(tmp_path: Path) -> None:
    many = [
        evaluation(tmp_path / str(n), {"toolken": right}, benchmark=f"kamel_{n}", tools=n, per_tool=20)
        for n, right in ((60, 12), (30, 18))
    ]
    assert curves(many, over="tools") == {"toolken, made-up, 20 rows a tool": [(30, 0.9, 20), (60, 0.6, 20)]}
    write_comparison(many, tmp_path / "report")
    names = {path.stem for path in (tmp_path / "report" / PLOTS).iterdir()}
    assert names == {"accuracy", "causes", "tools"}
    text = (tmp_path / "report" / "report.md").read_text()
    assert "| 0.900 [0.699, 0.972] | 0.250 |" in text, "a measure that is no share has no Wilson interval"


def test_a_picture_that_is_out_of_date_goes(tmp_path: Path) -> None:
    one = evaluation(tmp_path / "a", {"base": 3})
    write_comparison([one], tmp_path / "a")
    (tmp_path / "a" / PLOTS / "tools.png").write_bytes(b"old")
    write_comparison([replace(one, records=[])], tmp_path / "a")
    assert not list((tmp_path / "a" / PLOTS).iterdir())


@pytest.mark.parametrize("content", [None, "{", "[]", '{"name": "x"}'])
def test_what_is_no_evaluation_is_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / FACTS).write_text(content)
    with pytest.raises(UserError) as error:
        load_evaluation(tmp_path)
    assert str(tmp_path / FACTS) in str(error.value) and "\n" not in str(error.value)
