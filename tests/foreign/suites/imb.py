# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Intel MPI Benchmarks with their checks of every result."""

import re
import shutil
from pathlib import Path

from case import Case, Verdict

from suites.building import build, wanted

COMPONENTS = {"MPI1": "IMB-MPI1", "NBC": "IMB-NBC", "RMA": "IMB-RMA", "EXT": "IMB-EXT"}
BENCHMARKS = {
    "MPI1": (
        "PingPong PingPing Sendrecv Exchange Allreduce Reduce Reduce_local Reduce_scatter "
        "Allgather Allgatherv Scatter Scatterv Gather Gatherv Alltoall Alltoallv Bcast Barrier"
    ),
    "NBC": (
        "Ibcast Iallgather Iallgatherv Igather Igatherv Iscatter Iscatterv Ialltoall Ialltoallv "
        "Ireduce Ireduce_scatter Iallreduce Ibarrier"
    ),
    "RMA": (
        "Unidir_put Unidir_get Bidir_put Bidir_get One_put_all One_get_all All_put_all "
        "All_get_all Put_local Put_all_local Accumulate Get_accumulate Fetch_and_op "
        "Compare_and_swap Exchange_put Exchange_get"
    ),
    "EXT": "Window Unidir_Get Unidir_Put Bidir_Get Bidir_Put Accumulate",
}

_MACROS = "-DCHECK -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX"
"""Results are checked; the old C++ interface, which warns as it is compiled, stays outside."""


def cases(source: Path, build_dir: Path, compiler: str, long: bool) -> list[Case]:
    """Every benchmark as a test of its own."""
    wanted(source, "src_cpp/Makefile", "the Intel MPI Benchmarks' source")
    log = build_dir / "build.log"
    build_dir.mkdir(parents=True, exist_ok=True)
    copy = build_dir / "src"
    if not copy.exists():
        shutil.copytree(source, copy)
    cxx = compiler.replace("mpicc", "mpicxx")
    made = []
    for part, program in COMPONENTS.items():
        build(
            ["make", program, f"CC={compiler}", f"CXX={cxx}", f"CPPFLAGS={_MACROS}"],
            copy,
            log,
        )
        for name in BENCHMARKS[part].split():
            options = ["-npmin", "4", "-time", "1", "-iter", "20", "-msglog"]
            made.append(
                Case(
                    "imb",
                    f"{part} {name}",
                    [str(copy / program), name, *options, "0:22" if long else "0:18"],
                    judge,
                    ranks=4,
                    limit_s=300.0,
                )
            )
    return made


def judge(status: int, text: str) -> Verdict:
    """A table of which no check found a defect."""
    wrong = re.search(r"wrong result|defect=|Error code|invalid benchmark", text, re.IGNORECASE)
    whole = "All processes entering MPI_Finalize" in text
    return "passed" if status == 0 and whole and not wrong else "failed"
