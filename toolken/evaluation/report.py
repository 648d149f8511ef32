"""`report.html`: one self-contained file about one run, and its plots as PNG.

Drawn from a `RunReport` alone, so that `toolken report` makes the same page again without the run. Every rate stands
with its n and its 95 % interval; what a run does not have (no validation rows, no calibration) is left out instead of
shown as zero.
"""

from __future__ import annotations

from pathlib import Path

from toolken.evaluation.markup import Markup, element, image, page, table
from toolken.evaluation.plots import draw
from toolken.evaluation.run_report import RunReport, Sample, load_run_report, save_run_report
from toolken.files import write_bytes, write_text
from toolken.metrics import Detection, Rate

_CAPTIONS = {
    "loss": "Loss while the rows were found.",
    "shift": "Validation rates at every shared shift of the bias; the dashed line is the one that decoding uses.",
    "precision_recall": "The same sweep, precision against recall.",
    "confusion": "Gold tool against picked tool; “a word” is no call. The corner of words kept is not coloured.",
    "row_norms": "Length of every tool's row; grey rows had no examples and are masked.",
    "cross_validation": "Held-out loss at every prior strength tried.",
}


def write_report(directory: Path, report: RunReport) -> Path:
    """Write `run_report.json`, `plots/*.png` and `report.html` into the run directory; return the page's path."""
    save_run_report(directory, report)
    return render(directory, report)


def regenerate(directory: Path) -> Path:
    """Draw page and plots again from `run_report.json`.

    Raises:
        UserError: The directory has none.
    """
    return render(directory, load_run_report(directory))


def render(directory: Path, report: RunReport) -> Path:
    """Write plots and page; a plot that this report does not have is removed."""
    pictures = draw(report)
    folder = directory / "plots"
    folder.mkdir(exist_ok=True)
    for name in _CAPTIONS:
        if name in pictures:
            write_bytes(folder / f"{name}.png", pictures[name])
        else:
            (folder / f"{name}.png").unlink(missing_ok=True)
    path = directory / "report.html"
    write_text(path, page(report.title, _body(report, pictures)))
    return path


def _body(report: RunReport, pictures: dict[str, bytes]) -> list[Markup]:
    sections = [
        _header(report),
        _headline(report),
        _per_tool(report),
        *(image(png, _CAPTIONS[name]) for name, png in pictures.items()),
        _samples(report.samples),
        _stages(report),
        _reproduction(report),
    ]
    return [section for section in sections if section]


def _section(title: str, *children: Markup) -> Markup:
    return element("section", element("h2", title), *children)


def _header(report: RunReport) -> Markup:
    facts: list[tuple[str, str]] = [
        (f"base {name}".replace("base name", "base"), value) for name, value in report.base.items()
    ]
    if report.tools:
        shown = ", ".join(report.tools[:40]) + (
            f", and {len(report.tools) - 40} more" if len(report.tools) > 40 else ""
        )
        facts.append((f"tools ({len(report.tools)})", shown))
    facts += [(name, f"{count:,}") for name, count in report.counts.items()]
    facts += list(report.facts.items())
    if report.context_shift is not None:
        shift = report.context_shift
        asked = f", from {shift.questions} questions" if shift.questions else ""
        facts.append(("context shift", f"{shift.value:.2f} standard deviations{asked}: {shift.verdict}"))
    warnings = [element("p", "⚠ ", text, class_="warning") for text in report.warnings]
    return element("header", element("h1", report.title), *warnings, table([], facts, class_="facts"))


def _headline(report: RunReport) -> Markup:
    if not report.splits:
        return Markup("")
    splits = list(report.splits.values())
    rows: list[list[str]] = [
        ["examples", *(f"{split.examples:,}" for split in splits)],
        ["loss, nats per position", *(_number(split.loss, "{:.4f}") for split in splits)],
        ["precision", *(_rate(split.detection.precision) for split in splits)],
        ["recall", *(_rate(split.detection.recall) for split in splits)],
        ["F1", *(_f1(split.detection) for split in splits)],
        ["false calls per 1,000 word positions", *(_per_thousand(split.false_calls) for split in splits)],
    ]
    parts = [table(["", *report.splits], rows)]
    if report.plain_text is not None:
        text = f"False calls per 1,000 tokens of unseen plain text: {_per_thousand(report.plain_text)}."
        parts.append(element("p", text))
    note = "In brackets: 95 % intervals (Wilson; F1 by way of tp / (tp + fp + fn)). The calibrated bias is in."
    return _section("In all", *parts, element("p", note, class_="soft"))


def _per_tool(report: RunReport) -> Markup:
    if not report.per_tool:
        return Markup("")
    rows = []
    for tool in report.per_tool:
        found = tool.validation
        cells = ["–"] * 3 if found is None else [_f1(found), _rate(found.precision), _rate(found.recall)]
        cells.append("–" if tool.train is None else f"{tool.train.f1:.3f}")
        name = tool.tool if tool.trained else f"{tool.tool} (untrained, masked)"
        norm, bias = _number(tool.row_norm, "{:.3g}"), _number(tool.bias, "{:+.3g}")
        rows.append([name, f"{tool.examples:,}", *cells, norm, bias])
    header = ["tool", "examples", "F1", "precision", "recall", "F1, train", "row norm", "bias"]
    return _section("By tool, on validation unless it says train", table(header, rows))


def _samples(samples: list[Sample]) -> Markup:
    shown = []
    for sample in samples:
        calls = "\n".join(sample.calls) or "no calls"
        answer = "no final answer" if sample.answer is None else f"answer: {sample.answer}"
        shown.append(
            element(
                "details",
                element("summary", sample.question),
                element("pre", sample.text, class_="text"),
                element("pre", calls, class_="text"),
                element("p", f"{answer}; ended by {sample.finish_reason or 'unknown'}", class_="soft"),
            )
        )
    return _section("Sample answers", *shown) if shown else Markup("")


def _stages(report: RunReport) -> Markup:
    if not report.stages:
        return Markup("")
    rows = [[stage.name, f"{stage.seconds:,.1f}", _number(stage.peak_mb, "{:,.0f}")] for stage in report.stages]
    rows.append(["in all", f"{sum(stage.seconds for stage in report.stages):,.1f}", ""])
    return _section("Time and memory", table(["stage", "seconds", "peak memory, MiB"], rows))


def _reproduction(report: RunReport) -> Markup:
    parts = []
    if report.command:
        parts.append(element("pre", report.command, class_="text"))
    if report.config:
        parts.append(
            element("details", element("summary", "resolved settings (config.yaml)"), element("pre", report.config))
        )
    return _section("To run this again", *parts) if parts else Markup("")


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def _rate(rate: Rate) -> str:
    if not rate.n:
        return "– (n = 0)"
    low, high = rate.interval
    return f"{rate.value:.3f} [{low:.3f}, {high:.3f}] n = {rate.n:,}"


def _f1(detection: Detection) -> str:
    n = sum(detection)
    if not n:
        return "– (n = 0)"
    low, high = detection.f1_interval
    return f"{detection.f1:.3f} [{low:.3f}, {high:.3f}] n = {n:,}"


def _per_thousand(rate: Rate) -> str:
    if not rate.n:
        return "– (n = 0)"
    low, high = rate.interval
    return f"{1000 * rate.value:.2f} [{1000 * low:.2f}, {1000 * high:.2f}] n = {rate.n:,}"
