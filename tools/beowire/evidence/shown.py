# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which curves of an entry's figures are shown, in a table or drawn."""

from beowire.evidence.criterion import references
from beowire.evidence.entry import Entry
from beowire.evidence.figures import Curve, Figures


def curves(entry: Entry, figures: Figures) -> dict[str, Curve]:
    """Those that belong to the entry's axes; none where it has no axes. A number belongs to the
    curve whose name it contains."""
    if not entry.across:
        return {}
    names = dict.fromkeys(entry.drawn)
    if not names:
        found = [_curve_of(each, figures) for each in references(entry.criterion)]
        names = dict.fromkeys(each for each in found if each)
    return {name: figures.curves[name] for name in names if len(figures.curves.get(name, ())) > 1}


def of_entry(entry: Entry, figures: Figures) -> Figures:
    """What an entry is about: what its criterion and its explanation name, and the curves of its
    axes. An experiment that several entries share gives much more."""
    names = references(entry.criterion)
    if entry.explanation is not None and entry.explanation.measure is None:
        names += references(entry.explanation.criterion)
    plain = {name.partition("@")[0] for name in names}
    wanted = plain | set(curves(entry, figures))
    return Figures(
        {name: each for name, each in figures.numbers.items() if name in plain},
        {name: each for name, each in figures.curves.items() if name in wanted},
        {name: each for name, each in figures.spread.items() if name in plain},
        figures.remarks,
    )


def _curve_of(reference: str, figures: Figures) -> str:
    """The longest name of a curve in it; empty: none."""
    return max((name for name in figures.curves if name in reference), key=len, default="")
