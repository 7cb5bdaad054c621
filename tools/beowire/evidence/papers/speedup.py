# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The thesis on faster data transfer in Ethernet clusters (2018): its model of speedup [A10]."""

from beowire.evidence.criterion import Monotone, Order, Ratio, Together, Within
from beowire.evidence.entry import Entry, Measure, Stated
from beowire.evidence.figures import Figures

_LAW = {
    "a": 0.2,
    "nodes": 8,
    "across": (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
    "near_zero": (0.00001, 0.0001, 0.0003, 0.001, 0.003),
}
_CURVES = Measure("law", _LAW, _LAW)
_WAITS = {"precision": 1e-6, "slice": 10000, "wait_us": 4000, "delay_ns": 2_000_000}

ENTRIES = (
    Entry(
        "A10-amdahl",
        "A10",
        "Speedup by Amdahl's law, a serial share of 0.2",
        Stated(
            "figure 1.6",
            "S(N) for a = 0.2: it rises with N and stays below 1 / a = 5; our copy has no drawing, "
            "the values are those of its formula",
            Figures({"limit": 5.0}, {"Amdahl": ((1, 1.0), (8, 10 / 3), (64, 64 / 13.6))}),
        ),
        _CURVES,
        Together(
            (
                Monotone("Amdahl", rises=True, factor=4, slack=0),
                Within("Amdahl@8", 3.333, 3.334),
                Within("Amdahl@most", 4.5, 5.0),
            )
        ),
        across="N",
        up="speedup",
    ),
    Entry(
        "A10-against-n",
        "A10",
        "Speedup against the communication parameter, a = 0.2, N = 8",
        Stated(
            "figure 1.8",
            "S falls with n, and a small n is already felt; values by its formula",
            Figures(curves={"against n": ((0, 10 / 3), (0.01, 8 / 7.52))}),
        ),
        _CURVES,
        Together(
            (
                Monotone("against n", rises=False, factor=3, slack=0),
                Ratio("against n@0.001", "against n@0", 0.8, 0.9),
            )
        ),
        across="n",
        up="speedup",
    ),
    Entry(
        "A10-several",
        "A10",
        "Speedup against N for several n near 0",
        Stated(
            "figure 1.9",
            "a small fall of n raises the speedup at each N, the best N and the best speedup; "
            "values by its formula, for n of ours",
            Figures(curves={"best N": ((0.0001, 15.87), (0.001, 7.37), (0.003, 5.11))}),
        ),
        _CURVES,
        Together(
            (
                Monotone("best N", rises=False, factor=5, slack=0),
                Monotone("best S", rises=False, factor=1.5, slack=0),
                Order(("n = 0.003@8", "n = 0.001@8", "n = 0.0003@8", "n = 0.0001@8"), slack=0),
                Within("best N@0.001", 7.3, 7.45),
            )
        ),
        across="N",
        up="speedup",
        drawn=("n = 1e-05", "n = 0.0001", "n = 0.0003", "n = 0.001", "n = 0.003"),
    ),
    Entry(
        "A10-optimum",
        "A10",
        "The best N and the best speedup in closed form",
        Stated(
            "section 1.2",
            "N_opt = ((1 - a) / (2 n))^(1/3), S(N_opt) = 1 / (a + 3 (1 - a) / (2 N_opt))",
            Figures({"N_opt off": 0.0, "S(N_opt) off": 0.0}),
        ),
        _CURVES,
        Together(
            (
                Within("N_opt off", high=0.1, says="what a search finds for N_opt, less the form,"),
                Within("S(N_opt) off", high=0.001, says="the same of S(N_opt), as a share,"),
            )
        ),
    ),
    Entry(
        "A10-measured",
        "A10",
        "Speedup measured over a fast network and over a slow one",
        Stated(
            "section 1.2",
            "a faster network lowers n: the speedup is greater at each number of nodes",
        ),
        Measure(
            "speedup",
            {**_WAITS, "nodes": 4, "rounds": 2},
            {**_WAITS, "nodes": 6, "rounds": 5},
        ),
        Together(
            (
                Monotone("S, fast network", rises=True, factor=2),
                Order(("S, slow network@3", "S, fast network@3")),
                Order(("S, slow network@4", "S, fast network@4")),
            )
        ),
        across="N",
        up="speedup",
    ),
)
