# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tables in which `beowire bench exchange` tells its figures."""

from rich.table import Table

from beowire.bench.exchange import Report
from beowire.bench.exchange_figures import Figure


def tables(report: Report) -> list[Table]:
    """Rates and ratios by size; types; caches, where they are known."""
    told = [rates_table(report), types_table(report)]
    return [*told, edges_table(report)] if report.edges else told


def rates_table(report: Report) -> Table:
    """A row for each kind of calls, type and size; the settings side by side, each followed by its
    ratio to the one before it where they are compared."""
    table = Table("calls", "type", "bytes", title="MB/s, medians")
    columns = list(dict.fromkeys(each.setting for each in report.figures))
    ratios = {
        (each.over, each.calls, each.type, each.size_bytes): each for each in (report.comparisons)
    }
    compared = {each.over for each in report.comparisons}
    for setting in columns:
        table.add_column(setting, justify="right")
        if setting in compared:
            table.add_column("ratio of rounds [95 %]", justify="right")
    figures = {(each.setting, *_key(each)): each for each in report.figures}
    for key in dict.fromkeys(_key(each) for each in _by_calls_and_type(report.figures)):
        calls, kind, size_bytes = key
        row = [calls, kind, f"{size_bytes:,}"]
        for setting in columns:
            row.append(f"{figures[setting, *key].mb_per_s['p50']:,.1f}")
            if setting in compared:
                row.append(str(ratios[setting, *key].ratio))
        table.add_row(*row)
    return table


def _key(figure: Figure) -> tuple[str, str, int]:
    return figure.calls, figure.type, figure.size_bytes


def _by_calls_and_type(figures: list[Figure]) -> list[Figure]:
    """By calls and type in the order of measurement, sizes kept together."""
    calls = list(dict.fromkeys(each.calls for each in figures))
    types = list(dict.fromkeys(each.type for each in figures))
    return sorted(figures, key=lambda each: (calls.index(each.calls), types.index(each.type)))


def types_table(report: Report) -> Table:
    table = Table("setting", "calls", "type", title="rate to that of bytes, all sizes")
    for heading in ("ratio of rounds [95 %]", "lowest", "at bytes"):
        table.add_column(heading, justify="right")
    for each in report.type_ratios:
        lowest = (f"{each.lowest:.2f}", f"{each.lowest_bytes:,}")
        table.add_row(each.setting, each.calls, each.type, str(each.ratio), *lowest)
    return table


def edges_table(report: Report) -> Table:
    """The first type alone; the report holds all."""
    table = Table("cache", "setting", "calls", title=f"MB/s beside caches, {report.edges[0].type}")
    for heading in ("largest that fits", "MB/s", "smallest that does not", "MB/s", "ratio"):
        table.add_column(heading, justify="right")
    for each in report.edges:
        if each.type != report.edges[0].type:
            continue
        fits, exceeds = each.fits_mb_per_s, each.exceeds_mb_per_s
        table.add_row(
            f"{each.cache} {each.cache_bytes >> 10:,} KiB, {each.buffers} buffers",
            each.setting,
            each.calls,
            _told(each.fits_bytes, ",d"),
            _told(fits, ",.1f"),
            _told(each.exceeds_bytes, ",d"),
            _told(exceeds, ",.1f"),
            _told(exceeds / fits if fits and exceeds else None, ".2f"),
        )
    return table


def _told(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
