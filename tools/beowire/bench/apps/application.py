# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a program is to the benchmark: what it needs, how it is started, what its output says."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from beowire.errors import BeowireError


@dataclass(frozen=True)
class Outcome:
    """What one run of a program told."""

    times: dict[str, float]
    """By figure, in its unit; less is better, rates are turned over."""
    answers: dict[str, float]
    """The numbers that it computed, by name."""


@dataclass(frozen=True)
class Figure:
    """A time that a program tells."""

    name: str
    """Unique among all applications: it names the row of a table."""
    unit: str


@dataclass(frozen=True)
class Source:
    """A program of examples/apps, which is compiled when it is wanted."""

    name: str
    packages: tuple[str, ...] = ()
    """For pkg-config."""
    libraries: tuple[str, ...] = ()
    """Of which pkg-config knows nothing."""
    common: bool = True
    """Is linked with examples/common.c."""


@dataclass(frozen=True)
class Paths:
    """Where things lie on the nodes."""

    directory: str
    """In which the program starts, with the application's files in it."""
    program: str


Files = Mapping[str, str | Path]
"""Texts, or files to be copied, by the names that they get."""


def _no_files(_ranks: int) -> Files:
    return {}


@dataclass(frozen=True)
class Application:
    """A program with its input. Exactly one of `program`, `source` and `example` is not empty."""

    name: str
    about: str
    figures: tuple[Figure, ...]
    read: Callable[[str], Outcome]
    """Reads standard output, or the file `report`."""
    tolerances: dict[str, float]
    """How far answers may be apart, relatively; 0: not at all. They depend on the order in which
    numbers were added, which depends on the MPI's algorithms."""
    program: str = ""
    """Of the distribution."""
    source: Source | None = None
    example: str = ""
    """A program of the normal build."""
    packages: tuple[str, ...] = ()
    """Of the distribution, for --install."""
    arguments: tuple[str, ...] = ()
    files: Callable[[int], Files] = _no_files
    """By name, for so many ranks."""
    report: str = ""
    """The file that holds the report, and that must not be there before; empty: standard output."""
    shared_files: bool = False
    """All ranks write to one file: real hosts would need a common file system."""
    environment: dict[str, str] = field(default_factory=dict)

    def command(self, paths: Paths) -> list[str]:
        return [paths.program, *self.arguments]


def found(pattern: str, text: str, what: str) -> list[str]:
    """The groups of a pattern's only place in a report; the error names what was looked for."""
    hits: list[re.Match[str]] = list(re.finditer(pattern, text, re.MULTILINE))
    if len(hits) != 1:
        raise BeowireError(
            f"A report has {len(hits)} times what tells {what}, not once:\n{text[-2000:]}"
        )
    return list(hits[0].groups())


def number(pattern: str, text: str, what: str) -> float:
    """The number that is the pattern's only group."""
    return float(found(pattern, text, what)[0])
