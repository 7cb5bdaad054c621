# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One test of a foreign suite, and how it ended."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Verdict = Literal["passed", "failed", "hung", "not run", "not built", "not launched", "cut short"]
"""`not run`: the test itself says that it does not apply. `not built`: its compiler refused it.
`not launched`: the launcher ended, or time was up, before every rank had begun.
`cut short`: it was ended before its own limit of time, as --limit says."""
Judge = Callable[[int, str], Verdict]
"""What an exit status and all that was printed mean."""
PartJudge = Callable[[str, str], Verdict]
"""What all that was printed means for the part of this name."""


@dataclass(frozen=True)
class Case:
    """A program of a suite with its arguments."""

    suite: str
    name: str
    """Unique within the suite."""
    arguments: list[str]
    judge: Judge
    ranks: int = 2
    """Of an MPI program."""
    directory: Path = Path()
    """Where it starts."""
    limit_s: float = 180.0
    memory_bytes: int = 0
    """What all its ranks need together, as its suite says; 0: little."""
    environment: dict[str, str] = field(default_factory=dict)
    make: tuple[str, ...] = ()
    """The command that builds it, in its directory; empty: it is built already."""
    script: str = ""
    """A program in Python that runs it, given the lab's name, the transport and the arguments."""
    parts: tuple[str, ...] = ()
    """Tests that it consists of and that cannot run alone: these are recorded, not the whole."""
    judge_part: PartJudge | None = None

    @property
    def recorded(self) -> tuple[str, ...]:
        """The names under which its outcomes are kept."""
        return self.parts or (self.name,)


def by_status(status: int, _text: str) -> Verdict:
    """0 is good."""
    return "passed" if status == 0 else "failed"


def by_status_and_skip(not_run: set[int]) -> Judge:
    """0 is good, and these statuses say that the test does not apply."""

    def judge(status: int, _text: str) -> Verdict:
        if status in not_run:
            return "not run"
        return by_status(status, "")

    return judge


def no_errors(status: int, text: str) -> Verdict:
    """MPICH's convention: one rank says `No Errors`, and no rank counts errors."""
    if re.search(r"^Test Skipped", text, re.MULTILINE):
        return "not run"
    said = re.search(r"^ ?No [Ee]rrors\s*$", text, re.MULTILINE)
    return "passed" if status == 0 and said else "failed"


def ends_badly(status: int, _text: str) -> Verdict:
    """The program has to end with an error."""
    return "passed" if status != 0 else "failed"
