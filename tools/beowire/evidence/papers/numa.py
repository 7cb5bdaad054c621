# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The paper on Linux for a NUMA machine, the Elbrus-3S [E1, E2, E3, E5]."""

from beowire.evidence.criterion import Order, Ratio
from beowire.evidence.entry import Entry, Measure, Stated
from beowire.evidence.figures import Figures

_ACTIVATION = Measure("activation", {"more": ("--quick",)}, {"more": ()})
_PLACE = Measure("place", {}, {})
_COPIES = Measure("replicate", {"more": ("--quick",)}, {"more": ()})
_TABLE = Figures({"plain, us": 34, "optimized, us": 20})

ENTRIES = (
    Entry(
        "E5-activation",
        "E5",
        "How long the activation of a process takes on average",
        Stated("table 1 and abstract", "34 us before, 20 us after: 40 % less", _TABLE),
        _ACTIVATION,
        Ratio("all, average us", "none, average us", 0.4, 0.85),
    ),
    Entry(
        "E5-activation-most",
        "E5",
        "How long the activation of a process takes at most",
        Stated("section 4", "the text calls the same figures the largest times", _TABLE),
        _ACTIVATION,
        Ratio("all, most us", "none, most us", 0.4, 0.85),
    ),
    Entry(
        "E1-latency",
        "E1",
        "Work bound by latency wants local memory",
        Stated("section 1", "memory is to be taken on the node where the task runs"),
        _PLACE,
        Order(("latency local", "latency far"), slack=0),
    ),
    Entry(
        "E1-bandwidth",
        "E1",
        "Work bound by bandwidth may spread",
        Stated("section 1", "with many processors the delay of far pages does not decide"),
        _PLACE,
        Order(("bandwidth local", "bandwidth interleaved"), slack=0),
    ),
    Entry(
        "E2-large-pages",
        "E2",
        "Large pages for code shorten the activation",
        Stated(
            "section 2",
            "the kernel's code takes 4 to 8 large pages, and as few entries",
            Figures({"entries, at least": 4, "entries, at most": 8}),
        ),
        _ACTIVATION,
        Ratio("huge, average us", "none, average us", high=1.0),
    ),
    Entry(
        "E3-copies",
        "E3",
        "Copies of code on each node",
        Stated("section 3", "no call fetches instructions from afar; part of 34 us to 20 us"),
        _COPIES,
        Ratio("replicate, average us", "none, average us", high=1.0),
    ),
)
