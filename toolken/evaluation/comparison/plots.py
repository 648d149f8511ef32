"""The pictures of a comparison as PNG bytes; every axis names its unit, every picture its n."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from toolken.evaluation.benchmarks.benchmark import Cause
from toolken.evaluation.comparison.evaluations import Evaluation
from toolken.evaluation.plots import new_figure, to_png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SELECTION = "selection"
_KAMEL = "kamel_"
_COLOURS = {
    Cause.RIGHT: "tab:green",
    Cause.NO_CALL: "lightgrey",
    Cause.WRONG_TOOL: "tab:red",
    Cause.WRONG_ARGUMENTS: "tab:orange",
    Cause.TOOL_FAILED: "tab:brown",
    Cause.WRONG_FINAL: "tab:purple",
    Cause.UNSCORABLE: "dimgrey",
    Cause.WRONG: "tab:pink",
}


class Picture(NamedTuple):
    """A picture and the sentence under it."""

    png: bytes
    caption: str


def draw(evaluations: Sequence[Evaluation]) -> dict[str, Picture]:
    """Return the pictures by file name, in the order of the page; those without data are left out."""
    answered = [one for one in evaluations if one.cells]
    pictures: dict[str, Picture] = {}
    if answered:
        caption = "Right answers with 95 % Wilson intervals; hollow: published numbers, on other models."
        pictures["accuracy"] = Picture(to_png(_accuracy(answered)), caption)
        pictures["causes"] = Picture(to_png(_causes(answered)), "Why answers are right or wrong, as shares.")
    by_tools = curves(answered, over="tools")
    if any(len(points) > 1 for points in by_tools.values()):
        caption = "Share of questions whose tool was picked; dashed: published numbers, LLaMA-13B."
        pictures["tools"] = Picture(to_png(_tools(answered, by_tools)), caption)
    by_rows = curves(answered, over="per_tool")
    if any(len(points) > 1 for points in by_rows.values()):
        caption = "Share of questions whose tool was picked, over training rows for each tool."
        pictures["rows"] = Picture(to_png(_rows(by_rows)), caption)
    return pictures


Points = list[tuple[int, float, int]]
"""(number on the axis, share, n) in rising order."""


def curves(evaluations: Sequence[Evaluation], *, over: str) -> dict[str, Points]:
    """Return selection by method over the number of tools, or over rows per tool, for benchmarks that measure it."""
    found: dict[str, Points] = {}
    for one in evaluations:
        number = one.facts.tools if over == "tools" else one.facts.per_tool
        for method, cell in one.cells.items():
            share = cell.measure(SELECTION)
            if share is not None and number is not None:
                fixed = one.facts.per_tool if over == "tools" else one.facts.tools
                unit = "rows a tool" if over == "tools" else "tools"
                label = f"{method}, {one.facts.name}" + (f", {fixed} {unit}" if fixed is not None else "")
                found.setdefault(label, []).append((number, *share))
    return {label: sorted(points) for label, points in found.items()}


def _accuracy(evaluations: Sequence[Evaluation]) -> Figure:
    cells = [(one, method, cell.accuracy) for one in evaluations for method, cell in one.cells.items()]
    figure, axes = new_figure(width=7.5, height=1.2 + 0.32 * (len(cells) + len(evaluations)))
    places, labels, at = [], [], 0
    for one in evaluations:
        for method, cell in one.cells.items():
            rate = cell.accuracy
            low, high = rate.interval
            axes.errorbar(
                [rate.value], [at], xerr=[[rate.value - low], [high - rate.value]], fmt="o", color="tab:blue", capsize=3
            )
            places.append(at)
            labels.append(f"{method}\n{one.benchmark.name}, n = {rate.n}" if len(evaluations) > 1 else method)
            at += 1
        if one.benchmark.published_measure == "accuracy":
            for value in one.benchmark.published.values():
                axes.plot([value], [at - 0.5], "o", color="tab:grey", fillstyle="none")
        at += 1
    axes.set_yticks(places, labels, fontsize=8)
    axes.invert_yaxis()
    n = f"n = {evaluations[0].facts.items} questions" if len(evaluations) == 1 else "n beside each method"
    axes.set(xlabel="share of right answers", xlim=(-0.02, 1.02), title=f"Accuracy ({n})")
    return figure


def _causes(evaluations: Sequence[Evaluation]) -> Figure:
    cells = [(one, method, cell) for one in evaluations for method, cell in one.cells.items()]
    figure, axes = new_figure(width=7.5, height=1.8 + 0.4 * len(cells))
    left = [0.0] * len(cells)
    for cause in Cause:
        widths = [cell.causes()[cause] / max(1, len(cell.records)) for _, _, cell in cells]
        if any(widths):
            axes.barh(range(len(cells)), widths, left=left, color=_COLOURS[cause], label=cause.value)
            left = [a + b for a, b in zip(left, widths, strict=True)]
    many = len(evaluations) > 1
    names = [
        f"{m} ({one.benchmark.name}, n = {len(c.records)})" if many else f"{m} (n = {len(c.records)})"
        for one, m, c in cells
    ]
    axes.set_yticks(range(len(cells)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set(xlabel="share of answers", xlim=(0, 1), title="Causes")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def _tools(evaluations: Sequence[Evaluation], found: Mapping[str, Points]) -> Figure:
    figure, axes = new_figure(height=4.4)
    for label, points in found.items():
        if len(points) > 1:
            n = min(n for _, _, n in points)
            axes.plot([x for x, _, _ in points], [y for _, y, _ in points], marker="o", label=f"{label} (n = {n} each)")
    published: dict[str, list[tuple[int, float]]] = {}
    for one in {one.facts.benchmark: one for one in evaluations if one.facts.benchmark.startswith(_KAMEL)}.values():
        for method, share in one.benchmark.published.items():
            published.setdefault(method, []).append((one.facts.tools, share))
    for method, shares in published.items():
        shares.sort()
        axes.plot(
            [x for x, _ in shares], [y for _, y in shares], linestyle="--", linewidth=1, label=f"published: {method}"
        )
    axes.set(xlabel="number of tools", ylabel="share of questions, right tool", ylim=(-0.02, 1.05))
    axes.set_title("Picking the tool among many")
    axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _rows(found: Mapping[str, Points]) -> Figure:
    figure, axes = new_figure(height=4.2)
    for label, points in found.items():
        if len(points) > 1:
            n = min(n for _, _, n in points)
            axes.plot([x for x, _, _ in points], [y for _, y, _ in points], marker="o", label=f"{label} (n = {n} each)")
    axes.set(xlabel="training rows for each tool", ylabel="share of questions, right tool", ylim=(-0.02, 1.05))
    axes.set_title("More rows for each tool")
    axes.legend(frameon=False, fontsize=8)
    return figure
