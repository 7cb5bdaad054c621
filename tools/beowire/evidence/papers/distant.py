# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The paper on a virtual cluster of distant nodes (HPL over dummynet) [C2, C3]."""

from beowire.evidence.criterion import Flat, Knee, Monotone, Order, Ratio, Together, Within
from beowire.evidence.entry import Entry, Explanation, Measure, Parameters, Stated
from beowire.evidence.figures import Figures

_DELAYS = (0, 5, 10, 25, 50, 75, 100, 150, 200)
_RATES = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
_BLOCKS = (10, 20, 50, 100, 200, 500, 1000, 2000)
_QUICK: Parameters = {"transports": ("beowire",), "rounds": 1}
_FULL: Parameters = {"transports": ("tcp", "beowire"), "rounds": 3}

_DELAY = Measure(
    "distant",
    {
        **_QUICK,
        "across": "delay",
        "problems": ((1200, 120),),
        "lines": ((0, 100), (10, 100), (25, 100), (50, 100)),
    },
    {
        **_FULL,
        "across": "delay",
        "problems": ((6400, 100),),
        "lines": tuple((delay, 100) for delay in _DELAYS),
    },
)
_RATE = Measure(
    "distant",
    {
        **_QUICK,
        "across": "rate",
        "problems": ((1200, 120),),
        "lines": tuple((0, rate) for rate in (20, 40, 60, 80, 100)),
    },
    {
        **_FULL,
        "across": "rate",
        "problems": ((6400, 100),),
        "lines": tuple((0, rate) for rate in _RATES),
    },
)
_SIZE = Measure(
    "distant",
    {
        **_QUICK,
        "across": "size",
        "problems": tuple((size, block) for block in (20, 120) for size in (600, 1200)),
        "lines": ((25, 100),),
    },
    {
        **_FULL,
        "across": "size",
        "problems": tuple(
            (size, block) for block in (10, 50, 100) for size in (800, 1600, 3200, 4800, 6400)
        ),
        "lines": ((25, 100),),
    },
)
_BLOCK = Measure(
    "distant",
    {
        **_QUICK,
        "across": "block",
        "problems": tuple((1200, block) for block in (4, 20, 60, 200, 400)),
        "lines": ((25, 100),),
    },
    {
        **_FULL,
        "across": "block",
        "problems": tuple((6400, block) for block in _BLOCKS),
        "lines": ((25, 100), (50, 100)),
    },
)
_VERDICT = Measure(
    "verdict",
    {"size": 1200, "block": 120, "rate": 100, "delays": (0, 10, 25, 50), "transport": "beowire"},
    {"size": 6400, "block": 100, "rate": 100, "delays": _DELAYS, "transport": "beowire"},
)
_SMALL = Explanation(
    "Our nodes compute this problem faster than those of the paper did theirs, so that waiting "
    "weighs more. Then a larger problem loses less to the same line.",
    Order(("relative, beowire, large block@600", "relative, beowire, large block@1200"), slack=0),
    Measure("distant", _SIZE.quick, _SIZE.quick),
)
_POINTS = Figures(curves={"relative": ((25, 0.75), (50, 0.5))})

