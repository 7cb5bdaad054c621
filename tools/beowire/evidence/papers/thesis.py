# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The thesis on faster data transfer in Ethernet clusters (2018): its tests [A8, A11]."""

from beowire.evidence.criterion import Monotone, Order, Ratio, Together, Within
from beowire.evidence.entry import Entry, Explanation, Measure, Stated
from beowire.evidence.figures import Figures

_GIGABIT = 1_000_000_000
GUEST = Measure(
    "guest",
    {
        "trips": 200,  # with 40 it is chance how often the scheduler lets who is woken run at once
        "warmup": 20,
        "offload_sizes": (1, 5000, 60000),
        "copied_sizes": (1, 1024, 4096, 65536, 1048576),
        "bulk": 65536,
        "guests": 1,
    },
    {
        "trips": 400,
        "warmup": 100,
        "offload_sizes": (1, 1000, 5000, 20000, 60000),
        "copied_sizes": (1, 1024, 4096, 8192, 16384, 32768, 65536, 262144, 1048576),
        "bulk": 65536,
        "guests": 3,
    },
)
_RECEIVE = {
    "rate_bits": _GIGABIT,
    "stated_bytes": 900_000_000,
    "buffers": (10_000, 20_000, 50_000, 100_000, 1_000_000),
}
_NEAR, _FAR = "200 us one way", "1000 us one way"
_OFFLOADS = Measure(
    "offloads",
    {
        "sizes": (1, 1000, 5000, 60000),
        "bulk_sizes": (65536, 1048576),
        "frame_bytes": 1400,
        "iterations": 300,
        "messages": 40,
        "rounds": 3,
    },
    {
        "sizes": (1, 100, 1000, 5000, 20000, 60000),
        "bulk_sizes": (16384, 65536, 262144, 1048576),
        "frame_bytes": 1400,
        "iterations": 1000,
        "messages": 200,
        "rounds": 9,
    },
)
_WAITING = Measure(
    "waiting",
    {"sizes": (1, 5000), "iterations": 500, "rounds": 2},
    {"sizes": (1, 5000), "iterations": 2000, "rounds": 9},
)
FRAMES = Measure(
    "frames",
    {
        "rate_bits": _GIGABIT,
        "mtus": (1500, 9000),
        "size": 1048576,
        "messages": 128,
        "rounds": 3,
    },
    {
        "rate_bits": _GIGABIT,
        "mtus": (1500, 9000),
        "size": 1048576,
        "messages": 512,
        "rounds": 9,
    },
)

