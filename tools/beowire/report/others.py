# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A file whose numbers we have no charts for, as a section: what it says, in tables."""

from collections.abc import Iterator, Mapping
from typing import Any

from beowire.page import Cell, Table
from beowire.report import source
from beowire.report.section import Section
from beowire.report.source import Source
from beowire.tabular import flat

_COLUMNS_MOST = 40
_WORDS_MOST = 400
"""Characters of a cell."""


def section(found: Source) -> Section:
    """Of a whole file."""
    told = found.writer or "a file that does not say what wrote it"
    remark = f"There are no charts for what {found.path} holds ({told}): it is shown as it is."
    tables = list(_tables(found.told, ""))
    return Section(f"{told}: {found.path}", source.facts(found.told), [remark], tables=tables)


def _tables(told: Mapping[str, Any], inside: str) -> Iterator[Table]:
    """Each list of objects, wherever it is."""
    for name, value in told.items():
        whole = f"{inside}{name}"
        if isinstance(value, Mapping):
            yield from _tables(value, f"{whole} ")
        elif isinstance(value, list) and value:
            rows = [each if isinstance(each, Mapping) else {"value": each} for each in value]
            yield _table(whole, [flat(each) for each in rows])


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    left_out = len(columns) - _COLUMNS_MOST
    about = f"{left_out} more columns are left out." if left_out > 0 else ""
    columns = columns[:_COLUMNS_MOST]
    cells = [[_cell(row.get(name)) for name in columns] for row in rows]
    return Table(title, columns, cells, about)


def _cell(value: Any) -> Cell:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    words = str(value)
    return words if len(words) <= _WORDS_MOST else f"{words[: _WORDS_MOST - 1]}…"
