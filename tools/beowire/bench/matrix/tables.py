# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The matrix as tables: how many cells are ahead, even and behind, and the worst of them."""

from collections import Counter

from rich.table import Table
from rich.text import Text

from beowire.bench.matrix.cells import VERDICTS, Cell, has_interval
from beowire.bench.matrix.figures import told_size

_COLOURS = {"behind": "dark_orange3", "even": "", "ahead": "blue"}


def summary(cells: list[Cell]) -> Table:
    """The verdicts by MPI, MTU, link and figure."""
    table = Table("MPI", "MTU", "link", "figure", title="Cells", title_justify="left")
    for verdict in VERDICTS:
        table.add_column(verdict, justify="right")
    groups: dict[tuple[str, ...], Counter[str]] = {}
    for cell in cells:
        key = cell.key
        group: tuple[str, ...] = (key.mpi, str(key.mtu), key.link, key.figure)
        groups.setdefault(group, Counter())[cell.verdict] += 1
    for group, counts in groups.items():
        table.add_row(*group, *(str(counts[verdict] or "") for verdict in VERDICTS))
    total = Counter(cell.verdict for cell in cells)
    table.add_section()
    table.add_row("all", "", "", "", *(str(total[verdict]) for verdict in VERDICTS))
    return table


def by_size(cells: list[Cell]) -> Table:
    """The ratios, a line for each figure and link, a column for each size; of one MPI and MTU."""
    sizes = sorted({cell.key.bytes for cell in cells})
    table = Table("figure", "link", "better")
    for size in sizes:
        table.add_column(told_size(size), justify="right", no_wrap=True)
    rows: dict[tuple[str, str], dict[int, Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.key.figure, cell.key.link), {})[cell.key.bytes] = cell
    for (figure, link), row in rows.items():
        better = "below 1" if next(iter(row.values())).figure.lower_is_better else "above 1"
        table.add_row(figure, link, better, *(_ratio(row.get(size)) for size in sizes))
    return table


def _ratio(cell: Cell | None) -> Text:
    if cell is None:
        return Text()
    return Text(f"{cell.ratio.value:.2f} {cell.verdict}", style=_COLOURS[cell.verdict])


def worst(cells: list[Cell], count: int) -> Table:
    """The worst cells first; 0: all."""
    shown = sorted(cells, key=lambda cell: cell.badness)[: count or None]
    title = "All cells, the worst first" if len(shown) == len(cells) else "The worst cells"
    table = Table("figure", "size", "link", "MTU", "MPI", title=title, title_justify="left")
    table.add_column("other")
    for heading in ("its value", "Beowire"):
        table.add_column(heading, justify="right")
    table.add_column("unit")
    table.add_column("ratio [95 %]", justify="right", no_wrap=True)
    table.add_column("verdict")
    for cell in shown:
        table.add_row(*_row(cell), style=_COLOURS[cell.verdict])
    return table


def _row(cell: Cell) -> tuple[str, ...]:
    told, key, found = cell.as_json(), cell.key, cell.ratio
    return (
        key.figure,
        told_size(key.bytes),
        key.link,
        str(key.mtu),
        key.mpi,
        cell.stack,
        _told(told["tcp"]),
        _told(told["beowire"]),
        cell.figure.unit,
        str(found) if has_interval(found) else f"{found.value:.2f} [-]",
        cell.verdict,
    )


def _told(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