ENTRIES = (
    Entry(
        "A11-receive-buffer",
        "A11",
        "A file against net.ipv4.tcp_rmem",
        Stated(
            "figure 4.2",
            "900 MB on Gigabit: 75 s with parameters of 10,000 bytes, slow with 20,000 too, 16 s "
            "with 100,000",
            Figures(curves={"seconds": ((10_000, 75.0), (100_000, 16.0))}),
        ),
        Measure(
            "receive-buffer",
            {**_RECEIVE, "file_bytes": 30_000_000, "rounds": 5},
            {**_RECEIVE, "file_bytes": 900_000_000, "rounds": 3},
        ),
        Together(
            (
                Monotone("seconds", rises=False, factor=2, slack=0.15),
                Ratio("seconds@10000", "seconds@100000", low=2),
            )
        ),
        Explanation(
            "A sender whose window is full waits for a round trip. The paper's 12 MB/s are half of "
            "the 10,000 bytes each 0.4 ms, or all each 0.8 ms; our line has no delay. Then "
            "over a line with 0.4 ms there and back the criterion holds, and with 10,000 bytes the "
            "window holds the sender up most of the time; 2 ms make that slower, by 5 at most, and "
            "hardly change what 1,000,000 bytes take.",
            Together(
                (
                    Monotone(f"seconds, {_NEAR}", rises=False, factor=2, slack=0.15),
                    Ratio(f"seconds, {_NEAR}@10000", f"seconds, {_NEAR}@100000", low=2),
                    Within(f"held up, {_NEAR}@10000", low=0.5),
                    Ratio(f"seconds, {_FAR}@10000", f"seconds, {_NEAR}@10000", 2, 5.5),
                    Ratio(f"seconds, {_FAR}@1000000", f"seconds, {_NEAR}@1000000", high=1.5),
                )
            ),
            Measure(
                "receive-buffer",
                {**_RECEIVE, "delays_us": (200, 1000), "file_bytes": 10_000_000, "rounds": 3},
                {**_RECEIVE, "delays_us": (200, 1000), "file_bytes": 100_000_000, "rounds": 3},
            ),
        ),
        across="bytes of tcp_rmem, all three alike",
        up="seconds",
        logarithmic=True,
    ),
    Entry(
        "A11-offloads-trip",
        "A11",
        "TCP's ping-pong with GSO and GRO, and without",
        Stated(
            "figure 4.3",
            "the time falls without GSO and GRO, by the text's first sentence on it",
        ),
        _OFFLOADS,
        Within(
            "time without to with, 5000 B",
            high=0.98,
            says="the time of 5000 bytes without them to that with them",
        ),
        Explanation(
            "A virtual link cuts no frame: with offloads 5000 bytes cross it as one, so they can "
            "only save. Then messages of one frame are alike, and longer ones lose the more.",
            Together(
                (
                    Within("time without to with, 1 B", 0.8, 1.25),
                    Order(("time without to with, 1 B", "time without to with, 60000 B")),
                )
            ),
        ),
        across="bytes",
        up="us one way",
        logarithmic=True,
        drawn=("us, on", "us, off"),
    ),
    Entry(
        "A11-offloads-counted",
        "A11",
        "The processor's work for TCP's ping-pong with GSO and GRO, and without",
        Stated("section 4.4", "the techniques unburden the processor, and so are recommended"),
        GUEST,
        Together(
            (
                Ratio("tcp offloads on 5000", "tcp offloads off 5000", high=0.98),
                Ratio("tcp offloads on 60000", "tcp offloads off 60000", high=0.9),
                Ratio("tcp offloads on 1", "tcp offloads off 1", 0.95, 1.05),
            )
        ),
    ),
    Entry(
        "A11-offloads-bulk",
        "A11",
        "TCP's bulk transfer with GSO and GRO, and without, by size",
        Stated("section 4.4", "the techniques raise the performance of computing"),
        _OFFLOADS,
        Within(
            "rate without to with, 1048576 B",
            high=0.98,
            says="the rate of 1 MiB without them to that with them",
        ),
        across="bytes",
        up="MB/s",
        logarithmic=True,
        drawn=("MB/s, on", "MB/s, off"),
    ),
    Entry(
        "A11-stack-parts",
        "A11",
        "What TCP's stack adds to bare frames",
        Stated(
            "chapters 2 and 4",
            "without offload by the NIC results depend on the software stack alone: the layers "
            "above the frame take a part of each message's time",
        ),
        _OFFLOADS,
        Together(
            (
                Within("stack us, on@1", low=0.0, says="the stack's part of 1 byte, us,"),
                Within("stack us, on@1000", low=0.0, says="that of 1000 bytes"),
                Within("stack us, off@1", low=0.0, says="that of 1 byte without offloads"),
            )
        ),
        across="bytes",
        up="us",
    ),
    Entry(
        "A11-file-servers",
        "A11",
        "A file transfer by stack, on a line of a Gigabit",
        Stated("figure 4.4", "on server nodes stacks differ practically unnoticeably"),
        Measure(
            "stacks",
            {"rate_bits": _GIGABIT, "size": 1048576, "messages": 128, "rounds": 4},
            {"rate_bits": _GIGABIT, "size": 1048576, "messages": 512, "rounds": 9},
        ),
        Within("Beowire to TCP", 0.85, 1.15, says="Beowire's rate to TCP's"),
        Explanation(
            "Each frame of 1500 bytes costs processors that others want, too; TCP hands on frames "
            "of 64 KiB here. With frames of 9000 bytes Beowire fills the line as well.",
            Within("beowire 9000, MB/s", low=100, says="Beowire's MB/s with frames of 9000"),
            FRAMES,
        ),
    ),
    Entry(
        "A11-desktop",
        "A11",
        "The module's ping-pong to the others' where no hardware helps",
        Stated(
            "section 4.4",
            "on desktop nodes the module is better on average than the others, though the "
            "difference is small",
        ),
        GUEST,
        Together(
            (
                Ratio("rdm block 1", "tcp block 1", high=1.0),
                Ratio("rdm block 5000", "tcp block 5000", high=1.0),
                Ratio("datagram block 1", "tcp block 1", high=1.0),
            )
        ),
    ),
    Entry(
        "A11-waiting-5000",
        "A11",
        "Blocking, non-blocking and busy receiving, 5000 bytes",
        Stated(
            "figure 4.5",
            "asking again and again takes less time than sleeping; looking inside the call is as "
            "good as asking from outside",
        ),
        _WAITING,
        Together(
            (
                Order(("tcp spin, 5000 B", "tcp block, 5000 B"), slack=0),
                Order(("beowire spin, 5000 B", "beowire block, 5000 B"), slack=0),
            )
        ),
        Explanation(
            "Whoever spins needs a processor of its own, and other work has it here: then bare "
            "frames lose by spinning as well.",
            Order(("packet block, 5000 B", "packet spin, 5000 B"), slack=0),
        ),
    ),
    Entry(
        "A11-waiting-1",
        "A11",
        "Blocking and busy receiving, 1 byte",
        Stated("section 4.4", "the delay from a packet's coming to its processing falls"),
        _WAITING,
        Together(
            (
                Order(("tcp spin, 1 B", "tcp block, 1 B"), slack=0),
                Order(("beowire spin, 1 B", "beowire block, 1 B"), slack=0),
            )
        ),
        Explanation(
            "Whoever spins needs a processor of its own, and other work has it here: then bare "
            "frames lose by spinning as well.",
            Order(("packet block, 1 B", "packet spin, 1 B"), slack=0),
        ),
    ),
    Entry(
        "A11-waiting-counted",
        "A11",
        "The processor's work of blocking, non-blocking and busy receiving in the module",
        Stated(
            "figure 4.5",
            "a call that sleeps pays for going to sleep and being woken; one that looks does not",
        ),
        GUEST,
        Together(
            (
                Order(("rdm busy 1", "rdm block 1"), slack=0),
                Order(("rdm busy 5000", "rdm block 5000"), slack=0),
                Order(("datagram busy 1", "datagram block 1"), slack=0),
            )
        ),
        Explanation(
            "On the guest's one processor looking is work, too, which is counted; what it saves is "
            "time. Then TCP's polling takes more instructions than its sleeping.",
            Order(("tcp block 1", "tcp poll 1"), slack=0),
        ),
    ),
    Entry(
        "A11-raw-alone",
        "A11",
        "Raw sockets beside the module, without other traffic",
        Stated("section 4.4", "raw sockets show results like the module's"),
        GUEST,
        Together(
            (
                Ratio("raw block 1", "datagram block 1", 0.67, 1.5),
                Ratio("raw block 5000", "datagram block 5000", 0.67, 1.5),
            )
        ),
    ),
    Entry(
        "A11-raw-beside",
        "A11",
        "Raw sockets and the module beside other traffic",
        Stated(
            "section 4.4",
            "beside a file transfer raw sockets are worse, since they get all packets",
        ),
        GUEST,
        Together(
            (
                Within("growth of raw-all", low=5000, says="what bulk adds to a raw socket's trip"),
                Ratio("growth of rdm", "growth of raw-all", high=0.5),
            )
        ),
    ),
    Entry(
        "A11-summary",
        "A11",
        "All variants of the ping-pong together",
        Stated(
            "figure 4.6",
            "the chart of all variants; its values are not in the text: the module busy, then the "
            "module blocking, then TCP, as the sections say",
        ),
        GUEST,
        Together(
            (
                Order(("rdm busy 1", "rdm block 1", "tcp block 1"), slack=0),
                Order(("rdm busy 5000", "rdm block 5000", "tcp block 5000"), slack=0),
            )
        ),
    ),
    Entry(
        "A8-frames",
        "A8",
        "Frames of 9000 bytes to frames of 1500",
        Stated(
            "section 3.4, 5.1",
            "the largest MTU, such as 9 KB, belongs to the method",
            Figures({"MTU": 9000}),
        ),
        FRAMES,
        Together(
            (
                Within("tcp, long frames to short", low=1.0, says="TCP's rate, long to short,"),
                Within("beowire, long frames to short", low=1.0, says="Beowire's"),
            )
        ),
    ),
)
