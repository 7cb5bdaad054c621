# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The profile of a program for distant nodes: how long it took on one site and on both, over which
lines. A file of JSON that is written anew after each run, so that an interrupted one goes on.

`beowire wan profile` makes one; the runs that `beowire wan check` compares a prediction with are
kept in the same form.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Self

from beowire import __version__, installed
from beowire.errors import BeowireError
from beowire.run.launch import Transport
from beowire.wan.grid import CLEAR, Line
from beowire.wan.results import Verdict

FORMAT = 1
Kind = Literal["profile", "check"]
Sites = Literal["one", "both"]
Place = Literal["lab", "hosts"]
"""Where a run was: lines are emulated in a lab; hosts are real, all of them at one place."""


@dataclass(frozen=True)
class Setting:
    """What all runs of a file have in common."""

    program: tuple[str, ...]
    """The words that start it."""
    digest: str
    """SHA-256 of its executable."""
    nodes: int
    """Of both sites together."""
    ranks_per_node: int
    cpus: float
    """Processor time of each node, in processors."""
    processors: int
    """Of the machine."""
    machine: str
    mpi: str
    """As `--mpi` named it."""
    library: str
    """The MPI's name and version."""

    @property
    def crowded(self) -> bool:
        """Ranks outnumber the machine's processors."""
        return self.nodes * self.ranks_per_node > self.processors


@dataclass(frozen=True)
class Case:
    """Something to run: the program over a transport on one site, or on both over a line."""

    transport: Transport
    sites: Sites
    line: Line
    place: Place = "lab"

    def __str__(self) -> str:
        if self.place == "hosts":
            return f"{'half of the' if self.sites == 'one' else 'all'} hosts, {self.transport}"
        where = "one site" if self.sites == "one" else f"both sites, {self.line}"
        return f"{where}, {self.transport}"


@dataclass(frozen=True)
class Run:
    """One run of a case."""

    round: int
    case: Case
    time_s: float
    """From the end of MPI_Init to the beginning of MPI_Finalize, of the slowest rank."""
    crossed_bytes: int
    """From the first site to the second and back, headers and the launcher's included."""
    run_s: float
    """Of the whole run, launcher included."""
    verdict: Verdict
    """Whether the emulator kept to the line."""
    attempts: int = 1
    """Runs until the emulator was content."""


@dataclass(frozen=True)
class Plan:
    """What a file shall hold."""

    rounds: int
    transports: tuple[Transport, ...]
    lines: tuple[Line, ...]
    ends: bool = True
    """Also one site, and both without a line; these in every round, each line in the first only."""
    hosts: tuple[str, ...] = ()
    """Real ones, on half of which and all of which it is run too, in every round; or none."""

    def cases(self) -> Iterator[tuple[int, Case]]:
        """By round, in the order of measuring: the transports take turns (A B A B)."""
        for number in range(1, self.rounds + 1):
            if self.ends:
                for sites in ("one", "both"):
                    for transport in self.transports:
                        yield number, Case(transport, sites, CLEAR)
                        if self.hosts:
                            yield number, Case(transport, sites, CLEAR, "hosts")
            for line in self.lines if number == 1 else ():
                for transport in self.transports:
                    yield number, Case(transport, "both", line)


