#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Run tests of the tools with each seeded defect of tools.toml; they must fail.

The package is copied into a directory of its own for each defect, which stands before all others
in PYTHONPATH, and so is the dissector, whose tests are told where it lies. For a defect of the
program behind `beowire info` that is compiled, and takes its place in a copy of the build's
directory. A defect names the tests that must notice it, and only these run; the same tests must
pass with an unchanged copy. It takes the Python in which the tools are installed.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from beowire import places
from run import (
    FLAGS,
    INCLUDE,
    CompileError,
    Mutant,
    StuckError,
    Verdict,
    cc,
    report,
    sample_now,
)

ROOT = Path(__file__).resolve().parents[2]
PACKAGE, DISSECTOR = Path("tools/beowire"), Path("tools/wireshark")
INFO = Path("programs/info")
"""The C program behind `beowire info`."""
COPIES = {PACKAGE: "package/beowire", DISSECTOR: "wireshark", INFO: "info"}
"""What defects are of, and where its copy lies."""
DISSECTOR_VARIABLE = "BEOWIRE_TEST_DISSECTOR"
"""As in tests/wireshark/tshark.py."""
INFO_PROGRAM = "programs/beowire-info"
"""As places.product() has it."""
LIBRARIES = (
    "hosts/user/libbeowire-user.a",
    "engine/libbeowire-engine.a",
    "common/libbeowire-common.a",
    "common/libbeowire-keyed.a",
)
"""Of the build, for that program."""
TABLE = Path(__file__).with_name("tools.toml")
CPU_S = 120  # a process that computes longer hangs; wall time would depend on what else runs
WALL_S = 900
PYTEST = [sys.executable, "-P", "-m", "pytest", "-c", str(ROOT / "tools" / "pyproject.toml")]
PYTEST += ["--rootdir", str(ROOT), "-p", "no:cacheprovider"]
# To look for plugins takes longer than most of the tests.
PYTEST += ["--disable-plugin-autoload", "-p", "pytest_timeout"]
# Exit statuses of pytest.
PASSED, FAILED = 0, 1


@dataclass(frozen=True)
class Defect(Mutant):
    """A defect of the tools: in Python `function` may be NAME or CLASS.NAME, in C it is NAME;
    without one, `old` stands once in the file."""

    tests: tuple[str, ...] = ()
    """Each must fail by it: FILE::TEST of pytest, below tests/."""

    def _text_of_function(self, source: str) -> str:
        if not self.file.endswith(".py"):
            return super()._text_of_function(source)
        lines = source.splitlines(keepends=True)
        first, last = self._lines(source)
        words = r"\s+".join(re.escape(word) for word in self.old.split())
        body = "".join(lines[first:last])
        changed, times = re.subn(words, lambda _: self.new, body)
        if times != 1:
            raise ValueError(f"{self.function} contains the text {times} times, not once")
        return "".join([*lines[:first], changed, *lines[last:]])

    def _lines(self, source: str) -> tuple[int, int]:
        """Those of the function: the first, and the one behind the last, counted from 0."""
        inside: list[ast.stmt] = ast.parse(source).body
        for name in self.function.split("."):
            for each in inside:
                if isinstance(each, ast.FunctionDef | ast.ClassDef) and each.name == name:
                    found = each
                    break
            else:
                raise ValueError(f"{self.file} has no {self.function} any more")
            inside = found.body
        return found.lineno - 1, found.end_lineno or found.lineno


def load(path: Path) -> list[Defect]:
    """Read the table; names must be distinct, and each defect has tests."""
    rows = tomllib.loads(path.read_text())["mutant"]
    defects = [Defect(**row | {"tests": tuple(row["tests"])}) for row in rows]
    for name, times in Counter(defect.name for defect in defects).items():
        if times > 1:
            sys.exit(f'two defects are called "{name}"; rename one')
    for defect in defects:
        if not defect.tests or room_of(defect) is None:
            rooms = ", ".join(map(str, COPIES))
            sys.exit(f'"{defect.name}" needs tests, and a file of one of {rooms}')
    return defects


