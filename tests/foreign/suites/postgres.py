# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PostgreSQL's own regression tests: those of a source tree, by the installed server, client and
runner of the same version; compiled is only the library of functions that the tests load."""

import re
import shutil
import subprocess
from pathlib import Path

from beowire.bench import postgres
from beowire.errors import BeowireError
from case import Case, Verdict
from database import BY_TCP

from suites.building import build, wanted

HERE = Path(__file__).resolve().parents[1]
_RUNNER = "lib/pgxs/src/test/regress/pg_regress"
"""Below the directory of a version."""
_ENDS: dict[str, Verdict] = {"ok": "passed", "FAILED": "failed", "failed": "failed"}


def version(source: Path) -> str:
    """Of the installed PostgreSQL, whose major version must be the source's."""
    wanted(source, "src/test/regress/parallel_schedule", "PostgreSQL's source")
    found = re.search(r"PACKAGE_VERSION='(\d+)", (source / "configure").read_text())
    installed = postgres.programs()
    if postgres.lacking() or installed is None:
        raise BeowireError(postgres.lacking())
    said = subprocess.run(
        [installed / "postgres", "--version"], capture_output=True, text=True, check=True
    ).stdout
    number = re.search(r"[0-9.]+", said)
    if not found or not number or number[0].partition(".")[0] != found[1]:
        raise BeowireError(
            f"{source} is another version than {said.strip()}.", "Name the same major version."
        )
    return f"PostgreSQL {number[0]}"


def cases(source: Path, build_dir: Path, _compiler: str, _long: bool) -> list[Case]:
    """One run of the schedule, whose tests need one another; each test has its own verdict."""
    programs = postgres.programs()
    assert programs is not None
    tests = source / "src" / "test" / "regress"
    log = build_dir / "build.log"
    if not (build_dir / "src" / "include" / "pg_config.h").exists():
        options = ["--without-readline", "--without-zlib"]
        build([str(source / "configure"), *options], build_dir, log)
    build(["make", "-C", "src/backend", "generated-headers"], build_dir, log)
    includes = [build_dir / "src/include", source / "src/include", tests]
    build(
        [
            *("gcc", "-O1", "-fPIC", "-shared", *(f"-I{each}" for each in includes)),
            *("-o", "regress.so", str(tests / "regress.c")),
        ],
        build_dir,
        log,
    )
    runner = programs.parent / _RUNNER
    arguments = [
        *(str(runner), f"--inputdir={tests}", f"--dlpath={build_dir}", f"--bindir={programs}"),
        *(f"--schedule={tests / 'parallel_schedule'}", f"--user={postgres.SUPERUSER}"),
    ]
    for name in ("autoinc.so", "refint.so"):  # of contrib, which is installed
        shutil.copy(programs.parent / "lib" / name, build_dir)
    return [
        Case(
            "postgres",
            "parallel_schedule",
            arguments,
            by_parts,
            limit_s=3600.0,
            parts=tuple(listed((tests / "parallel_schedule").read_text())),
            judge_part=judge_part,
            script=str(HERE / "database.py"),
        )
    ]


def listed(schedule: str) -> list[str]:
    """The tests that a schedule names, in their order."""
    lines = [line.partition("#")[0].strip() for line in schedule.splitlines()]
    return [word for line in lines if line.startswith("test:") for word in line.split()[1:]]


def by_parts(status: int, text: str) -> Verdict:
    """All passed; or some failed, and each says so itself."""
    if status == 0 and re.search(r"^ *All \d+ tests passed", text, re.MULTILINE):
        return "passed"
    return "failed"


def judge_part(name: str, text: str) -> Verdict:
    """What the runner says of one test; silence is a failure, and so is a run without Beowire."""
    if re.search(rf"^{BY_TCP}$", text, re.MULTILINE):
        return "failed"
    said = re.search(rf"^(?:test| {{4,}}) *{re.escape(name)} +\.\.\. (\w+)", text, re.MULTILINE)
    return _ENDS.get(said[1], "failed") if said else "failed"
