# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire bench compare`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from beowire import places, tabular
from beowire.bench import compare, compare_rows
from beowire.terminal import note, out

_TOLD = 8


def run(
    first: Annotated[Path, typer.Argument(metavar="A", help="A file that --json wrote.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another of the same command.")],
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every number to this file.")
    ] = None,
    chosen: tabular.Chosen = "table",
) -> None:
    """Two files of results: the ratios of B's numbers to A's, and a verdict on each."""
    if json_file is not None:
        places.check_output(json_file)
    found = compare.compare(compare_rows.read(first), compare_rows.read(second))
    if json_file is not None:
        places.write_json(json_file, found.as_json())
    for name, (a, b) in list(found.settings.items())[:_TOLD]:
        note(f"they differ in {name}: {a}, {b}")
    for path, names in ((first, found.only_first), (second, found.only_second)):
        if names:
            more = ", ..." if len(names) > _TOLD else ""
            note(f"only in {path}: {', '.join(names[:_TOLD])}{more}")
    tabular.tell(
        chosen, [each.as_json() for each in found.rows], lambda: out().print(_table(found))
    )


def _table(found: compare.Comparison) -> Table:
    table = Table("", "unit", "A", "B", "B to A [95 %]", "B is", title=found.first.writer)
    for column in table.columns[2:5]:
        column.justify = "right"
    for each in found.rows:
        table.add_row(
            each.first.name,
            each.first.unit,
            f"{compare.middle(each.first):,.4g}",
            f"{compare.middle(each.second):,.4g}",
            _ratio(each),
            each.verdict,
        )
    return table


def _ratio(each: compare.Compared) -> str:
    if each.ratio is None:
        return "-"
    if each.verdict == "unknown":
        return f"{each.ratio.value:.3f}"
    return f"{each.ratio.value:.3f} [{each.ratio.low:.3f}, {each.ratio.high:.3f}]"
