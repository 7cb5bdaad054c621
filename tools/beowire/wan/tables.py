# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `beowire wan` prints: a profile's runs, the verdict, and measured times beside predicted."""

import statistics
from dataclasses import asdict
from typing import Any

from rich.table import Table

from beowire.wan import advice, check, fit
from beowire.wan.advice import Advice, Link
from beowire.wan.check import Compared
from beowire.wan.profile import Book, Setting

_ANSWERS = {
    "yes": "Yes: the nodes of the second site pay",
    "no": "No: the nodes of the second site do not pay",
    "unknown": "It cannot be told",
}


def told(book: Book) -> str:
    """What the figures came from, in a sentence."""
    setting = book.setting
    ranks = setting.nodes * setting.ranks_per_node
    quotas = (
        f"Equal limits of processor time stand for computing: {ranks} ranks share "
        f"{setting.processors} processors."
        if setting.crowded
        else "Every rank has a processor of its own."
    )
    return (
        f"{' '.join(setting.program)}: {setting.nodes} nodes at two sites, "
        f"{setting.ranks_per_node} {'rank' if setting.ranks_per_node == 1 else 'ranks'} and "
        f"{setting.cpus:g} processors each (limits by control "
        f"groups), {setting.library}, {setting.machine}. {quotas}{_hosts(book)}"
    )


def _hosts(book: Book) -> str:
    """Which real hosts take part."""
    if not book.plan.hosts:
        return ""
    return (
        f" That is so for what a line costs; the rest was measured on {', '.join(book.plan.hosts)}."
    )


def setting(each: Setting) -> dict[str, Any]:
    return {**asdict(each), "equal_quotas_stand_for_computing": each.crowded}


def of_profile(book: Book) -> list[Table]:
    """The measured times beside those of the fit."""
    tables = []
    for transport in book.plan.transports:
        law = fit.of_book(book, transport)
        table = _table(f"{transport}: {_law(law)}", "measured s", "fitted s", "MB crossed")
        cases = dict.fromkeys(run.case for run in book.runs if run.case.transport == transport)
        for case in cases:
            runs = [run for run in book.runs if run.case == case]
            one = case.sites == "one" or case.place == "hosts"
            late = any(run.verdict.valid is False for run in runs)
            table.add_row(
                str(case).removesuffix(f", {transport}"),
                f"{statistics.median(book.times_s(case)):.2f}{'*' if late else ''}",
                "" if one else f"{law.time_s(case.line):.2f}",
                f"{statistics.median(run.crossed_bytes for run in runs) / 1e6:.1f}",
            )
        tables.append(table)
    return tables


def _law(found: fit.Fit) -> str:
    cost = found.cost
    return (
        f"{found.compute_s:.2f} s of computing, {cost.messages:.0f} messages in a row, "
        f"{sum(each.bytes for each in cost.crossings) / 1e6:.1f} MB one after the other; "
        f"times are {100 * found.spread:.0f} % off"
    )


def verdict(book: Book, link: Link, advices: list[Advice], worth: float) -> list[Table | str]:
    """The answer first."""
    answer = advice.overall(advices)
    over = [each.transport for each in advices if each.answer == "yes"]
    how = f" over {' and '.join(over)}" if over else ""
    least = f" (asked for: a speedup of {worth:g})" if worth != 1 else ""
    headings = ("one site s", "both sites s", "speedup [95 %]", "pays?", "pays to, one way")
    table = _table(f"{link.line}, {link.told}", *headings)
    for each in advices:
        table.add_row(
            each.transport,
            f"{each.one_site_s:.2f}",
            str(each.both),
            str(each.speedup),
            {"yes": "yes", "no": "no", "unknown": "?"}[each.answer],
            _pays_to(each),
        )
    return [
        f"{_ANSWERS[answer]}{how}{least}.",
        table,
        *map(_terms, advices),
        *advice.next_steps(book, link, advices),
        told(book),
    ]


def _terms(advice: Advice) -> str:
    """What the predicted time is made of."""
    return (
        f"{advice.transport}, both sites: {advice.computing_s:.2f} s of computing, "
        f"{advice.waiting_s:.2f} s waiting for messages, {advice.crossing_s:.2f} s for bytes, "
        f"{advice.losses_s:.2f} s for losses"
    )


def _pays_to(advice: Advice) -> str:
    if advice.pays_to_ms is None:
        return "no delay"
    return f"{advice.pays_to_ms:.1f} ms{' and more' if advice.pays_to_end else ''}"


def compared(found: list[Compared]) -> Table:
    table = _table("lines that the profile has not seen", "", "measured s", "predicted s", "error")
    for each in found:
        table.add_row(
            str(each.line),
            each.transport,
            f"{each.measured_s:.2f}{'*' if each.invalid else ''}",
            str(each.predicted),
            f"{100 * each.error:+.1f} %",
        )
    return table


def errors(found: list[Compared]) -> list[str]:
    """The sums of the comparison."""
    lines = []
    for transport in dict.fromkeys(each.transport for each in found):
        own = [each for each in found if each.transport == transport]
        inside = sum(each.inside for each in own)
        lines.append(
            f"{transport}: median error {100 * check.median_error(own):.1f} % of {len(own)} "
            f"lines (allowed {100 * check.ERROR_MAX:.0f} %), largest "
            f"{100 * max(abs(each.error) for each in own):.1f} %; {inside} within their interval"
        )
    if any(each.invalid for each in found):
        lines.append("* the emulator was late")
    return lines


def _table(title: str, *headings: str) -> Table:
    table = Table("", title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right")
    return table
