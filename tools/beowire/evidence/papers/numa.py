# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The paper on Linux for a NUMA machine, the Elbrus-3S [E1, E2, E3, E5]."""

from beowire.evidence.criterion import Order, Ratio, Together, Within
from beowire.evidence.entry import Entry, Explanation, Measure, Stated
from beowire.evidence.figures import Figures

_ACTIVATION = Measure("activation", {"more": ("--quick",)}, {"more": ()})
_LONGER = Measure(
    "activation",
    {"more": ("--rounds", "9", "--count", "300", "--measures", "none,realtime,huge,all")},
    {"more": ("--rounds", "21", "--measures", "none,realtime,huge,all")},
)
"""Of which explanations are tested."""
_PLACE = Measure("place", {}, {})
_COPIES = Measure("replicate", {"more": ("--quick",)}, {"more": ()})
_TEXT = Measure("text", {"nodes": 4}, {"nodes": 4})
_TABLE = Figures({"plain, us": 34, "optimized, us": 20})

ENTRIES = (
    Entry(
        "E5-activation",
        "E5",
        "How long the activation of a process takes on average",
        Stated("table 1 and abstract", "34 us before, 20 us after: 40 % less", _TABLE),
        _ACTIVATION,
        Ratio("all, average us", "none, average us", 0.4, 0.85),
        Explanation(
            "Ours without measures is a thread of the ordinary class, which may stand in a "
            "processor's queue behind the load; all has real-time priority, which is none of the "
            "paper's measures. Then what is saved is that time, by the kernel's account, priority "
            "alone saves more than the paper's measures, and beside priority the others save no "
            "more than those.",
            Together(
                (
                    Within("all, queued of the difference", 0.8, 1.2),
                    Ratio("realtime, average us", "none, average us", high=0.4),
                    Ratio("all, average us", "realtime, average us", low=0.4),
                )
            ),
            _LONGER,
        ),
    ),
    Entry(
        "E5-activation-most",
        "E5",
        "How long the activation of a process takes at most",
        Stated("section 4", "the text calls the same figures the largest times", _TABLE),
        _ACTIVATION,
        Ratio("all, most us", "none, most us", 0.4, 0.85),
        Explanation(
            "The same: the largest of a thread of the ordinary class is a wait in a processor's "
            "queue behind the load, which priority alone ends.",
            Together(
                (
                    Within("none, queued of the most", low=0.8),
                    Ratio("realtime, most us", "none, most us", high=0.4),
                )
            ),
            _LONGER,
        ),
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
        Explanation(
            "At least half of the average is time in which a thread of the ordinary class stands "
            "in a processor's queue behind the load, which the size of pages does not change. Then "
            "what is left without that time is alike with large pages and without them.",
            Together(
                (
                    Ratio("none, queued us", "none, average us", low=0.5),
                    Ratio("huge, prompt us", "none, prompt us", 0.8, 1.25),
                )
            ),
            _LONGER,
        ),
    ),
    Entry(
        "E3-copies",
        "E3",
        "Copies of code on each node",
        Stated("section 3", "no call fetches instructions from afar; part of 34 us to 20 us"),
        _COPIES,
        Ratio("replicate, average us", "none, average us", high=1.0),
    ),
    Entry(
        "E3-text",
        "E3",
        "Pages of text on other nodes, of a program on each of four nodes",
        Stated(
            "section 3",
            "copies of the kernel's text on each of four nodes: whatever node calls has it near",
            Figures({"nodes": 4}),
        ),
        _TEXT,
        Together(
            (
                Within("far, copies@most", high=0, says="with copies, pages on others, at most,"),
                Within("near, copies@least", low=1024, says="pages on the own node, at least,"),
                Within("far, files@most", low=1024, says="without copies, pages on others"),
            )
        ),
        across="node",
        up="pages",
        drawn=("far, files", "far, copies", "near, files", "near, copies"),
    ),
)
