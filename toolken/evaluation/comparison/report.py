"""`report.md`, `report.html` and `plots/` of one or several evaluations: the same tables and pictures, in two forms.

The HTML page is self-contained and loads nothing. Texts of models and questions do not appear; names and commands are
escaped where they enter a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from toolken.evaluation.comparison.evaluations import Evaluation
from toolken.evaluation.comparison.plots import Picture, draw
from toolken.evaluation.comparison.tables import BASELINE, OURS, Table, all_tables, paired
from toolken.evaluation.markup import Markup, element, image, page, table
from toolken.files import write_bytes, write_text

PLOTS = "plots"


def write_comparison(evaluations: Sequence[Evaluation], folder: Path) -> Path:
    """Write both pages and the plots into a folder, and return the path of the HTML page."""
    tables, pictures = all_tables(evaluations), draw(evaluations)
    findings = [sentence for one in evaluations if (sentence := finding(one))]
    (folder / PLOTS).mkdir(parents=True, exist_ok=True)
    for old in (folder / PLOTS).glob("*.png"):
        if old.stem not in pictures:
            old.unlink()
    for name, picture in pictures.items():
        write_bytes(folder / PLOTS / f"{name}.png", picture.png)
    title = evaluations[0].title if len(evaluations) == 1 else f"{len(evaluations)} evaluations"
    write_text(folder / "report.md", markdown(title, findings, tables, pictures))
    path = folder / "report.html"
    write_text(path, html(title, findings, tables, pictures))
    return path


def finding(one: Evaluation) -> str:
    """Say whether calibrated toolkens are told apart from the base alone; empty where one of them did not run."""
    found = paired([one], OURS, BASELINE)
    if found is None:
        return ""
    return (
        f"{one.title}: {OURS} is {found.verdict} {'' if found.verdict != 'not told apart' else 'from '}{BASELINE} "
        f"({found.difference:+.3f} [{found.low:+.3f}, {found.high:+.3f}], n = {found.n})."
    )


def markdown(title: str, findings: Sequence[str], tables: Sequence[Table], pictures: Mapping[str, Picture]) -> str:
    """Return the page as Markdown."""
    parts = [f"# {_plain(title)}", *(_plain(sentence) for sentence in findings)]
    for one in tables:
        lines = [f"## {_plain(one.title)}", "", _line(one.header), _line(["---"] * len(one.header))]
        parts.append("\n".join([*lines, *(_line(row) for row in one.rows)]))
        if one.note:
            parts.append(_plain(one.note))
    parts += [f"![{_plain(picture.caption)}]({PLOTS}/{name}.png)" for name, picture in pictures.items()]
    return "\n\n".join(parts) + "\n"


def html(title: str, findings: Sequence[str], tables: Sequence[Table], pictures: Mapping[str, Picture]) -> str:
    """Return the page as HTML."""
    body: list[Markup] = [element("h1", title), *(element("p", sentence) for sentence in findings)]
    for one in tables:
        note = [element("p", one.note, class_="soft")] if one.note else []
        body.append(element("section", element("h2", one.title), table(one.header, one.rows), *note))
    body += [image(picture.png, picture.caption) for picture in pictures.values()]
    return page(title, body)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_plain(cell) for cell in cells)} |"


def _plain(text: str) -> str:
    """Return text that starts no markup and no cell of its own."""
    flat = " ".join(text.split())
    return flat.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")
