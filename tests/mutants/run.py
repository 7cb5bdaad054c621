#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Build the engine, or the link emulator's model, with each seeded defect of mutants.toml; some
test must notice each of them.

A defect is tried against the unit tests of its room first and, if it is one of the engine and they
let it pass, against the simulator with fixed seeds. Tests and simulator are compiled once, and for
each mutant the changed file only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("mutants.toml")
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-w", "-fno-strict-aliasing"]
INCLUDE = [f"-I{ROOT / room}" for room in ("engine", "emulator", "hosts/sim", "hosts/user")]
# What of the link emulator only computes: meson.build there has the same list.
MODEL_LIST = re.compile(r"emulator_pure_sources = files\(([^)]*)\)")
SIM_SOURCES = ("sim/*.c", "user/checksum.c", "user/crc32c_*.c")
# Runs of the simulator: scenarios drawn from seeds, and those that bring about what is rare there.
SIM_RUNS = {
    "simulator": ["--seeds", "1-30", "--jobs", "1"],
    "simulator-killed": ["--seeds", "1-2", "--jobs", "1", "--scenario", "killed"],
    "simulator-starve": ["--seeds", "1-8", "--jobs", "1", "--scenario", "starve"],
}
CPU_S = 20  # a program that computes longer hangs; wall time would depend on what else runs
WALL_S = 1200


