# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The paper on the exchange between processors of the MVS-1000M/17 (2002) [D1 to D6]."""

from beowire.evidence.criterion import Flat, Order, Ratio, Together, Within
from beowire.evidence.entry import Entry, Explanation, Measure, Stated
from beowire.evidence.figures import Figures
from beowire.evidence.papers.thesis import FRAMES

_FAST, _GIGABIT = 100_000_000, 1_000_000_000
_INSIDE = Measure(
    "inside",
    {
        "sizes": ("1k", "8k", "16k", "64k", "256k", "1m", "2m", "4m", "16m"),
        "rounds": 3,
        "iterations": 10,
    },
    {
        "sizes": (
            *("1k", "2k", "4k", "8k", "16k", "32k", "64k", "128k", "256k"),
            *("512k", "1m", "2m", "4m", "8m", "16m", "32m"),
        ),
        "rounds": 7,
        "iterations": 0,
    },
)
_MANY = Measure(
    "one-to-many",
    {
        "others": 16,
        "sizes": ("1k", "16k", "64k"),
        "short": 8192,
        "rounds": 2,
        "iterations": 40,
        "window": 4,
    },
    {
        "others": 16,
        "sizes": ("1k", "2k", "4k", "8k", "16k", "64k", "256k"),
        "short": 8192,
        "rounds": 5,
        "iterations": 0,
        "window": 16,
    },
)
_CHANNELS = Measure(
    "channels",
    {"rates_bits": (_FAST, _FAST), "seconds": 2, "rounds": 2},
    {"rates_bits": (_FAST, _FAST), "seconds": 5, "rounds": 5},
)
_MITIGATION = Measure(
    "mitigation",
    {
        "rate_bits": _GIGABIT,
        "gather_ns": 125_000,
        "short": 8,
        "size": 1048576,
        "iterations": 300,
        "messages": 32,
        "rounds": 4,
    },
    {
        "rate_bits": _GIGABIT,
        "gather_ns": 125_000,
        "short": 8,
        "size": 1048576,
        "iterations": 1000,
        "messages": 256,
        "rounds": 9,
    },
)
_MIXED = Measure(
    "mixed-path", {"size": 1048576, "messages": 16}, {"size": 1048576, "messages": 128}
)
_FIVE = Figures({"scatter byte, MB/s": 80, "gather byte, MB/s": 71, "double, MB/s": 64})

