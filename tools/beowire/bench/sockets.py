# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Socket programs between two nodes of a lab, by `beowire sockets` and without it in turn."""

import contextlib
import functools
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beowire import places
from beowire.bench import pingpong, postgres, samples
from beowire.bench.sockets_figures import FIGURES, NAMES, OWN, Figure
from beowire.bench.sockets_programs import output, serving
from beowire.errors import BeowireError
from beowire.lab import lab as labs
from beowire.lab import up
from beowire.sockets import cli as preloading

PORTS = range(7300, 7900)
"""Each run has another one: some servers cannot have one of which connections still linger."""


@dataclass(frozen=True)
class Measured:
    """Of a figure: one number from each round, and Beowire's by TCP's."""

    figure: Figure
    tcp: list[float]
    beowire: list[float]
    ratio: samples.Ratio

    def as_json(self) -> dict[str, Any]:
        return {
            "figure": self.figure.name,
            "says": self.figure.says,
            "unit": self.figure.unit,
            "lower_is_better": self.figure.lower_is_better,
            "tcp": self.tcp,
            "beowire": self.beowire,
            "ratio": vars(self.ratio),
        }


@dataclass
class Report:
    """All figures and how they came about."""

    rounds: int
    figures: list[Measured] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    """Figures that could not be measured, and why."""
    load: list[float] = field(default_factory=list)
    """Of the machine, over a minute: before and afterwards."""

    def as_json(self) -> dict[str, Any]:
        return {
            "rounds": self.rounds,
            "figures": [each.as_json() for each in self.figures],
            "missing": self.missing,
            "load": self.load,
            "order": "A B A B, A is TCP",
            "machine": pingpong.machine(),
        }


@contextlib.contextmanager
def own_lab(mtu: int) -> Iterator[str]:
    """Two nodes at a switch, gone afterwards: the name."""
    name = f"sockets-{os.getpid()}"
    up.up(name, 2, mtu)
    try:
        yield name
    finally:
        up.down(name)


def chosen(text: str) -> tuple[Figure, ...]:
    """Figures out of a list with commas."""
    words = [each.strip() for each in text.split(",") if each.strip()]
    if not words or not set(words) <= set(NAMES):
        raise BeowireError(f"--figures {text}?", f"Choose among {', '.join(NAMES)}.")
    return tuple(each for each in FIGURES if each.name in words)


def measure(
    figures: tuple[Figure, ...], lab: str, rounds: int, tell: Callable[[str], None]
) -> Report:
    """Measures them; `tell` hears of each round before it begins."""
    made = labs.load_ready(lab)
    if made.nodes < 2:
        raise BeowireError(f"The lab {lab} has one node.", "Two are wanted.")
    report = Report(rounds)
    report.load.append(os.getloadavg()[0])
    values: dict[str, tuple[list[float], list[float]]] = {}
    for figure in figures:
        lacking = figure.lacking()
        if lacking:
            report.missing[figure.name] = lacking
        else:
            values[figure.name] = ([], [])
    wanted = [each for each in figures if each.name in values]
    ports = itertools.cycle(PORTS)
    with contextlib.ExitStack() as kept:
        database = None
        if any(each.postgres for each in wanted):
            tell("a database for pgbench")
            database = kept.enter_context(postgres.made())
        for number in range(rounds):
            tell(f"round {number + 1} of {rounds}")
            for figure in wanted:
                for into, library in zip(values[figure.name], (False, True), strict=True):
                    into.append(_run(figure, made, library, next(ports), database))
    report.figures = [
        Measured(figure, tcp, beowire, samples.ratio(beowire, tcp))
        for figure in wanted
        for tcp, beowire in [values[figure.name]]
    ]
    report.load.append(os.getloadavg()[0])
    return report


def _run(
    figure: Figure, lab: labs.Lab, library: bool, port: int, database: postgres.Server | None
) -> float:
    client, server = lab.node_names()[:2]
    host = lab.address(server)
    known = {"{port}": str(port), "{host}": host, OWN: str(places.example("connects"))}
    preloaded = preloading.preload()
    before: list[str] = []
    served = figure.server
    answers = None
    if figure.postgres:
        assert database is not None
        known["{programs}"] = str(database.programs)
        served = tuple(database.words(*served))
        before, preloaded = postgres.become(), database.variables
        answers = functools.partial(database.answers, port)
    with tempfile.TemporaryDirectory(prefix="beowire-sockets-") as directory:
        variables = {**preloading.preload(), preloading.STATS: directory}
        words = _filled(served, known)
        name = Path(words[0]).name
        if library and not figure.plain_server:
            words = preloading.command(words, preloaded)
        with serving(lab.name, server, [*before, *words], name, port, answers):
            words = _filled(figure.client, known)
            if library:
                words = preloading.command(words, variables)
            text = output([*preloading.where(lab.name, client), *words])
        if library and figure.switches:
            counted = preloading.gathered(Path(directory))
            if not counted["tx_beowire"]:
                raise BeowireError(f"{figure.name}: no connection left TCP.", code=4)
    try:
        return figure.value(text)
    except (ValueError, KeyError, TypeError) as error:
        raise BeowireError(
            f"{figure.name}: {words[0]} printed what is not known:\n{text}"
        ) from error


def _filled(words: tuple[str, ...], known: dict[str, str]) -> list[str]:
    """With what the words in braces stand for."""
    filled = []
    for each in words:
        for name, value in known.items():
            each = each.replace(name, value)
        filled.append(each)
    return filled


def both(told: Measured) -> tuple[float, float]:
    """Geometric means over TCP and over Beowire."""
    from statistics import geometric_mean

    return geometric_mean(told.tcp), geometric_mean(told.beowire)
