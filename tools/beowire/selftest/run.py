# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs every test of the project: Meson those that are compiled, pytest those in Python.

What a runner was to run and did not is a failure, whatever the runner itself says.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from beowire import places
from beowire.errors import BeowireError
from beowire.selftest.journal import Journal
from beowire.selftest.reports import Case, read_junit
from beowire.terminal import note

_WORKERS = 4
"""More than two processors, as most tests wait most of the time."""
_COMPILED = 4
"""Compiled tests at a time: many wait, and those that are given a time (fuzz targets) take it
together."""
_APART = 3
"""Of tests that need the machine nearly to themselves: most of the time they wait for lines."""
SIDE_BY_SIDE = ("--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0")
"""How: a file's tests share what they have made, and files begin in the order of schedule.toml. A
worker that dies is not replaced, as the next would die of the same test."""
_NONE_FOUND = 5
"""Pytest's exit status when no test was chosen."""
_LONG = "long"
"""The suite of Meson's, and the marker of pytest's, of tests that take hours."""


@dataclass(frozen=True)
class Chosen:
    """Which of all tests run."""

    long: bool = False
    """Also those that take hours."""
    number: int = 1
    """Of the part, from 1 to `parts`."""
    parts: int = 1
    resume: bool = False
    """Without what passed in a run of the same choice that was ended."""

    def journal(self) -> Journal:
        """Of a run of these."""
        choice = f"{'--long ' if self.long else ''}--part {self.number}/{self.parts}"
        return Journal(places.build_dir(), choice)

    def environment(self) -> dict[str, str]:
        """For whoever runs them; tests/conftest.py reads it."""
        return {
            "BEOWIRE_CONFIG": "off",  # settings of this machine are none of the tests'
            **os.environ,
            "BEOWIRE_TEST_LONG": "1" if self.long else "",
            "BEOWIRE_TEST_PART": f"{self.number}/{self.parts}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def part(text: str) -> tuple[int, int]:
    """K and N of "K/N"."""
    found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
    number, parts = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= parts:
        raise BeowireError(
            f"--part {text} is no part.", "Write K/N with K from 1 to N, such as --part 2/5."
        )
    return number, parts


def logs() -> list[Path]:
    """The JUnit files that runs leave: of the compiled tests, and of those in Python."""
    build = places.build_dir()
    names = ["meson-logs/testlog.junit.xml", "pytest.junit.xml", "pytest-alone.junit.xml"]
    return [build / each for each in names]


def run_all(chosen: Chosen) -> list[Case]:
    """Every test: those that bear company side by side, then the others three at a time. Those that
    take hours are not of that kind, and run one after another."""
    journal = chosen.journal()
    passed = journal.begin(chosen.resume, passed_compiled())
    _results().unlink(missing_ok=True)
    _forget()
    _compile_tools()
    with tempfile.TemporaryFile("w+") as printed:
        compiled = _Meson(chosen, printed, passed)
        told_length(compiled.wanted, journal)
        try:
            compile_tests(chosen)
            status, cases = _pytest(chosen, ["tests"], "not alone", _WORKERS, journal)
            compiled.wait()
        finally:
            compiled.end()
        printed.seek(0)
        shutil.copyfileobj(printed, sys.stdout)
    cases += compiled.cases()
    workers = 0 if chosen.long else _APART
    alone, more = _pytest(chosen, _files_apart(chosen), "alone", workers, journal)
    if status == alone == _NONE_FOUND and chosen.parts == 1 and not passed:
        cases.append(Case("the tests in Python (pytest)", "failed", "there are none"))
    journal.keep_times(passed_compiled())
    ran = journal.ran()
    return cases + more + [Case(name, "passed") for name in passed if name not in ran]


def _results() -> Path:
    """Where Meson tells of each test as it ends."""
    return logs()[0].with_name("testlog.json")


def _compile_tools() -> None:
    """Once, for the many commands that tests start, which keep nothing of the kind themselves."""
    command = [sys.executable, "-P", "-m", "compileall", "-q", str(places.root() / "tools/beowire")]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compile_tests(chosen: Chosen) -> None:
    """Once, for all workers: each reads all tests, and rewriting their assertions takes longer than
    the rest of that."""
    environment = chosen.environment()
    del environment["PYTHONDONTWRITEBYTECODE"]
    command = [*_command(), "--collect-only", "-q", str(places.root() / "tests")]
    quiet = subprocess.DEVNULL
    subprocess.run(
        command, check=False, cwd=places.root(), env=environment, stdout=quiet, stderr=quiet
    )


def passed_compiled() -> dict[str, float]:
    """The tests of Meson's that passed when it ran last, and their seconds."""
    log = _results()
    lines = log.read_text().rpartition("\n")[0].splitlines() if log.exists() else []
    rows = [row for row in map(json.loads, lines) if row["result"] in ("OK", "EXPECTEDFAIL")]
    return {row["name"].split(" / ")[-1]: float(row["duration"]) for row in rows}


def told_length(names: list[str], journal: Journal) -> None:
    """Says how long the compiled tests will take; those in Python say it themselves."""
    known = json.loads(journal.times.read_text())
    seconds = sum(known.get(name, 0.0) for name in names)
    new = sum(name not in known for name in names)
    note(
        f"{len(names)} compiled tests: about {seconds / 60:.0f} min one after another, as "
        f"they took last; {new} have not run here"
    )


def _files_apart(chosen: Chosen) -> list[str]:
    """Where the tests are that need the machine nearly to themselves: each worker reads all that it
    is given, which takes seconds. Long tests are in any file, and parts are parts of all."""
    if chosen.long or chosen.parts > 1:
        return ["tests"]
    schedule = tomllib.loads((places.root() / "tests" / "schedule.toml").read_text())
    return list(schedule["alone"])


def run_some(chosen: Chosen, paths: list[str]) -> list[Case]:
    """The tests in Python in these files and folders, one after another."""
    _forget()
    status, cases = _pytest(chosen, paths)
    if status == _NONE_FOUND:
        cases.append(Case("the tests in Python (pytest)", "failed", "there are none"))
    return cases


def _forget() -> None:
    """What an earlier run has left must not be taken for this one's."""
    for log in logs():
        log.unlink(missing_ok=True)


class _Meson:
    """A run of the compiled tests, which prints to a file meanwhile."""

    def __init__(self, chosen: Chosen, printed: TextIO, passed: Iterable[str] = ()) -> None:
        self._build = places.build_dir()
        self._log = logs()[0]
        self._results = _results()
        self._results.unlink(missing_ok=True)
        self._meson = places.program("meson", "meson")
        before = set(passed)
        self.wanted = [name for name in self._names(chosen) if name not in before]
        command = [self._meson, "test", "-C", str(self._build), "--no-rebuild"]
        command += ["--num-processes", str(_COMPILED)]
        command += ["--print-errorlogs", "--timeout-multiplier", "20" if chosen.long else "3"]
        # Without a name Meson would run all.
        command += self.wanted or ["--list"]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            env=chosen.environment(),
        )

    def _names(self, chosen: Chosen) -> list[str]:
        """Of the tests that are to run."""
        listed = subprocess.run(
            [self._meson, "introspect", str(self._build), "--tests"],
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        names = [
            str(test["name"])
            for test in json.loads(listed.stdout)
            if chosen.long or not any(suite.endswith(f":{_LONG}") for suite in test["suite"])
        ]
        return sorted(names)[chosen.number - 1 :: chosen.parts]

    def wait(self) -> None:
        """Until all have run."""
        self._process.wait()

    def end(self) -> None:
        """At once, if they have not."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()

    def cases(self) -> list[Case]:
        """What became of them."""
        lines = self._results.read_text().splitlines() if self._results.exists() else []
        # Its log puts the suites before the name.
        told = {row["name"].split(" / ")[-1]: row["result"] for row in map(json.loads, lines)}
        if not self.wanted:
            return []
        cases = counted(self._log, self._process.returncode, "the compiled tests (meson test)")
        return cases + without_verdict(self.wanted, told)


_GOOD = ("OK", "EXPECTEDFAIL", "SKIP")
_IN_JUNIT = ("FAIL", "ERROR")


def without_verdict(wanted: Iterable[str], told: dict[str, str]) -> list[Case]:
    """Tests of Meson's that failed in a way its JUnit file does not tell (a time limit, an
    interruption, a success where a failure was due), or of which nothing is told at all."""
    found = []
    for name in wanted:
        result = told.get(name)
        if result is None:
            found.append(Case(name, "failed", "it did not run"))
        elif result not in (*_GOOD, *_IN_JUNIT):
            found.append(Case(name, "failed", f"Meson says {result}"))
    return found


def _command() -> list[str]:
    """That of pytest, without what it shall do."""
    root = places.root()
    command = [sys.executable, "-P", "-m", "pytest", "-c", str(root / "tools" / "pyproject.toml")]
    return [*command, "--rootdir", str(root), "-p", "no:cacheprovider"]


def _pytest(
    chosen: Chosen,
    paths: list[str],
    marked: str = "",
    workers: int = 0,
    journal: Journal | None = None,
) -> tuple[int, list[Case]]:
    """The exit status, and the cases, of those tests in Python that have these marks. That there
    are none is left to the caller to judge."""
    root = places.root()
    log = logs()[2 if marked == "alone" else 1]
    command = [*_command(), f"--junitxml={log}", "-v"]
    command += ["-m", marked] if marked else []
    command += ["-n", str(workers), *SIDE_BY_SIDE] if workers else []
    command += [str(root / each) for each in paths]
    environment = chosen.environment() | (journal.environment() if journal else {})
    status = subprocess.run(command, check=False, cwd=root, env=environment).returncode
    what = "the tests in Python (pytest)"
    return status, counted(log, 0 if status == _NONE_FOUND else status, what)


def counted(log: Path, status: int, what: str) -> list[Case]:
    """The cases in a runner's log. A runner that leaves none, or fails without a failed case (it
    crashed), is itself a failure."""
    if not log.exists():
        return [Case(what, "failed", f"the runner ended with status {status} and left no results")]
    cases = read_junit(log)
    if status != 0 and not any(case.verdict == "failed" for case in cases):
        cases.append(Case(what, "failed", f"the runner ended with status {status}"))
    return cases
