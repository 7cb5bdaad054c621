# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `beowire evidence` found, as a section: the entries, our curves with the papers' beside
them, and the numbers of both."""

from collections.abc import Iterator

from beowire.evidence import plot, shown
from beowire.evidence.results import Results, entry_of
from beowire.page import Cell, Table
from beowire.report import source
from beowire.report.section import Section


def section(title: str, results: Results) -> Section:
    """Of one run."""
    facts = source.facts({"run": results.run, "commit": results.commit, **results.host})
    low, high = results.load
    facts.append(("load", f"{low:.1f} to {high:.1f}"))
    entries = Table(
        "Entries",
        ("entry", "what", "the paper's", "outcome", "why"),
        [
            [each.id, entry_of(each).title, entry_of(each).paper.where, each.outcome, each.why]
            for each in results.outcomes
        ],
    )
    numbers = Table(
        "Numbers", ("entry", "number", "ours", "from", "to", "the paper's"), list(_numbers(results))
    )
    charts = [
        plot.chart(each)
        for each in results.outcomes
        if each.ours is not None and shown.curves(entry_of(each), each.ours)
    ]
    made = Section(title, facts, charts=charts, tables=[entries, numbers])
    cores = results.host.get("cores")
    if isinstance(cores, int) and high > cores:
        made.remarks.append(
            "Other work ran beside it: times by the clock are those of a busy machine."
        )
    return made


def _numbers(results: Results) -> Iterator[list[Cell]]:
    for each in results.outcomes:
        theirs = entry_of(each).paper.values.numbers
        ours = each.ours.numbers if each.ours is not None else {}
        spread = each.ours.spread if each.ours is not None else {}
        for name in dict.fromkeys([*ours, *theirs]):
            low, high = spread.get(name, (None, None))
            yield [each.id, name, ours.get(name), low, high, theirs.get(name)]
