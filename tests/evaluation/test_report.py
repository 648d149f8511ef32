from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from toolken.errors import UserError
from toolken.evaluation.report import regenerate, write_report
from toolken.evaluation.run_report import (
    Confusion,
    ContextShift,
    LossPoint,
    RunReport,
    Sample,
    ShiftPoint,
    SplitMetrics,
    Stage,
    StrengthPoint,
    ToolMetrics,
    load_run_report,
)
from toolken.metrics import Detection, Rate

NAMES = ["add", "gcd", "choose"]


def full(names: list[str] = NAMES) -> RunReport:
    size = len(names) + 1
    return RunReport(
        title="funcqa on <embedded>",
        base={"name": "embedded", "fingerprint": "abc123"},
        tools=names,
        counts={"training examples": 611, "training positions": 13_800},
        facts={"solver": "convex", "gradient norm": "3e-6"},
        splits={
            "train": SplitMetrics(
                detection=Detection(600, 5, 11), false_calls=Rate(5, 13_200), loss=0.0123, examples=611
            ),
            "validation": SplitMetrics(
                detection=Detection(36, 1, 3), false_calls=Rate(1, 900), loss=math.nan, examples=39
            ),
        },
        plain_text=Rate(3, 5000),
        per_tool=[
            ToolMetrics(
                tool=name,
                examples=47,
                validation=Detection(3, 0, k % 2),
                row_norm=0.5 + k / 10,
                bias=-1.25,
                trained=k != 1,
            )
            for k, name in enumerate(names)
        ],
        loss_curve=[LossPoint(step=i, train=1 / (i + 1), validation=1.2 / (i + 1)) for i in range(30)],
        shift_curve=[
            ShiftPoint(
                shift=s / 10, precision=1 / (1 + math.exp(s / 10 - 3)), recall=1 / (1 + math.exp(-s / 10 - 2)), f1=0.9
            )
            for s in range(-60, 61)
        ],
        shift=0.4,
        shift_calls=39,
        cross_validation=[StrengthPoint(l2=10.0**-k, loss=0.02 + abs(k - 4) / 100) for k in range(2, 8)],
        l2=1e-4,
        confusion=Confusion(
            labels=[*names, "a word"],
            matrix=[[12 if i == j else int(i == 2 and j == 0) for j in range(size)] for i in range(size - 1)]
            + [[0] * (size - 1) + [900]],
        ),
        stages=[Stage(name="features", seconds=61.3, peak_mb=1800), Stage(name="solve", seconds=2.0)],
        context_shift=ContextShift(value=0.12, questions=39),
        warnings=["no <unseen> text was given"],
        samples=[
            Sample(
                question="gcd of 4 & 6?", text="It is <script>alert(1)</script> 2.", answer="2", calls=["gcd(4, 6) = 2"]
            )
        ],
        config="name: x\n",
        command="python train.py --config configs/funcqa.yaml",
    )


class Tags(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_page_is_one_self_contained_file_with_every_part(tmp_path: Path) -> None:
    page = write_report(tmp_path, full()).read_text(encoding="utf-8")
    parsed = Tags(page)
    assert parsed.open == []
    assert parsed.tags.count("img") == 6
    assert all(source.startswith("data:image/png;base64,") for source in parsed.sources)
    assert not re.search(r"https?://", page)
    text = " ".join(parsed.words)
    parts = """funcqa on <embedded> | abc123 | 611 | add, gcd, choose | no <unseen> text was given
        | 0.973 [0.862, 0.995] n = 37 | 0.923 [0.797, 0.973] n = 39 | 0.947 [0.870, 0.980] n = 40
        | 1.11 [0.20, 6.27] n = 900 | 0.60 [0.20, 1.76] n = 5,000 | 0.0123 | gcd (untrained, masked) | -1.25
        | 0.12 standard deviations, from 39 questions: small enough | <script>alert(1)</script> | gcd(4, 6) = 2
        | features | 1,800 | 63.3 | python train.py --config configs/funcqa.yaml"""
    for part in (part.strip() for part in parts.split("|")):
        assert part in text, part
    assert "script" not in parsed.tags


def test_plots_are_also_files_and_a_report_without_data_leaves_them_out(tmp_path: Path) -> None:
    write_report(tmp_path, full())
    names = {"loss", "shift", "precision_recall", "confusion", "row_norms", "cross_validation"}
    files = {path.stem: path.read_bytes() for path in (tmp_path / "plots").glob("*.png")}
    assert set(files) == names
    assert all(content.startswith(b"\x89PNG") and len(content) > 5000 for content in files.values())
    page = write_report(tmp_path, RunReport(title="nothing yet")).read_text()
    assert list((tmp_path / "plots").glob("*.png")) == []
    assert "img" not in Tags(page).tags


def test_many_tools_stay_drawable(tmp_path: Path) -> None:
    names = [f"tool_{k}" for k in range(60)]
    write_report(tmp_path, full(names))
    assert "and 20 more" in (tmp_path / "report.html").read_text()


def test_the_same_page_comes_back_from_the_stored_numbers(tmp_path: Path) -> None:
    report = full()
    first = write_report(tmp_path, report).read_bytes()
    assert load_run_report(tmp_path) == report
    (tmp_path / "report.html").unlink()
    assert regenerate(tmp_path).read_bytes() == first


def test_stored_numbers_are_strict_json(tmp_path: Path) -> None:
    write_report(tmp_path, full())

    def refuse(name: str) -> None:
        raise ValueError(name)

    stored = json.loads((tmp_path / "run_report.json").read_text(), parse_constant=refuse)
    assert stored["splits"]["validation"]["loss"] is None
    assert stored["splits"]["validation"]["detection"] == {
        "true_positives": 36,
        "false_positives": 1,
        "false_negatives": 3,
    }


def test_a_directory_without_numbers_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="run_report.json.*finished run"):
        regenerate(tmp_path)
    (tmp_path / "run_report.json").write_text('{"title": "x", "extra": 1}')
    with pytest.raises(UserError, match="`extra`.*train again"):
        regenerate(tmp_path)


def test_a_large_context_shift_says_what_to_do() -> None:
    assert "put two or three such answers into the prompt" in ContextShift(value=0.68).verdict
