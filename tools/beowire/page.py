# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A page of HTML that needs nothing else and asks for nothing: sections of text, tables that sort,
and charts that answer to the pointer and the keyboard.

D3 (https://d3js.org, BSD-3-Clause) draws the charts; it comes with the Python package mpld3, or
with Debian's node-d3. Without it charts are still images by matplotlib, and without that there are
the tables.

Whatever is shown was written by others. It is escaped, and a policy in the page (Content Security
Policy Level 3) has the browser execute nothing but our two scripts, by their hashes.
"""

import base64
import hashlib
import html
import importlib.util
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from beowire import suggested
from beowire.chart import Chart
from beowire.terminal import printable

FIRST = "<!-- a report of beowire, 2 -->"
"""Of each page, with the number of its form: sections of another form are not added to it."""
LAST = "<!-- the next section goes here -->"
_HERE = Path(__file__).parent
_D3_PYTHON, _D3_DEBIAN = "d3.v5.min.js", Path("/usr/share/nodejs/d3/dist/d3.min.js")
_D3_KNOWN = {
    "bdad5585ef9a965ff25458738309b006058c55f2c78d794d25fbecae35014609": "5.7.0, of mpld3",
    "63cdc8691107d063922c58ece1b9b4eeb9fef305429a55d3d962eea0812f1e03": "5.16.0, of Debian 12",
}
"""By SHA-256: files that were tried. No other is put into pages."""
_WIDTH = 400
"""Of lines, which are not to be broken again."""
_DIGITS = 6

Cell = str | float | None


@dataclass(frozen=True)
class Table:
    """Rows under headings."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    about: str = ""
    """A sentence above it."""


@cache
def d3() -> str:
    """The library; empty where it is not, or is another than the one that is known."""
    for file in _d3_files():
        data = file.read_bytes() if file.is_file() else b""
        if hashlib.sha256(data).hexdigest() in _D3_KNOWN:
            return data.decode()
    return ""


def _d3_files() -> list[Path]:
    found = importlib.util.find_spec("mpld3")
    places = (found.submodule_search_locations or []) if found is not None else []
    return [*(Path(each) / "js" / _D3_PYTHON for each in places), _D3_DEBIAN]


def empty(title: str) -> str:
    """A page without sections: they go in before LAST."""
    scripts = [d3(), (_HERE / "page.js").read_text()] if d3() else []
    style = (_HERE / "page.css").read_text()
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts)) or chr(39) + 'none' + chr(39)}",
            f"style-src {_hash(style)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    licence = (_HERE / "page_d3.txt").read_text() if scripts else ""
    about = f"<details><summary>D3</summary><pre>{html.escape(licence)}</pre></details>"
    return f"""<!DOCTYPE html>
{FIRST}
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{text(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{text(title)}</h1>
{LAST}
</main>
<footer>{about if scripts else ""}</footer>
{"".join(f"<script>{each}</script>" for each in scripts)}
</body>
</html>
"""


def add(page: str, sections: str) -> str:
    """The page with more at its end."""
    return page.replace(LAST, f"{sections}{LAST}")


def is_page(page: str) -> bool:
    """Whether sections can be added to it."""
    return FIRST in page and page.count(LAST) == 1


def _hash(source: str) -> str:
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def text(words: object) -> str:
    """Anything as text of HTML, in the text of elements and in quoted attributes."""
    return html.escape(printable(str(words)))


def table(told: Table) -> str:
    """A column whose cells are all numbers, or empty, is one of numbers."""
    numeric = [
        any(not isinstance(row[at], str | None) for row in told.rows)
        and not any(isinstance(row[at], str) for row in told.rows)
        for at in range(len(told.columns))
    ]
    heads = "".join(
        f'<th scope="col"{" class=n" if each else ""}>{text(name)}</th>'
        for name, each in zip(told.columns, numeric, strict=True)
    )
    lines = [
        f'<div class="table" role="region" tabindex="0" aria-label="{text(told.title)}">',
        f"<table><caption>{text(told.title)}</caption>",
        f"<thead><tr>{heads}</tr></thead><tbody>",
        *(_row(each) for each in told.rows),
        "</tbody></table></div>",
    ]
    if told.about:
        lines.insert(0, f"<p>{text(told.about)}</p>")
    return "\n".join(lines)


def _row(cells: Iterable[Cell]) -> str:
    return f"<tr>{''.join(map(_cell, cells))}</tr>"


def _cell(value: Cell) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, str):
        return f"<td>{text(value)}</td>"
    return f'<td class=n data-v="{value!r}">{number(value)}</td>'


def number(value: float) -> str:
    """For people: not more digits than are worth reading."""
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞" if value < 0 else "?"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.{_DIGITS}g}" if abs(value) < 1e15 else f"{value:.{_DIGITS}g}"


def chart(told: Chart) -> str:
    """A chart, or as much of it as can be shown here."""
    head = f"<figcaption>{text(told.title)}</figcaption>"
    if left_out := told.left_out():
        head += f'<p class="about">{left_out} points have no place on these axes.</p>'
    if d3():
        # What is in a script element is not text: only "<" could end it.
        data = json.dumps(told.as_json(), separators=(",", ":"), allow_nan=False)
        data = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
        return (
            f'<figure class="chart">{head}<script type="application/json">{data}</script></figure>'
        )
    if suggested.there("matplotlib"):
        from beowire import drawing

        return f"<figure>{head}{image(drawing.svg(told), told.title)}</figure>"
    return f'<p class="remark">{text(told.title)}: no chart. {suggested.lacking("matplotlib")}</p>'


def image(svg: bytes, told: str = "drawing") -> str:
    """A drawing that stays as it is; what it holds is not executed."""
    data = base64.b64encode(svg).decode()
    return f'<p><img alt="{text(told)}" src="data:image/svg+xml;base64,{data}"></p>'


def remark(words: str) -> str:
    """Something that readers must know."""
    return f'<p class="remark">{text(words)}</p>'


def facts(told: Sequence[tuple[str, Any]]) -> str:
    """Names and what they are."""
    inside = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in told)
    return f"<dl>{inside}</dl>" if inside else ""


_STANDARD = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def terminal(words: str) -> str:
    """Text as a terminal shows it, colours and all."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=io.StringIO(), width=_WIDTH, highlight=False, color_system="standard")
    console.options.no_wrap = True
    parts = []
    for segment in Text.from_ansi(words).render(console):
        style = segment.style
        names = []
        if style is not None:
            if style.color is not None and style.color.number is not None:
                names.append(_STANDARD[style.color.number % len(_STANDARD)])
            marks = (("b", style.bold), ("d", style.dim), ("i", style.italic))
            names += [name for name, is_so in marks if is_so]
        plain = html.escape(segment.text)
        parts.append(f'<span class="{" ".join(names)}">{plain}</span>' if names else plain)
    return f"<pre>{''.join(parts)}</pre>"