def room_of(defect: Defect) -> Path | None:
    """What it is of; None: of nothing that is tried here."""
    file = Path(defect.file)
    return next((room for room in COPIES if file.is_relative_to(room)), None)


def copy(place: Path, room: Path | None, defect: Defect | None = None) -> None:
    """Fills a directory with copies, changed or not, for tests of a room, and makes room for what
    the tests write."""
    for source, name in COPIES.items():
        shutil.copytree(ROOT / source, place / name)
    for name in ("tmp", "state"):
        (place / name).mkdir(mode=0o700)
    if defect is not None:
        change(place, defect)
    if room == INFO:
        build_info(place)


def change(place: Path, defect: Defect) -> None:
    """Changes the copy. SyntaxError if it cannot be read any more; C is left to the compiler."""
    room = room_of(defect)
    assert room is not None
    file = place / COPIES[room] / Path(defect.file).relative_to(room)
    file.write_text(defect.text())
    if file.suffix == ".py":
        ast.parse(file.read_text())
    elif file.suffix == ".lua":
        words = ["tshark", "-X", f"lua_script:{file}", "-v"]
        _, said = execute(words, dict(os.environ), place)
        if wrong := re.search(r"Lua: (syntax error.*)", said):
            raise SyntaxError(wrong[1])
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()


def build_info(place: Path) -> None:
    """Compiles the copy of the program into place/build, which has all else that the build has."""
    there, here = places.build_dir().resolve(), place / "build"
    own = there / INFO_PROGRAM
    for folder in (there, own.parent):
        (here / folder.relative_to(there)).mkdir()
        for each in folder.iterdir():
            if each not in (own, own.parent):
                (here / each.relative_to(there)).symlink_to(each)
    sources = sorted((place / COPIES[INFO]).glob("*.c"))
    words = [*FLAGS, *INCLUDE, '-DINFO_VERSION="test"', "-fno-lto", *map(str, sources)]
    words += ["-Wl,--start-group", *(str(there / name) for name in LIBRARIES), "-Wl,--end-group"]
    cc([*words, "-lsodium", "-lpthread", "-o", str(here / INFO_PROGRAM)])