ENTRIES = (
    Entry(
        "D1-blocking",
        "D1",
        "Inside a node, blocking calls, to the memory's rate",
        Stated(
            "figure 2",
            "the rate comes near half of the largest rate of the memory",
            Figures({"to memory": 0.5}),
        ),
        _INSIDE,
        Within("most to memory, own 81k blocking byte", 0.25, says="the largest rate to memory's"),
        across="bytes",
        up="MB/s",
        logarithmic=True,
        drawn=("own 8k blocking byte", "own 81k blocking byte"),
    ),
    Entry(
        "D1-eager",
        "D1",
        "Inside a node, the eager limit at 8 and at 80 kB",
        Stated("figure 2", "a greater limit, with a greater buffer, raises the rate"),
        _INSIDE,
        Ratio(
            "own 81k blocking byte@65536",
            "own 8k blocking byte@65536",
            low=1.0,
            says="the rate of 64 KiB with the greater limit to that with the smaller",
        ),
        Explanation(
            "What is above the limit is not cut into small pieces here: the receiver reads it in "
            "one call from the sender's memory, once. Then beyond both limits, at 256 KiB, both "
            "are alike, and faster than 64 KiB with the greater limit.",
            Together(
                (
                    Ratio("own 81k blocking byte@262144", "own 8k blocking byte@262144", 0.7, 1.4),
                    Order(("own 81k blocking byte@65536", "own 81k blocking byte@262144")),
                )
            ),
        ),
        across="bytes",
        up="MB/s",
        logarithmic=True,
    ),
    Entry(
        "D1-nonblocking",
        "D1",
        "Inside a node, non-blocking calls: slower than blocking ones",
        Stated("figure 3", "one more write into a buffer between lowers the rate"),
        _INSIDE,
        Ratio(
            "most, own 81k nonblocking byte",
            "most, own 81k blocking byte",
            high=1.0,
            says="the largest non-blocking rate to the largest blocking one",
        ),
        Explanation(
            "Ours go both ways at once where blocking ones take turns. Then half of their rate, "
            "one way, is no more than the blocking one.",
            Ratio("most, own 81k nonblocking byte", "most, own 81k blocking byte", high=2.2),
        ),
        across="bytes",
        up="MB/s",
        logarithmic=True,
    ),
    Entry(
        "D1-cache",
        "D1",
        "Inside a node, the fall beyond the cache",
        Stated(
            "figure 3",
            "non-blocking, long messages: a catastrophic fall once the buffers exceed the L2 cache",
        ),
        _INSIDE,
        Within(
            "longest to most, own 81k nonblocking byte",
            high=0.5,
            says="the rate of the longest message to the largest",
        ),
        across="bytes",
        up="MB/s",
        logarithmic=True,
    ),
    Entry(
        "D1-cache-beowire",
        "D1",
        "The same over Beowire's local link",
        Stated("figure 3", "the fall comes from memory, whoever copies"),
        _INSIDE,
        Within(
            "longest to most, beowire 65k nonblocking byte",
            high=0.5,
            says="the rate of the longest message to the largest",
        ),
        Explanation(
            "From the cache Beowire is slower than MPI's own memory, so it has less to lose. Then "
            "its largest rate is below two thirds of that one's, and its longest messages go no "
            "faster than that one's, which fall as the paper's do.",
            Together(
                (
                    Ratio(
                        "most, beowire 65k nonblocking byte",
                        "most, own 81k nonblocking byte",
                        high=0.67,
                    ),
                    Ratio(
                        "beowire 65k nonblocking byte@16777216",
                        "own 81k nonblocking byte@16777216",
                        high=1.05,
                    ),
                    Within("longest to most, own 81k nonblocking byte", high=0.5),
                )
            ),
        ),
        across="bytes",
        up="MB/s",
        logarithmic=True,
    ),
    Entry(
        "D1-dips",
        "D1",
        "Single measurements have deep dips that others do not have",
        Stated("figure 4", "sharp dips, elsewhere in the next measurement; the maxima are drawn"),
        _INSIDE,
        Within(
            "deepest dip", high=0.8, says="the least rate of a round to the largest at its size"
        ),
        across="bytes",
        up="MB/s",
        logarithmic=True,
        drawn=("own 81k blocking byte", "own 81k blocking double"),
    ),
    Entry(
        "D2-double",
        "D2",
        "Doubles at half the rate of bytes",
        Stated(
            "text to figure 3",
            "MPI_DOUBLE goes at almost half the rate of MPI_BYTE",
            Figures({"double to byte": 0.5}),
        ),
        _INSIDE,
        Within("double to byte, own 81k blocking", 0.4, 0.7, says="the rate of doubles to bytes'"),
        Explanation(
            "It was a property of the MPI of 2002: here neither MPI's own memory nor Beowire knows "
            "a difference.",
            Together(
                (
                    Within("double to byte, own 81k blocking", 0.85, 1.2),
                    Within("double to byte, beowire 65k blocking", 0.85, 1.2),
                )
            ),
        ),
    ),
    Entry(
        "D3-scatter",
        "D3",
        "One Gigabit node scatters to sixteen on Fast Ethernet",
        Stated("figure 5", "above 8 KB bytes go out at about 80 MB/s", _FIVE),
        _MANY,
        Within("long, scatter beowire nonblocking byte", 40, 125, says="MB/s above 8 KB"),
        across="bytes",
        up="MB/s",
        logarithmic=True,
    ),
    Entry(
        "D3-gather",
        "D3",
        "It gathers from the sixteen, more slowly",
        Stated("figure 5", "bytes come in at up to 71 MB/s, less than they go out", _FIVE),
        _MANY,
        Together(
            (
                Within("long, gather beowire nonblocking byte", 35, 125, says="MB/s above 8 KB"),
                Ratio(
                    "long, gather beowire nonblocking byte",
                    "long, scatter beowire nonblocking byte",
                    high=1.0,
                    says="gather to scatter",
                ),
            )
        ),
        Explanation(
            "It is no matter of the transport: over TCP this lab, whose 17 ranks share few "
            "processors, gathers 64 KiB faster than it scatters them as well.",
            Ratio(
                "gather tcp nonblocking byte@65536",
                "scatter tcp nonblocking byte@65536",
                low=1.0,
                says="TCP's gather to its scatter",
            ),
        ),
        across="bytes",
        up="MB/s",
        logarithmic=True,
    ),
    Entry(
        "D3-unequal",
        "D3",
        "One Gigabit link carries more than one slow link",
        Stated("figure 5", "80 MB/s are more than six links of Fast Ethernet carry", _FIVE),
        _MANY,
        Within(
            "long, scatter beowire nonblocking byte", low=25, says="MB/s, of 12.5 for one link,"
        ),
        across="bytes",
        up="MB/s",
        logarithmic=True,
    ),
    Entry(
        "D3-sizes",
        "D3",
        "Longer messages go faster",
        Stated("figure 5", "the rate rises with the size, and stays from 8 KB on"),
        _MANY,
        Together(
            (
                Ratio(
                    "scatter beowire nonblocking byte@1024",
                    "scatter beowire nonblocking byte@16384",
                    high=0.95,
                    says="the rate of 1 KiB to that of 16 KiB",
                ),
                Flat("scatter beowire nonblocking byte", 16384, 65536, 1.5),
            )
        ),
        Explanation(
            "Today's processor fills the one Gigabit link with messages of 1 KiB as well, by TCP "
            "as by Beowire. Then both are above two thirds of it.",
            Together(
                (
                    Within("scatter beowire nonblocking byte@1024", low=83),
                    Within("scatter tcp nonblocking byte@1024", low=83),
                )
            ),
        ),
        across="bytes",
        up="MB/s",
        logarithmic=True,
    ),
    Entry(
        "D3-double",
        "D3",
        "Doubles go more slowly than bytes, both ways",
        Stated("figure 5", "doubles at 64 MB/s both ways, bytes at 80 and 71", _FIVE),
        _MANY,
        Ratio(
            "long, scatter beowire nonblocking double",
            "long, scatter beowire nonblocking byte",
            0.7,
            0.9,
            says="scatter of doubles to that of bytes",
        ),
        Explanation(
            "The type does not matter to today's MPI, nor over TCP.",
            Ratio(
                "long, scatter tcp nonblocking double",
                "long, scatter tcp nonblocking byte",
                0.9,
                1.1,
            ),
        ),
        across="bytes",
        up="MB/s",
        logarithmic=True,
    ),
    Entry(
        "D4-channels",
        "D4",
        "Two channels of Fast Ethernet to one",
        Stated(
            "figure 6",
            "22 MB/s instead of 12, 92 % of twice the rate",
            Figures({"one channel, MB/s": 12, "two channels, MB/s": 22, "two to one": 1.83}),
        ),
        _CHANNELS,
        Together(
            (
                Within("two to one", 1.65, 2.05, says="two channels to one"),
                Within("two to twice one", 0.83, 1.03, says="two channels to the sum"),
            )
        ),
    ),
    Entry(
        "D5-short",
        "D5",
        "Interrupt mitigation hurts single short messages",
        Stated(
            "text to figure 5 and conclusion",
            "the NIC's settings are for throughput; short single messages want others",
        ),
        _MITIGATION,
        Together(
            (
                Within(
                    "tcp, time gathered to at once", low=1.5, says="TCP's time, gathered to not,"
                ),
                Within("beowire, time gathered to at once", low=1.5, says="Beowire's"),
            )
        ),
    ),
    Entry(
        "D5-bulk",
        "D5",
        "Interrupt mitigation does not hurt bulk",
        Stated("conclusion", "segments are gathered to raise the throughput"),
        _MITIGATION,
        Together(
            (
                Within(
                    "tcp, rate gathered to at once", low=0.85, says="TCP's rate, gathered to not,"
                ),
                Within("beowire, rate gathered to at once", low=0.85, says="Beowire's"),
            )
        ),
    ),
    Entry(
        "D6-path",
        "D6",
        "Jumbo frames need every device on the path",
        Stated("conclusion", "all devices and drivers of the path have to support them"),
        _MIXED,
        Together(
            (
                Within("passes, same switch", 9000, 9000, says="bytes that pass at the switch"),
                Within("passes, other switch", 1500, 1500, says="bytes that pass beyond it"),
                Within("MB/s, other switch", low=1.0, says="MB/s of long messages beyond it"),
            )
        ),
    ),
    Entry(
        "D6-long-frames",
        "D6",
        "Jumbo frames bring TCP near the Gigabit",
        Stated("conclusion", "they are the known way to reach about 1 Gbit/s"),
        FRAMES,
        Within("tcp 9000, MB/s", 100, 125, says="TCP's MB/s with frames of 9000 bytes, of 125,"),
    ),
)
