# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The plug-in by which NCCL uses libfabric (aws-ofi-nccl), in its variant without CUDA, driven by
a program in the part of NCCL, with memory of the host."""

from pathlib import Path

from case import Case, by_status

from suites.building import build, wanted
from suites.fabtests import environment

CASES = ("properties", "sizes", "many", "again", "unfinished")
DRIVER = Path(__file__).parents[1] / "ncclnet.c"
_HEADERS = "3rd-party/nccl/neuron/include"


def cases(source: Path, build_dir: Path, prefix: str, _long: bool) -> list[Case]:
    """What the program knows: a listener on one node, the other side on the other."""
    wanted(source, "src/nccl_ofi_sendrecv.cpp", "aws-ofi-nccl's source")
    log = build_dir / "build.log"
    if not (build_dir / "Makefile").exists():
        if not (source / "configure").exists():
            build(["./autogen.sh"], source, log)
        options = ["--enable-neuron", "--disable-tests", f"--with-libfabric={prefix}"]
        build([str(source / "configure"), *options], build_dir, log)
    build(["make", "-j2"], build_dir, log)
    program = build_dir / "ncclnet"
    compiler = ["cc", "-O1", "-g", f"-I{source / _HEADERS}"]
    build([*compiler, "-o", str(program), str(DRIVER), "-ldl"], build_dir, log)
    plugin = build_dir / "src" / ".libs" / "libnccom-net.so"
    return [
        Case(
            "aws-ofi-nccl",
            name,
            [str(program), str(plugin), name],
            by_status,
            environment={**environment(Path(prefix)), "OFI_NCCL_PROTOCOL": "SENDRECV"},
        )
        for name in CASES
    ]
