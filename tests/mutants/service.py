#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Run tests of beowired with each seeded defect of service.toml; they must fail.

For each defect the service is compiled with the changed file, and the tests that the defect names
start that program; for a defect of libbeowire's side of it, a client is compiled. A changed unit of
systemd is installed with the build's service. The same tests
must pass with the sources as they are. It takes root, and the Python in which the tools are
installed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

from run import CHANGED_MOST, StuckError, Verdict, report, sample_now

from tools import FAILED, PASSED, PYTEST, Defect, execute, summary

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("service.toml")
sys.path.insert(0, str(ROOT / "tests" / "service"))
PROGRAM, CLIENT = "BEOWIRE_TEST_SERVICE", "BEOWIRE_TEST_ACTOR"
"""As in tests/service/served.py."""
UNIT = "BEOWIRE_TEST_UNIT"
"""As in tests/service/test_unit.py."""

from compiled import compile_actor, compile_service  # noqa: E402


def load(path: Path) -> list[Defect]:
    """Read the table."""
    rows = tomllib.loads(path.read_text())["mutant"]
    return [Defect(**row | {"tests": tuple(row["tests"])}) for row in rows]


def run_tests(tests: Sequence[str], place: Path, named: dict[str, str]) -> tuple[int, str]:
    """Exit status of pytest, and what it said."""
    words = [*PYTEST, "-q", "--tb=no", "-rfEs"]
    words += [f"--basetemp={place / 'pytest'}", *(str(ROOT / test) for test in tests)]
    return execute(words, {**os.environ, **named}, place)


def compiled(place: Path, defect: Defect | None) -> tuple[str, dict[str, str]]:
    """What the compiler complains of, and the variables that name what was made."""
    program = place / "made"
    if defect is None:
        return compile_service(program, ["-O1"], {}), {PROGRAM: str(program)}
    changed = place / Path(defect.file).name
    changed.write_text(defect.text())
    if defect.file.endswith(".service"):
        changed.write_text(changed.read_text().replace("@sbindir@", "/usr/local/sbin"))
        return "", {UNIT: str(changed)}
    if defect.file.startswith(("service/", "common/")):
        problem = compile_service(program, ["-O1"], {changed.name: changed})
        return problem, {PROGRAM: str(program)}
    return compile_actor(program, changed), {CLIENT: str(program)}


def examine(defect: Defect, place: Path) -> Verdict:
    """Try one defect."""
    begin = time.monotonic()
    place.mkdir()
    caught_by = problem = ""
    try:
        problem, named = compiled(place, defect)
        for test in () if problem else defect.tests:
            status, said = run_tests([test], place, named)
            failed = summary(said, "FAILED|ERROR")
            if status != FAILED or not failed:
                problem = f"{test} passes" if status == PASSED else said.strip()[-300:]
                break
            caught_by = failed[0]
    except (ValueError, StuckError) as error:
        problem = str(error)
    return Verdict(defect.name, "" if problem else caught_by, problem, time.monotonic() - begin)


def check_unchanged(defects: Sequence[Defect], place: Path) -> None:
    """All tests pass with the service as it is, and none is skipped."""
    place.mkdir()
    problem, named = compiled(place, None)
    tests = sorted({test for defect in defects for test in defect.tests})
    status, said = (FAILED, problem) if problem else run_tests(tests, place, named)
    wrong = summary(said, "FAILED|ERROR|SKIPPED")
    if status != PASSED or wrong:
        told = "\n".join(wrong) or said
        sys.exit(f"with the unchanged service not all of the tests pass; fix that first:\n{told}")


def main() -> int:
    """Try all defects, or those asked for, one after another: each test has its own network."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--only", metavar="NAME[,NAME]", help="try these defects only")
    parser.add_argument("--sample", type=int, metavar="N", help="as of run.py")
    parser.add_argument(
        "--changed-most",
        type=int,
        default=CHANGED_MOST,
        metavar="N",
        help="of a sample, so many of the files that changed last (%(default)s)",
    )
    parser.add_argument("--list", action="store_true", help="tell which, and try none")
    parser.add_argument("--json", action="store_true", help="print results for machines")
    args = parser.parse_args()
    every = load(TABLE)
    only = set(args.only.split(",")) if args.only else {defect.name for defect in every}
    defects = [defect for defect in every if defect.name in only]
    if len(defects) < len(only):
        sys.exit(f"no such defect; their names stand in {TABLE}")
    if args.sample:
        of_turn = sample_now(defects, args.sample, args.changed_most)
        chosen = {mutant.name for mutant in of_turn}
        defects = [defect for defect in defects if defect.name in chosen]
        print(f"{len(defects)} of {len(every)} defects are tried", file=sys.stderr)
    if args.list:
        print("\n".join(defect.name for defect in defects))
        return 0
    with tempfile.TemporaryDirectory(prefix="service-") as name:
        place = Path(name)
        check_unchanged(defects, place / "unchanged")
        verdicts = [examine(defect, place / defect.name) for defect in defects]
    return report(defects, verdicts, args.json)


if __name__ == "__main__":
    sys.exit(main())
