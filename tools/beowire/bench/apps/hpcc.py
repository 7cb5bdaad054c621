# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""HPC Challenge: HPL, a distributed Fourier transform, the transposition of a matrix, and messages
round a ring, in one job."""

import re
from statistics import median

from beowire.bench.apps.application import Application, Figure, Files, Outcome, number
from beowire.errors import BeowireError

SIZE = 2400
BLOCK = 80
TRANSPOSED = (1200, 1200, 1200, 1200, 1200)
"""Sizes of more transpositions: one takes a few milliseconds."""


def input_text(ranks: int) -> str:
    """The layout is fixed: a value and a remark on each line."""
    rows = max(each for each in range(1, int(ranks**0.5) + 1) if ranks % each == 0)
    lines = [
        "HPLinpack benchmark input file",
        "Beowire",
        "HPL.out      output file name (if any)",
        "8            device out",
        "1            # of problems sizes (N)",
        f"{SIZE}         Ns",
        "1            # of NBs",
        f"{BLOCK}           NBs",
        "0            PMAP process mapping",
        "1            # of process grids (P x Q)",
        f"{rows}            Ps",
        f"{ranks // rows}            Qs",
        "16.0         threshold",
        "1            # of panel fact",
        "2            PFACTs",
        "1            # of recursive stopping criterium",
        "4            NBMINs",
        "1            # of panels in recursion",
        "2            NDIVs",
        "1            # of recursive panel fact.",
        "1            RFACTs",
        "1            # of broadcast",
        "1            BCASTs",
        "1            # of lookahead depth",
        "1            DEPTHs",
        "2            SWAP",
        "64           swapping threshold",
        "0            L1 in form",
        "0            U  in form",
        "1            Equilibration",
        "8            memory alignment in double",
        "##### ignored #####",
        f"{len(TRANSPOSED)}            Number of additional problem sizes for PTRANS",
        f"{' '.join(map(str, TRANSPOSED))} values of N",
        "0            number of additional blocking sizes for PTRANS",
        "40           values of NB",
    ]
    return "\n".join(lines) + "\n"


def files(ranks: int) -> Files:
    return {"hpccinf.txt": input_text(ranks)}


_TRANSPOSITION = re.compile(
    r"^WALL\s+\d+\s+\d+\s+\d+\s+\d+\s+\d+\s+\d+\s+\S+\s+(\w+)\s+([\d.]+)\s", re.MULTILINE
)


def _summary(name: str, text: str) -> float:
    return number(rf"^{name}=(\S+)$", text, name)


def read(text: str) -> Outcome:
    """hpcc's report. It checks its results itself; their residuals hang on the order of sums."""
    if _summary("Success", text) != 1:
        raise BeowireError(f"hpcc reports a failed test:\n{text[-2000:]}")
    passed = re.findall(r"^\|\|Ax-b.*=\s*([\d.e+-]+)\s*\.+ (PASSED|FAILED)", text, re.MULTILINE)
    rows = _TRANSPOSITION.findall(text)
    verdicts = [verdict for _, verdict in passed] + [verdict for verdict, _ in rows]
    if not passed or not rows or set(verdicts) != {"PASSED"}:
        raise BeowireError(f"hpcc's HPL or PTRANS did not pass its check:\n{text[-2000:]}")
    return Outcome(
        {
            "hpcc-hpl": _summary("HPL_time", text),
            # Operations by rate: what a transform or a transposition of one size takes.
            "hpcc-fft": 1 / _summary("MPIFFT_Gflops", text),
            "hpcc-ptrans": median(1 / float(rate) for _, rate in rows),
            "hpcc-ring": _summary("RandomlyOrderedRingLatency_usec", text),
        },
        {
            "norm of HPL's solution": _summary("HPL_XnormI", text),
            "errors of RandomAccess": _summary("MPIRandomAccess_Errors", text),
            "residual of PTRANS": _summary("PTRANS_residual", text),
            "elements of the transform": _summary("MPIFFT_N", text),
        },
    )


APPLICATION = Application(
    name="hpcc",
    about=f"HPC Challenge: HPL (N = {SIZE}), FFT, PTRANS, ring",
    figures=(
        Figure("hpcc-hpl", "s"),
        Figure("hpcc-fft", "s/Gflop"),
        Figure("hpcc-ptrans", "s/GB"),
        Figure("hpcc-ring", "us"),
    ),
    read=read,
    tolerances={
        "norm of HPL's solution": 1e-5,
        "errors of RandomAccess": 0,
        "residual of PTRANS": 0,
        "elements of the transform": 0,
    },
    program="hpcc",
    packages=("hpcc",),
    files=files,
    report="hpccoutf.txt",
)
