# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""mpi4py's own tests, a file at a time."""

import re
import sys
from pathlib import Path

from case import Case, Verdict

from suites.building import build, wanted

LEFT_OUT = {
    "test_spawn",
    "test_dynproc",
    "test_io",
    "test_file",
    "test_doc",
    "test_ulfm",
}
"""They start processes, write files, or ask for what no transport carries."""


def cases(source: Path, build_dir: Path, compiler: str, long: bool) -> list[Case]:
    """Its files of tests, each with two ranks, in the long form with four as well."""
    wanted(source, "test/main.py", "mpi4py's source")
    log = build_dir / "build.log"
    python = build_dir / "venv" / "bin" / "python"
    if not any((build_dir / "venv").glob("lib/python*/site-packages/mpi4py/__init__.py")):
        build([sys.executable, "-m", "venv", str(build_dir / "venv")], build_dir, log)
        build(
            [str(python), "-m", "pip", "install", str(source)],
            build_dir,
            log,
            MPICC=compiler,
            CFLAGS="-O0 -g0",
        )
    made = []
    for file in sorted((source / "test").glob("test_*.py")):
        if file.stem in LEFT_OUT:
            continue
        for ranks in (2, 4) if long else (2,):
            made.append(
                Case(
                    "mpi4py",
                    f"{file.stem} {ranks}",
                    [
                        str(python),
                        str(source / "test" / "main.py"),
                        "-i",
                        f"{file.stem}.*",
                    ],
                    judge,
                    ranks=ranks,
                    directory=source / "test",
                    limit_s=300.0,
                )
            )
    return made


def judge(status: int, text: str) -> Verdict:
    """Each rank tells how many tests ran, and how many of these were skipped: some must be left."""
    if status != 0:
        return "failed"
    ran = [int(each) for each in re.findall(r"^Ran (\d+) tests?", text, re.MULTILINE)]
    skipped = [int(each) for each in re.findall(r"^OK .*\bskipped=(\d+)", text, re.MULTILINE)]
    if not sum(ran):
        return "failed"
    return "passed" if sum(ran) > sum(skipped) else "not run"