ENTRIES = (
    Entry(
        "C2-delay",
        "C2",
        "Performance against the delay",
        Stated("figure 1", "it falls strongly with the delay, from 0 to 200 ms", _POINTS),
        _DELAY,
        Monotone("relative, beowire", rises=False, factor=2),
        across="delay one way, ms",
        up="performance to that without a line",
    ),
    Entry(
        "C2-delay-25",
        "C2",
        "A quarter is lost at 25 ms",
        Stated("figure 1", "at about 25 ms performance falls by 25 %", _POINTS),
        _DELAY,
        Within("relative, beowire@25", 0.6, 0.9, says="performance at 25 ms"),
        _SMALL,
        across="delay one way, ms",
        up="performance to that without a line",
    ),
    Entry(
        "C2-delay-50",
        "C2",
        "Half is lost at 50 ms",
        Stated("figure 1", "at 50 ms performance is halved", _POINTS),
        _DELAY,
        Within("relative, beowire@50", 0.35, 0.65, says="performance at 50 ms"),
        _SMALL,
        across="delay one way, ms",
        up="performance to that without a line",
    ),
    Entry(
        "C2-delay-ratio",
        "C2",
        "From 25 to 50 ms",
        Stated("figure 1", "0.75 at 25 ms, 0.5 at 50 ms: two thirds", _POINTS),
        _DELAY,
        Ratio(
            "relative, beowire@50",
            "relative, beowire@25",
            0.45,
            0.85,
            says="performance at 50 ms to that at 25 ms",
        ),
        across="delay one way, ms",
        up="performance to that without a line",
    ),
    Entry(
        "C2-rate",
        "C2",
        "Performance against the rate",
        Stated(
            "figure 2",
            "from 10 to 100 Mbit/s; beyond about 60 it hardly rises",
            Figures({"knee, Mbit/s": 60}),
        ),
        _RATE,
        Together(
            (
                Monotone("relative, beowire", rises=True, factor=1.5),
                Knee("relative, beowire", 50, 80, share=0.1),
            )
        ),
        Explanation(
            "Our nodes compute faster, so that bytes are the larger part of the time, and the time "
            "is in proportion to them: then from 40 to 80 Mbit/s it falls by more than a third.",
            Ratio("seconds, beowire@80", "seconds, beowire@40", high=0.67),
        ),
        across="Mbit/s",
        up="performance to that without a line",
    ),
    Entry(
        "C2-size-curves",
        "C2",
        "Time against the size for several blocks",
        Stated("figure 3", "the time grows with the size for each block"),
        _SIZE,
        Together(
            (
                Monotone("seconds, beowire, large block", rises=True, factor=1.2),
                Monotone("seconds, beowire, small block", rises=True, factor=1.2),
            )
        ),
        across="N",
        up="seconds",
    ),
    Entry(
        "C2-size",
        "C2",
        "A small block at the largest size",
        Stated(
            "figure 3",
            "N = 6400, 100 Mbit/s, 25 ms: block 10 takes 2.5 times as long as block 100",
            Figures({"time, small block to large": 2.5}),
        ),
        _BLOCK,
        Ratio(
            "seconds, beowire, 25 ms@last",
            "seconds, beowire, 25 ms@least",
            low=1.5,
            says="the time of the smallest block to that of the best",
        ),
        across="N to block",
        up="seconds",
        logarithmic=True,
    ),
    Entry(
        "C2-block",
        "C2",
        "Performance against the block size",
        Stated(
            "figure 4",
            "a steep rise, a maximum, then a slow fall",
            Figures({"flat from, N to block": 60, "flat to, N to block": 6}),
        ),
        _BLOCK,
        Together(
            (
                Ratio("relative, beowire, 25 ms@last", "relative, beowire, 25 ms@most", high=0.67),
                Ratio("relative, beowire, 25 ms@first", "relative, beowire, 25 ms@most", 0.3, 0.99),
            )
        ),
        Explanation(
            "Even with the best block less than a fifth of the time is computing: what the largest "
            "blocks cost there is not felt.",
            Within("relative, beowire, 25 ms@most", high=0.2),
        ),
        across="N to block",
        up="performance to that without a line",
    ),
    Entry(
        "C2-block-flat",
        "C2",
        "Blocks from N/60 to N/6 are alike",
        Stated("figure 4", "from N/60 to N/6 (100 to 1000 at N = 6400) performance changes little"),
        _BLOCK,
        Flat("relative, beowire, 25 ms", 6, 64, 1.5),
        Explanation(
            "Small blocks fit into what may be under way at once, and cost no more round trips: "
            "then the smallest of these blocks is the best.",
            Order(("seconds, beowire, 25 ms, at N/60", "seconds, beowire, 25 ms, at N/6"), slack=0),
        ),
        across="N to block",
        up="performance to that without a line",
    ),
    Entry(
        "C2-block-gain",
        "C2",
        "The gain of larger blocks shrinks as they grow",
        Stated("figure 3", "with growing blocks the advantage in speed gets smaller"),
        _BLOCK,
        Order(
            ("seconds, beowire, 25 ms, gain of step 3", "seconds, beowire, 25 ms, gain of step 1"),
            slack=0,
        ),
        across="N to block",
        up="seconds",
    ),
    Entry(
        "C3-pays",
        "C3",
        "The distant nodes pay up to 25 ms",
        Stated("conclusion 1", "100 Mbit/s and up to 25 ms are good enough to join distant nodes"),
        _VERDICT,
        Within("both sites to one@25", low=1.0, says="the speedup of both sites at 25 ms"),
        Explanation(
            "The problem is so small for our nodes that the second site hardly pays without any "
            "line either.",
            Within("both sites to one, no line", high=1.3, says="the speedup without a line"),
        ),
        across="delay one way, ms",
        up="speedup of both sites",
    ),
    Entry(
        "C3-does-not-pay",
        "C3",
        "The distant nodes do not pay above 50 ms",
        Stated("conclusion 1", "above 50 ms there is no gain from distant nodes"),
        _VERDICT,
        Within("both sites to one@50", high=1.1, says="the speedup of both sites at 50 ms"),
        across="delay one way, ms",
        up="speedup of both sites",
    ),
)
