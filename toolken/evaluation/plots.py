"""The plots of a training run's report as PNG bytes, and how every figure of the package is made.

Figures are objects of their own: no backend is chosen, no global state is touched, so that drawing inside a notebook
or a test changes nothing there. Every axis names its unit, and every plot its n.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from toolken.evaluation.run_report import Confusion, RunReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MANY = 25
"""Above so many tools, labels and counts would not be readable."""


def draw(report: RunReport) -> dict[str, bytes]:
    """Return PNG bytes by name, in the order of the page; a plot without data is left out."""
    figures: dict[str, Figure] = {}
    if report.loss_curve:
        figures["loss"] = _loss(report)
    if report.shift_curve:
        figures["shift"] = _shift(report)
        figures["precision_recall"] = _precision_recall(report)
    if report.confusion is not None and report.confusion.labels:
        figures["confusion"] = _confusion(report.confusion)
    if any(tool.row_norm is not None for tool in report.per_tool):
        figures["row_norms"] = _row_norms(report)
    if report.cross_validation:
        figures["cross_validation"] = _cross_validation(report)
    return {name: to_png(figure) for name, figure in figures.items()}


def new_figure(width: float = 7.0, height: float = 3.8) -> tuple[Figure, Axes]:
    """Return an empty figure of so many inches, with its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=120, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    return figure, axes


def to_png(figure: Figure) -> bytes:
    """Return a figure as PNG, the same bytes for the same figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _loss(report: RunReport) -> Figure:
    figure, axes = new_figure()
    for name, colour in (("train", "tab:blue"), ("validation", "tab:orange")):
        points = [(point.step, value) for point in report.loss_curve if (value := getattr(point, name)) is not None]
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, label=name, marker="." if len(points) < 40 else "")
    axes.set(xlabel=report.loss_axis, ylabel="loss (nats per position)", title="Loss")
    axes.legend(frameon=False)
    return figure


def _shift(report: RunReport) -> Figure:
    figure, axes = new_figure()
    shifts = [point.shift for point in report.shift_curve]
    for name, colour in (("precision", "tab:blue"), ("recall", "tab:green"), ("f1", "tab:red")):
        values = [float("nan") if (value := getattr(point, name)) is None else value for point in report.shift_curve]
        axes.plot(shifts, values, color=colour, label="F1" if name == "f1" else name)
    axes.set(xlabel="shift added to every bias (logits)", ylabel="rate on validation", ylim=(-0.02, 1.05))
    axes.set_title(f"Precision and recall against the shift (n = {report.shift_calls} gold calls)")
    if report.shift is not None:
        axes.axvline(report.shift, color="black", linestyle="--", linewidth=1, label=f"chosen: {report.shift:+.3g}")
    axes.legend(frameon=False)
    return figure


def _precision_recall(report: RunReport) -> Figure:
    figure, axes = new_figure(width=5.0, height=4.2)
    points = [
        (point.recall, point.precision, point.shift)
        for point in report.shift_curve
        if point.recall is not None and point.precision is not None
    ]
    axes.plot([recall for recall, _, _ in points], [precision for _, precision, _ in points], color="tab:blue")
    if report.shift is not None and points:
        chosen = report.shift
        recall, precision, _ = min(points, key=lambda point: abs(point[2] - chosen))
        axes.plot([recall], [precision], "o", color="tab:red", label=f"shift {chosen:+.3g}")
        axes.legend(frameon=False, loc="lower left")
    axes.set(xlabel="recall", ylabel="precision", xlim=(-0.02, 1.03), ylim=(-0.02, 1.05))
    axes.set_title(f"Precision against recall (n = {report.shift_calls} gold calls)")
    return figure


def _confusion(confusion: Confusion) -> Figure:
    size = len(confusion.labels)
    side = min(9.0, 3.2 + 0.34 * size)
    figure, axes = new_figure(width=side + 0.8, height=side)
    axes.grid(visible=False)
    # Words outnumber calls by far: the corner of words called words would drown everything else.
    corner = size - 1
    shown = [
        [0 if row == column == corner else count for column, count in enumerate(counts)]
        for row, counts in enumerate(confusion.matrix)
    ]
    image = axes.imshow(shown, cmap="Blues")
    largest = max((max(row) for row in shown), default=0)
    if size <= _MANY:
        axes.set_xticks(range(size), confusion.labels, rotation=60, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(size), confusion.labels)
        for row, counts in enumerate(confusion.matrix):
            for column, count in enumerate(counts):
                if count:
                    colour = "white" if shown[row][column] > 0.6 * largest else "black"
                    axes.text(column, row, f"{count:,}", ha="center", va="center", fontsize=7, color=colour)
    calls = sum(sum(row) for row in confusion.matrix[:corner])
    axes.set(xlabel="picked tool", ylabel="gold tool", title=f"Tools on validation (n = {calls} gold calls)")
    figure.colorbar(image, ax=axes, label="positions", shrink=0.8)
    return figure


def _row_norms(report: RunReport) -> Figure:
    tools = [(tool.tool, tool.row_norm, tool.trained) for tool in report.per_tool if tool.row_norm is not None]
    figure, axes = new_figure(height=3.6)
    places = range(len(tools))
    colours = ["tab:blue" if trained else "lightgrey" for _, _, trained in tools]
    axes.bar(places, [norm for _, norm, _ in tools], color=colours)
    if len(tools) <= _MANY:
        axes.set_xticks(places, [name for name, _, _ in tools], rotation=45, ha="right", rotation_mode="anchor")
    else:
        axes.set_xlabel("tool, by its row in the head")
    trained = sum(flag for _, _, flag in tools)
    axes.set(ylabel="length of the row (L2 norm)", title=f"Rows of the head (n = {len(tools)}, {trained} trained)")
    return figure


def _cross_validation(report: RunReport) -> Figure:
    figure, axes = new_figure()
    points = sorted((point.l2, point.loss) for point in report.cross_validation if point.loss is not None)
    axes.plot(
        [l2 for l2, _ in points], [loss for _, loss in points], marker="o", color="tab:blue", label="held-out loss"
    )
    axes.set_xscale("symlog" if any(l2 <= 0 for l2, _ in points) else "log")
    axes.set(xlabel="l2, prior strength", ylabel="held-out loss (nats per position)")
    axes.set_title(f"Prior strength by cross-validation (n = {len(points)} strengths)")
    if report.l2 is not None:
        axes.axvline(report.l2, color="black", linestyle="--", linewidth=1, label=f"chosen: {report.l2:.3g}")
    axes.legend(frameon=False)
    return figure
