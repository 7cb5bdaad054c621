# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tables of `beowire bench load`."""

from collections.abc import Sequence

from rich.table import Table

from beowire.bench.load.incast import FAIR_TIMES_WANTED, SHARE_WANTED, Incast
from beowire.bench.load.plan import Plan
from beowire.bench.load.runs import CARRIERS, TOLD, Carrier
from beowire.bench.load.slowdown import Alone, Figure, loaded, ratio_of_rounds
from beowire.bench.load.store import Round
from beowire.bench.matrix.cells import has_interval
from beowire.bench.matrix.figures import told_size
from beowire.bench.samples import Ratio

_COLOURS = {"behind": "dark_orange3", "even": "", "ahead": "blue", None: "dim"}


def slowdowns(figures: Sequence[Figure], title: str) -> Table:
    """A row for each class and percentile of one load."""
    table = Table("bytes", title=title, title_justify="left")
    table.add_column("messages", justify="right")
    table.add_column("")
    for heading in ("TCP", "Beowire", "ratio [95 %]"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict")
    before: tuple[int, int] | None = None
    longest = max(each.high_bytes for each in figures)
    for each in figures:
        span = (each.low_bytes, each.high_bytes)
        fresh = span != before
        if fresh and before is not None:
            table.add_section()
        before = span
        table.add_row(
            told_span(each, longest) if fresh else "",
            f"{each.messages:,}" if fresh else "",
            each.percentile,
            told_slowdown(each.tcp),
            told_slowdown(each.beowire),
            told_ratio(each.ratio),
            each.verdict or "",
            style=_COLOURS[each.verdict],
        )
    return table


def told_span(figure: Figure, longest: int) -> str:
    """The class, in bytes."""
    if not figure.low_bytes and figure.high_bytes == longest:
        return "all"
    if not figure.low_bytes:
        return f"up to {figure.high_bytes:,}"
    return f"to {figure.high_bytes:,}"


def told_slowdown(value: float | None) -> str:
    """As many digits as mean something."""
    if value is None:
        return "too few"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def told_ratio(found: Ratio | None) -> str:
    if found is None:
        return "-"
    return str(found) if has_interval(found) else f"{found.value:.2f} [-]"


def beside(figures: Sequence[Figure], base: Alone, rounds: Sequence[Round]) -> Table:
    """Times of the short messages, and the rate of the bulk transfer."""
    alone_us = base.ns[0] / 1e3
    title = f"{told_size(base.bytes[0])} beside a bulk transfer ({alone_us:.1f} us alone)"
    table = Table("", "unit", title=title, title_justify="left")
    for heading in ("messages", "TCP", "Beowire", "ratio [95 %]"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict")
    for each in figures:
        times = [None if slow is None else slow * alone_us for slow in (each.tcp, each.beowire)]
        cells = (f"{each.messages:,}", *map(told_slowdown, times), told_ratio(each.ratio))
        verdict = each.verdict
        table.add_row(each.percentile, "us", *cells, verdict or "", style=_COLOURS[verdict])
    rates = {carrier: _bulk_mb_per_s(rounds, carrier) for carrier in CARRIERS}
    middle = [f"{sum(rates[each]) / len(rounds):,.1f}" for each in CARRIERS]
    compared = ratio_of_rounds(rates["beowire"], rates["tcp"])
    table.add_section()
    table.add_row("bulk", "MB/s", "", *middle, told_ratio(compared), "")
    return table


def _bulk_mb_per_s(rounds: Sequence[Round], carrier: Carrier) -> list[float]:
    phases = [loaded(measured[carrier])[0] for measured in rounds]
    return [1e3 * phase["bulk_bytes"] / phase["bulk_ns"] for phase in phases]


def incast(found: Incast, plan: Plan) -> Table:
    """Both transports beside what is wanted."""
    size = told_size(plan.sizes.quantile(1))
    title = f"{plan.senders} to 1, {size} each; fair time {plan.fair_ns / 1e6:.1f} ms"
    table = Table("", title=title, title_justify="left")
    for heading in (TOLD["tcp"], TOLD["beowire"], "wanted"):
        table.add_column(heading, justify="right", no_wrap=True)
    both = (found.tcp, found.beowire)
    table.add_row("waves", *(f"{each.waves:,}" for each in both), "")
    table.add_row(
        "share of the line, median", *(f"{each.share:.1%}" for each in both), f"{SHARE_WANTED:.0%}"
    )
    table.add_row("share of the line, worst", *(f"{each.least_share:.1%}" for each in both), "")
    table.add_row(
        "longest message, fair times",
        *(f"{each.longest:.2f}" for each in both),
        f"{FAIR_TIMES_WANTED:g}",
    )
    table.add_row("as wanted", *("yes" if each.good else "no" for each in both), "")
    return table
