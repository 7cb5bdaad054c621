# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""mpi4py's own tests, a file at a time."""

import sys
from pathlib import Path

from case import Case, by_status

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
                        f"{file.stem}$",
                    ],
                    by_status,
                    ranks=ranks,
                    directory=source / "test",
                    limit_s=300.0,
                )
            )
    return made
