# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""HPC Challenge: HPL, a distributed Fourier transform, the transposition of a matrix, and messages
round a ring, in one job."""

import re
from statistics import median

from beowire.bench.apps.application import Application, Figure, Files, Outcome, number
from beowire.bench.hpcc_input import hpcc_input
from beowire.errors import BeowireError

SIZE = 2400
BLOCK = 80
TRANSPOSED = (1200, 1200, 1200, 1200, 1200)
"""Sizes of more transpositions: one takes a few milliseconds."""


def files(ranks: int) -> Files:
    return {"hpccinf.txt": hpcc_input(ranks, (SIZE,), BLOCK, TRANSPOSED)}


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
