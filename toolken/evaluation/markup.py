"""HTML text: every value is escaped where it enters, so that nothing from a model, a file or a tool becomes markup.

`Markup` is text that is HTML already; only the functions here make it. No script, no link, nothing is loaded from
elsewhere.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6570; --line: #d5dae0; --page: #fff; --card: #f5f7f9;
  --warn: #9a5b00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --soft: #9aa5b1; --line: #3a424b; --page: #14181c; --card: #1e242a;
    --warn: #f0b25a; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 74rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
p { margin: .4rem 0; }
.soft, figcaption { color: var(--soft); font-size: .87rem; }
.warning { color: var(--warn); margin: .3rem 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .8rem .25rem 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
table.facts td { text-align: left; white-space: normal; }
table.facts td:last-child { overflow-wrap: anywhere; }
@media (max-width: 40rem) { th, td { white-space: normal; padding-right: .5rem; } td { min-width: 4rem; } }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; background: #fff; border-radius: .3rem; }
pre { background: var(--card); padding: .7rem; overflow-x: auto; border-radius: .3rem; font-size: .83rem; }
pre.text { white-space: pre-wrap; overflow-wrap: anywhere; }
details { margin: .6rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
"""


class Markup(str):
    """Text that is HTML and must not be escaped again."""

    __slots__ = ()


def element(tag: str, *children: object, class_: str = "") -> Markup:
    """Return `<tag>children</tag>`; whatever is not Markup is escaped."""
    opening = f'{tag} class="{html.escape(class_)}"' if class_ else tag
    return Markup(f"<{opening}>{join(children)}</{tag}>")


def join(children: Iterable[object]) -> Markup:
    """Return the children behind each other, escaped where they are not Markup."""
    return Markup("".join(child if isinstance(child, Markup) else html.escape(str(child)) for child in children))


def table(header: Sequence[str], rows: Iterable[Sequence[object]], *, class_: str = "") -> Markup:
    """Return a table that scrolls sideways on a narrow screen; without a header where `header` is empty."""
    head = element("thead", element("tr", *(element("th", name) for name in header))) if header else Markup("")
    body = element("tbody", *(element("tr", *(element("td", cell) for cell in row)) for row in rows))
    return element("div", element("table", head, body, class_=class_), class_="scroll")


def image(png: bytes, caption: str) -> Markup:
    """Return a figure with the picture inside the page."""
    data = base64.b64encode(png).decode("ascii")
    alt = html.escape(caption, quote=True)
    picture = Markup(f'<img alt="{alt}" src="data:image/png;base64,{data}">')
    return element("figure", picture, element("figcaption", caption))


def page(title: str, body: Sequence[Markup]) -> str:
    """Return the whole document; its policy forbids scripts and anything from the network."""
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )
