# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""MPICH's test/mpi, which runs under any MPI."""

import re
from pathlib import Path

from case import Case, Judge, by_status, ends_badly, no_errors

from suites.building import build, wanted

FOLDERS = (
    "pt2pt",
    "coll",
    "rma",
    "comm",
    "datatype",
    "topo",
    "part",
    "attr",
    "group",
    "info",
    "init",
    "errors/pt2pt",
    "errors/coll",
    "errors/comm",
    "errors/rma",
    "errors/topo",
    "errors/group",
    "errors/attr",
    "errors/datatype",
    "threads/pt2pt",
    "threads/comm",
    "threads/coll",
    "threads/init",
    "threads/rma",
    "threads/util",
)

_JUDGES: dict[str, Judge] = {
    "TestStatus": ends_badly,
    "TestErrFatal": by_status,
    "TestBench": by_status,
}


def cases(source: Path, build_dir: Path, compiler: str, long: bool) -> list[Case]:
    """What the lists of tests in these folders name."""
    wanted(source, "testlist.in", "MPICH's test/mpi")
    log = build_dir / "build.log"
    if not (build_dir / "Makefile").exists():
        if not (source / "configure").exists():
            build(["./autogen.sh"], source, log)
        options = [
            "--enable-strictmpi",
            "--disable-fortran",
            "--disable-cxx",
            "--disable-spawn",
        ]
        build(
            [str(source / "configure"), *options, f"MPICC={compiler}", "CC=gcc"],
            build_dir,
            log,
        )
    for part in ("util", "dtpools"):
        build(["make", "-k", "-j2"], build_dir / part, log)
    made: dict[str, Case] = {}
    for folder in FOLDERS:
        for line in _lines(source, build_dir, folder):
            case = parse(line, folder, build_dir)
            if case is None or (case.ranks > 4 and not long):
                continue
            # Settings of MPICH's own: under another MPI the same test again.
            if "mpich" in compiler or not any(key.startswith("MPIR_") for key in case.environment):
                made.setdefault(case.name, case)
    return list(made.values())


def _lines(source: Path, build_dir: Path, folder: str) -> list[str]:
    for place in (build_dir / folder / "testlist", source / folder / "testlist"):
        if place.exists():
            return place.read_text().splitlines()
    return []


def parse(line: str, folder: str, build_dir: Path) -> Case | None:
    """The test of one line; None for comments, folders, and what strict MPI leaves out."""
    words = line.split("#")[0].split()
    if len(words) < 2 or not words[1].isdigit():
        return None
    program, ranks, *settings = words
    keys = [word.partition("=")[::2] for word in settings]
    single = dict(keys)
    if single.get("strict") == "false" or "xfail" in single or "hasgpu" in single:
        return None
    arguments = [value for key, value in keys if key == "arg"]
    environment = dict(value.partition("=")[::2] for key, value in keys if key == "env")
    limit = single.get("timeLimit", "")
    shown = [*arguments, *(f"{key}={value}" for key, value in environment.items())]
    directory = build_dir / folder
    return Case(
        "mpich",
        " ".join([f"{folder}/{program} {ranks}", *shown]),
        [str(directory / Path(program).name), *arguments],
        _JUDGES.get(single.get("resultTest", ""), no_errors),
        ranks=int(ranks),
        directory=directory,
        limit_s=float(limit) if re.fullmatch(r"\d+", limit) else 180.0,
        memory_bytes=int(float(single.get("mem", 0)) * (1 << 30)),
        environment=environment,
        make=("make", "-s", program),
    )