@dataclass
class Book:
    """A file of runs, open for more. Not for several processes at once."""

    path: Path
    kind: Kind
    setting: Setting
    plan: Plan
    runs: list[Run] = field(default_factory=list)

    def missing(self) -> list[tuple[int, Case]]:
        done = {(run.round, run.case) for run in self.runs}
        return [each for each in self.plan.cases() if each not in done]

    def times_s(self, case: Case) -> list[float]:
        return [run.time_s for run in self.runs if run.case == case]

    def add(self, run: Run) -> None:
        """Keeps one run, on the disk."""
        self.runs.append(run)
        self.write()

    def write(self) -> None:
        """Replaces the file by what is known now."""
        told = {
            "format": FORMAT,
            "kind": self.kind,
            "beowire": __version__,
            "setting": asdict(self.setting),
            "plan": asdict(self.plan),
        }
        runs = ",\n  ".join(json.dumps(asdict(run)) for run in self.runs)
        text = json.dumps(told, indent=1)[:-2] + f',\n "runs": [\n  {runs}\n ]\n}}\n'
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with temporary.open("w") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(self.path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise _unusable(self.path, error.strerror or str(error)) from error

    def check_complete(self) -> None:
        """Fails if runs are missing."""
        if left := len(self.missing()):
            raise BeowireError(
                f"The {self.kind} {self.path} is not complete: {left} runs are missing.",
                "The command that began it goes on where it stopped.",
            )

    @classmethod
    def load(cls, path: Path, kind: Kind) -> Self:
        """The file as it is. A file of another kind, format or version is an error."""
        try:
            text = path.read_text()
        except FileNotFoundError as error:
            raise BeowireError(
                f"There is no {path}.",
                f"Make it: {installed.COMMAND} wan profile --out {path} -- PROGRAM",
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            raise _unusable(path, str(error)) from error
        try:
            told = json.loads(text)
            number, found, version = told["format"], told["kind"], told["beowire"]
        except (ValueError, KeyError, TypeError) as error:
            raise _unusable(path, f"it is none of `beowire wan` ({error!r})") from error
        if found != kind:
            raise _unusable(path, f"it is a {found}, not a {kind}")
        if (number, version) != (FORMAT, __version__):
            raise BeowireError(
                f"{path} is of Beowire {version}, format {number}; this is {__version__}, format "
                f"{FORMAT}.",
                f"Measure it again: {installed.COMMAND} wan profile --out NEW -- PROGRAM",
            )
        try:
            return cls(
                path,
                kind,
                _decoded(Setting, {**told["setting"], "program": tuple(_words(told))}),
                _plan(told["plan"]),
                [_run(each) for each in told["runs"]],
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unusable(path, f"it is damaged ({error!r})") from error

    @classmethod
    def begin(cls, path: Path, kind: Kind, setting: Setting, plan: Plan) -> Self:
        """A new file; or the one that is there, if it was measured in the same way, with the lines
        of both plans."""
        if not path.exists():
            return cls(path, kind, setting, plan)
        book = cls.load(path, kind)
        book.check_same(setting)
        lines = dict.fromkeys((*book.plan.lines, *plan.lines))
        transports = dict.fromkeys((*book.plan.transports, *plan.transports))
        rounds = max(book.plan.rounds, plan.rounds)
        hosts = plan.hosts or book.plan.hosts
        if book.plan.hosts and hosts != book.plan.hosts:
            raise BeowireError(
                f"{path} is of the hosts {', '.join(book.plan.hosts)}.",
                "Name the same hosts, or another file.",
            )
        book.plan = Plan(rounds, tuple(transports), tuple(lines), plan.ends, hosts)
        return book

    def check_same(self, setting: Setting) -> None:
        """Fails if this was measured with something else."""
        ours, wanted = asdict(self.setting), asdict(setting)
        unlike = [key for key in ours if ours[key] != wanted[key]]
        other = [f"{key} {ours[key]}, not {wanted[key]}" for key in unlike]
        if other:
            raise BeowireError(
                f"{self.path} was measured otherwise: {'; '.join(other)}.",
                "Name another file, or start the same program in the same way.",
            )


def _words(told: dict[str, Any]) -> list[str]:
    return [str(word) for word in told["setting"]["program"]]


def _decoded(kind: type[Setting], told: dict[str, Any]) -> Setting:
    return kind(**{each.name: told[each.name] for each in fields(kind)})


def _plan(told: dict[str, Any]) -> Plan:
    lines = tuple(Line(**line) for line in told["lines"])
    transports, hosts = tuple(told["transports"]), tuple(told["hosts"])
    return Plan(told["rounds"], transports, lines, told["ends"], hosts)


def _run(told: dict[str, Any]) -> Run:
    case = told["case"]
    decoded = Case(case["transport"], case["sites"], Line(**case["line"]), case["place"])
    run = Run(**{**told, "case": decoded, "verdict": Verdict(**told["verdict"])})
    return replace(run, time_s=float(run.time_s), crossed_bytes=int(run.crossed_bytes))


def _unusable(path: Path, why: str) -> BeowireError:
    return BeowireError(f"{path} cannot be used: {why}.", "Name another file.")