@dataclass(frozen=True)
class Mutant:
    """A defect: `old`, which occurs once in `file`, becomes `new`."""

    name: str
    file: str
    says: str
    old: str
    new: str

    def text(self) -> str:
        """The changed file. ValueError if the table no longer fits the engine."""
        source = (ROOT / self.file).read_text()
        times = source.count(self.old)
        if times != 1:
            raise ValueError(f"{self.file} contains the text to be changed {times} times, not once")
        return source.replace(self.old, self.new)


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant. `caught_by` is empty when nothing noticed it."""

    name: str
    caught_by: str
    problem: str
    seconds: float

    @property
    def passed(self) -> bool:
        """Was the defect noticed?"""
        return bool(self.caught_by)


class CompileError(Exception):
    """The compiler refused a file; the text is its complaint."""


class StuckError(Exception):
    """A program neither ended nor computed: no verdict."""


def load(path: Path) -> list[Mutant]:
    """Read the table; names must be distinct."""
    with path.open("rb") as file:
        rows = tomllib.load(file)["mutant"]
    mutants = [Mutant(**row) for row in rows]
    names = [mutant.name for mutant in mutants]
    for name in names:
        if names.count(name) > 1:
            sys.exit(f'{path.name}: two mutants are called "{name}"; rename one')
    return mutants


def cc(arguments: Sequence[str]) -> None:
    """Run the compiler."""
    compiler = os.environ.get("CC", "cc")
    done = subprocess.run([compiler, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileError(done.stderr.strip())


@dataclass(frozen=True)
class House:
    """The objects that mutants are mixed with, and the programs made of them."""

    objects: dict[str, Path]
    programs: dict[str, tuple[list[Path], list[str], list[str]]]
    """By name: what else is linked, libraries, arguments."""


class Workshop:
    """Objects of the unchanged rooms, their unit tests and the simulator."""

    def __init__(self, place: Path, jobs: int) -> None:
        self.place = place
        self.houses = {"engine": self._engine(jobs), "emulator": self._emulator(jobs)}

    def _engine(self, jobs: int) -> House:
        engine = self._compile("engine", sorted((ROOT / "engine").glob("*.c")), jobs)
        tests = self._compile("tests", sorted((ROOT / "tests" / "engine").glob("*.c")), jobs)
        sim_sources = sorted(file for each in SIM_SOURCES for file in (ROOT / "hosts").glob(each))
        sim = self._compile("sim", sim_sources, jobs)
        programs = {"unit": (list(tests.values()), ["-lcmocka"], list[str]())}
        if "main.c" in sim:
            for run_name, arguments in SIM_RUNS.items():
                programs[run_name] = (list(sim.values()), [], arguments)
        return House(engine, programs)

    def _emulator(self, jobs: int) -> House:
        listed = MODEL_LIST.search((ROOT / "emulator" / "meson.build").read_text())
        if listed is None:
            raise CompileError("emulator/meson.build no longer lists emulator_pure_sources")
        sources = [ROOT / "emulator" / name for name in re.findall(r"'([^']+)'", listed[1])]
        model = self._compile("emulator", sources, jobs)
        tests = self._compile(
            "tests-emulator", sorted((ROOT / "tests" / "emulator").glob("*.c")), jobs
        )
        return House(model, {"unit": (list(tests.values()), ["-lcmocka", "-lm"], [])})

    def _compile(self, name: str, sources: Sequence[Path], jobs: int) -> dict[str, Path]:
        folder = self.place / name
        folder.mkdir()
        objects = {source.name: folder / f"{source.stem}.o" for source in sources}
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda s: self.compile(s, objects[s.name]), sources))
        return objects

    @staticmethod
    def compile(source: Path, target: Path) -> None:
        """Compile one file, in the folder of which its includes are looked for first."""
        cc([*FLAGS, *INCLUDE, "-c", str(source), "-o", str(target)])

    def try_all(self, house: House, folder: Path, changed: dict[str, Path]) -> tuple[str, str]:
        """Link and run program after program: the first complaint, and who made it ("" if none)."""
        objects = house.objects | changed
        for name, (own, libraries, arguments) in house.programs.items():
            program = folder / name
            cc(["-o", str(program), *map(str, [*own, *objects.values()]), *libraries])
            complaint = run(program, arguments)
            program.unlink()
            if complaint:
                return name, complaint
        return "", ""


def run(program: Path, arguments: Sequence[str]) -> str:
    """What the program complains of, "" if it is content."""
    try:
        done = subprocess.run(
            ["sh", "-c", f'ulimit -t {CPU_S}; exec "$@"', "sh", str(program), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=WALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise StuckError(f"{program.name} waits for something, without computing") from None
    if not done.returncode:
        return ""
    if done.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
        return f"no end within {CPU_S} s of computing"
    output = done.stdout + done.stderr
    failed = re.search(r"\[  (?:FAILED|ERROR) +\] (\w+__\w+)", output)
    if failed:
        return failed[1]
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[0].strip() if lines else f"exit status {done.returncode}"


def examine(workshop: Workshop, mutant: Mutant) -> Verdict:
    """Build and try one mutant."""
    begin = time.monotonic()
    folder = workshop.place / f"mutant-{mutant.name}"
    folder.mkdir()
    caught_by = problem = ""
    try:
        source = folder / Path(mutant.file).name
        source.write_text(mutant.text())
        target = folder / "mutated.o"
        workshop.compile(source, target)
        house = workshop.houses[mutant.file.split("/")[0]]
        who, what = workshop.try_all(house, folder, {source.name: target})
        caught_by = f"{who}: {what}" if who else ""
        problem = "" if who else "nothing noticed it"
    except (ValueError, CompileError, StuckError) as error:
        problem = str(error)
    finally:
        shutil.rmtree(folder)
    return Verdict(mutant.name, caught_by, problem, round(time.monotonic() - begin, 2))


def check_unchanged(workshop: Workshop) -> None:
    """All as it is must pass, or nothing below means anything."""
    for room, house in workshop.houses.items():
        folder = workshop.place / f"unchanged-{room}"
        folder.mkdir()
        who, what = workshop.try_all(house, folder, {})
        if who:
            sys.exit(f"the unchanged {room} already fails ({who}: {what}); mend that first")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--only", metavar="NAME", help="try this mutant only")
    parser.add_argument("--json", action="store_true", help="print results for machines")
    return parser.parse_args()


def report(mutants: Sequence[Mutant], verdicts: Sequence[Verdict], as_json: bool) -> int:
    """Print everything; the exit status."""
    failed = sum(not verdict.passed for verdict in verdicts)
    if as_json:
        rows = [asdict(verdict) | {"passed": verdict.passed} for verdict in verdicts]
        print(json.dumps({"passed": len(rows) - failed, "failed": failed, "mutants": rows}))
        return 1 if failed else 0
    for mutant, verdict in zip(mutants, verdicts, strict=True):
        if verdict.passed:
            print(f"caught   {mutant.name:32} {verdict.caught_by}")
        else:
            print(f"SURVIVED {mutant.name:32} {mutant.says} ({mutant.file}): {verdict.problem}")
    print(f"{len(verdicts) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main() -> int:
    """Try all mutants, or the one asked for."""
    args = arguments()
    mutants = [m for m in load(TABLE) if args.only in (None, m.name)]
    if not mutants:
        sys.exit(f'no mutant is called "{args.only}"; their names stand in {TABLE.name}')
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        try:
            workshop = Workshop(Path(place), args.jobs)
            check_unchanged(workshop)
        except (CompileError, StuckError) as error:
            sys.exit(f"the unchanged sources or their tests cannot be built:\n{error}")
        with ThreadPoolExecutor(args.jobs) as pool:
            verdicts = list(pool.map(lambda m: examine(workshop, m), mutants))
    return report(mutants, verdicts, args.json)


if __name__ == "__main__":
    sys.exit(main())