def environment(place: Path) -> dict[str, str]:
    """The variables of the tests, which have the copies in `place`: all that they write lies there,
    too."""
    build = place / "build"
    changed = {"BEOWIRE_BUILD": str(build)} if build.exists() else {}
    changed |= {
        "PYTHONPATH": str((place / COPIES[PACKAGE]).parent),
        DISSECTOR_VARIABLE: str(place / COPIES[DISSECTOR]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "BEOWIRE_ROOT": str(ROOT),
        "BEOWIRE_STATE": str(place / "state"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(place / "hypothesis"),
        "TMPDIR": str(place / "tmp"),
    }
    dropped = ("BEOWIRE_TEST_LONG", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | changed


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))


def execute(words: Sequence[str], variables: dict[str, str], cwd: Path) -> tuple[int, str]:
    """The status of a command, which leaves no process, and what it said."""
    child = subprocess.Popen(
        words,
        cwd=cwd,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=_limited,
    )
    try:
        said, _ = child.communicate(timeout=WALL_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        raise StuckError(f"the tests did not end within {WALL_S} s") from None
    return child.returncode, said


def run_tests(tests: Sequence[str], place: Path) -> tuple[int, str]:
    """Exit status of pytest, and what it said."""
    words = [*PYTEST, "-q", "--tb=no", "-rfEs"]
    words += [f"--basetemp={place / 'tmp' / 'pytest'}", *(str(ROOT / test) for test in tests)]
    return execute(words, environment(place), place)


def summary(said: str, kinds: str) -> list[str]:
    """The lines of pytest's summary of these kinds, such as FAILED; files as tests/..."""
    lines = [line for line in said.splitlines() if re.match(rf"({kinds}) ", line)]
    return [re.sub(r"^(\w+) [./]\S*?/(tests/)", r"\1 \2", line) for line in lines]


def check_unchanged(defects: Sequence[Defect], place: Path) -> None:
    """A copy as it is is what the tests import, and all of them pass with it; none is skipped."""
    for room in sorted({room_of(defect) or PACKAGE for defect in defects}):
        of_room = [defect for defect in defects if room_of(defect) == room]
        check_room(room, of_room, place / room.name)


def check_room(room: Path, defects: Sequence[Defect], place: Path) -> None:
    """The same for the tests of one room."""
    copy(place, room)
    where = [sys.executable, "-P", "-c", "import beowire; print(beowire.__file__)"]
    _, said = execute(where, environment(place), place)
    if not Path(said.strip()).is_relative_to(place / COPIES[PACKAGE]):
        sys.exit(f"the tests would not import the copy of the package: {said.strip()}")
    tests = sorted({test for defect in defects for test in defect.tests})
    status, said = run_tests(tests, place)
    wrong = summary(said, "FAILED|ERROR|SKIPPED")
    if status != PASSED or wrong:
        told = "\n".join(wrong) or said
        sys.exit(f"with the unchanged tools not all of the tests pass; fix that first:\n{told}")


def noticed(defect: Defect, place: Path) -> tuple[str, str]:
    """By what the defect was noticed, "" if by nothing, and why then."""
    copy(place, room_of(defect), defect)
    found = []
    for test in defect.tests:
        shutil.rmtree(place / "tmp")
        (place / "tmp").mkdir(mode=0o700)
        status, said = run_tests([test], place)
        failed = summary(said, "FAILED|ERROR")
        if status == PASSED:
            return "", f"{test} passes"
        # A package that cannot be imported is no defect that a test noticed.
        if status != FAILED or not failed or "ImportError while loading" in said:
            return "", f"{test}: {said.strip()[-300:]}"
        found.append(failed[0])
    return "; ".join(found), ""


def examine(defect: Defect, place: Path) -> Verdict:
    """Try one defect."""
    begin = time.monotonic()
    place.mkdir()
    caught_by = problem = ""
    try:
        caught_by, problem = noticed(defect, place)
    except (ValueError, SyntaxError, CompileError, StuckError) as error:
        problem = str(error)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return Verdict(defect.name, caught_by, problem, round(time.monotonic() - begin, 2))


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--table", type=Path, default=TABLE, metavar="FILE")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--only", metavar="NAME[,NAME]", help="try these defects only")
    parser.add_argument(
        "--sample",
        type=int,
        metavar="N",
        help="try those of the files that changed last, and of the others every Nth, "
        "which differ from commit to commit",
    )
    parser.add_argument("--json", action="store_true", help="print results for machines")
    return parser.parse_args()


def main() -> int:
    """Try all defects, or those asked for."""
    args = arguments()
    every = load(args.table)
    only = set(args.only.split(",")) if args.only else {defect.name for defect in every}
    defects = [defect for defect in every if defect.name in only]
    if len(defects) < len(only):
        unknown = ", ".join(sorted(only - {defect.name for defect in every}))
        sys.exit(f'no defect is called "{unknown}"; their names stand in {args.table}')
    if args.sample:
        chosen = {mutant.name for mutant in sample_now(defects, args.sample)}
        defects = [defect for defect in defects if defect.name in chosen]
        print(f"{len(defects)} of {len(every)} defects are tried", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="tools-") as name:
        place = Path(name)
        (place / "unchanged").mkdir()
        try:
            check_unchanged(defects, place / "unchanged")
        except (CompileError, StuckError) as error:
            sys.exit(f"with the unchanged tools {error}")
        with ThreadPoolExecutor(args.jobs) as pool:
            verdicts = list(pool.map(lambda d: examine(d, place / d.name), defects))
    return report(defects, verdicts, args.json)


if __name__ == "__main__":
    sys.exit(main())
