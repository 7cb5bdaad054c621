# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The paper on MPI over the data-link layer, DLMC (2012) [B1, B2, B6]."""

from beowire.evidence.criterion import Monotone, Order, Ratio, Together, Within
from beowire.evidence.entry import Entry, Explanation, Measure, Stated
from beowire.evidence.figures import Figures
from beowire.evidence.papers.thesis import GUEST

_PI = Measure(
    "pi",
    {"nodes": 4, "sums": 10, "precisions": (1e-4, 1e-6, 1e-8, 1e-9), "rounds": 3},
    {"nodes": 4, "sums": 10, "precisions": (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9), "rounds": 5},
)
_SYSTEM = Measure(
    "tridiagonal",
    {"nodes": 4, "unknowns": (4_000, 100_000, 1_000_000), "repeat": 5, "rounds": 3},
    {
        "nodes": 4,
        "unknowns": (4_000, 20_000, 100_000, 400_000, 1_000_000, 4_000_000),
        "repeat": 5,
        "rounds": 5,
    },
)

ENTRIES = (
    Entry(
        "B6-pi-fine",
        "B6",
        "Pi to 1e-8: four processes over TCP to one",
        Stated(
            "table 1 and the text below it",
            "19.540237 s for four processes over TCP, 84.798166 s for one",
            Figures({"tcp at 1e-8, s": 19.540237, "one process at 1e-8, s": 84.798166}),
        ),
        _PI,
        Within(
            "tcp to one process at 1e+08",
            high=0.5,
            says="the time of four processes over TCP to that of one",
        ),
        Explanation(
            "Our nodes sum 1e8 intervals in a moment: messages take the longer part. Then four "
            "processes gain as much where there are ten times as many.",
            Within("tcp to one process at 1e+09", high=0.5),
        ),
        across="intervals",
        up="ratio of times",
        logarithmic=True,
    ),
    Entry(
        "B6-pi-coarse",
        "B6",
        "Pi to 1e-4: four processes over TCP lose to one",
        Stated(
            "table 1 and the text below it",
            "0.026346 s for four processes over TCP, 0.013742 s for one",
            Figures({"tcp at 1e-4, s": 0.026346, "one process at 1e-4, s": 0.013742}),
        ),
        _PI,
        Within(
            "tcp to one process at 10000",
            low=1.0,
            says="the time of four processes over TCP to that of one",
        ),
        across="intervals",
        up="ratio of times",
        logarithmic=True,
    ),
    Entry(
        "B6-pi-table",
        "B6",
        "Pi from 1e-4 to 1e-8: the more work, the more four processes gain",
        Stated(
            "table 1",
            "from a loss at 1e-4 to a gain at 1e-8; our copy has the text's four values only",
            Figures(curves={"tcp to one process": ((1e4, 1.917), (1e8, 0.230))}),
        ),
        _PI,
        Together(
            (
                Monotone("tcp to one process", rises=False, factor=2),
                Monotone("beowire to one process", rises=False, factor=2),
            )
        ),
        across="intervals",
        up="time to that of one process",
        logarithmic=True,
    ),
    Entry(
        "B6-pi-carriers-fine",
        "B6",
        "Pi to 1e-8: the data-link layer to TCP",
        Stated("section 4.2", "the data-link layer is slightly faster where there is much work"),
        _PI,
        Within("beowire to tcp at 1e+08", 0.5, 1.1, says="Beowire's time to TCP's"),
        across="intervals",
        up="ratio of times",
        logarithmic=True,
    ),
    Entry(
        "B6-pi-carriers-coarse",
        "B6",
        "Pi to 1e-4: the data-link layer loses to TCP on short messages",
        Stated("section 4.2", "TCP is faster there: mapping a buffer costs more than a copy"),
        _PI,
        Within("beowire to tcp at 10000", low=1.0, says="Beowire's time to TCP's"),
        Explanation(
            "Here short messages are copied, none is mapped.",
            Within("copied tx@1", 0.99, 1.01, says="bytes copied on send for each of payload"),
            GUEST,
        ),
        across="intervals",
        up="ratio of times",
        logarithmic=True,
    ),
    Entry(
        "B6-system-long",
        "B6",
        "The tridiagonal system: messages above 1 MB gain over TCP",
        Stated(
            "table 2 and the text below it",
            "beyond 1 MB the data-link layer takes clearly less time; our copy has no values",
        ),
        _SYSTEM,
        Within("beowire to tcp@last", high=1.0, says="Beowire's time to TCP's at the longest"),
        Explanation(
            "On links of this machine TCP hands long messages on in frames of 64 KiB that nothing "
            "cuts, so that a long message costs it little: then 60,000 bytes take it far less work "
            "with offloads than without.",
            Ratio("tcp offloads on 60000", "tcp offloads off 60000", high=0.67),
            GUEST,
        ),
        across="bytes of a message",
        up="ratio of times",
        logarithmic=True,
    ),
    Entry(
        "B6-system-gain",
        "B6",
        "The tridiagonal system: longer messages gain more",
        Stated(
            "table 2 and the text below it",
            "the gain over TCP grows with the messages: short ones are mapped too, which costs",
        ),
        _SYSTEM,
        Order(("beowire to tcp@last", "beowire to tcp@first")),
        Explanation(
            "Here short messages are copied, none is mapped, so that they gain as well.",
            Within("copied tx@1", 0.99, 1.01, says="bytes copied on send for each of payload"),
            GUEST,
        ),
        across="bytes of a message",
        up="ratio of times",
        logarithmic=True,
    ),
    Entry(
        "B6-system-growth",
        "B6",
        "The tridiagonal system at growing sizes by one process, over TCP and over Beowire",
        Stated("table 2", "times grow with the system for all three; our copy has no values"),
        _SYSTEM,
        Together(
            tuple(
                Monotone(name, rises=True, factor=3) for name in ("one process", "tcp", "beowire")
            )
        ),
        across="bytes of a message",
        up="seconds",
        logarithmic=True,
    ),
    Entry(
        "B6-copy-or-map",
        "B6",
        "Short messages are copied, long ones mapped",
        Stated(
            "section 4.2",
            "mapping pays from some length on: 1 MB is beyond it, short messages are below it",
            Figures({"certainly mapped, bytes": 1_000_000}),
        ),
        GUEST,
        Together(
            (
                Within("copied tx@1", 0.99, 1.01, says="bytes copied on send for each of 1 byte"),
                Within("copied tx@1048576", high=0.05, says="the same for each byte of 1 MiB"),
            )
        ),
        across="bytes",
        up="bytes copied for each of payload",
    ),
    Entry(
        "B2-one-copy",
        "B2",
        "One copy on receive, straight into the program's buffer",
        Stated("section 1.3", "a message is copied once on its way", Figures({"copies": 1})),
        GUEST,
        Within("copied rx@1048576", 0.99, 1.05, says="bytes copied on receive for each of 1 MiB"),
        across="bytes",
        up="bytes copied for each of payload",
    ),
    Entry(
        "B1-overlap",
        "B1",
        "Communication while computing",
        Stated("section 2", "non-blocking calls let both go on at once"),
        Measure("overlap", {}, {"rate": "50mbit", "rounds": 7}),
        Within("both to the longer", high=1.2, says="both at once to the longer of the two"),
    ),
)
