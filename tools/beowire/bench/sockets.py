# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Socket programs between two nodes of a lab, by `beowire sockets` and without it in turn."""

import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from beowire import child, places
from beowire.bench import pingpong, samples
from beowire.errors import BeowireError
from beowire.lab import lab as labs
from beowire.lab import up
from beowire.sockets import cli as preloading

PORTS = range(7300, 7900)
"""Each run has another one: some servers cannot have one of which connections still linger."""
LIMIT_S = 120.0
START_S = 20.0


@dataclass(frozen=True)
class Figure:
    """What is measured with a server on one node and a client on another."""

    name: str
    says: str
    unit: str
    lower_is_better: bool
    server: tuple[str, ...]
    """{port} stands for the port, {connects} for the example program of that name."""
    client: tuple[str, ...]
    """{host} stands for the server's address."""
    value: Callable[[str], float]
    """Of what the client printed."""
    switches: bool = True
    """Its connection leaves TCP; else it is over too soon, or the server has no Beowire."""
    plain_server: bool = False
    """The server runs without Beowire."""

    @property
    def needs(self) -> list[str]:
        """Programs that it is made of and that are not our own."""
        return [each for each in {self.server[0], self.client[0]} if not each.startswith("{")]


def _redis(column: int) -> Callable[[str], float]:
    def value(text: str) -> float:
        line = next((each for each in text.splitlines() if each.startswith('"GET"')), "")
        words = line.split(",")
        if len(words) <= column:
            raise ValueError(text)
        return float(words[column].strip('"'))

    return value


def _iperf(text: str) -> float:
    return float(json.loads(text)["end"]["sum_received"]["bits_per_second"]) / 8e6


def _sockperf(text: str) -> float:
    found = re.search(r"percentile 50\.000 = +([0-9.]+)", text)
    if found is None:
        raise ValueError(text)
    return float(found[1])


def _ours(key: str, divisor: float) -> Callable[[str], float]:
    def value(text: str) -> float:
        return float(json.loads(text)[key]) / divisor

    return value


_REDIS = ("redis-server", "--port", "{port}", "--save", "", "--protected-mode", "no")
_GET = ("redis-benchmark", "-h", "{host}", "-p", "{port}", "-t", "get", "--csv")
_SOCKPERF = (
    "sockperf",
    "ping-pong",
    "--tcp",
    "-i",
    "{host}",
    "-p",
    "{port}",
    "-m",
    "14",
    "-t",
    "3",
)
_SOCKPERF_SERVER = ("sockperf", "server", "--tcp", "-i", "0.0.0.0", "-p", "{port}")
_OWN = "{connects}"

FIGURES = (
    Figure(
        "pingpong",
        "14 bytes one way, in calls that wait",
        "us",
        True,
        (_OWN, "serve", "{port}"),
        (_OWN, "pingpong", "{host}", "{port}", "14"),
        _ours("ns_one_way", 1000),
    ),
    Figure(
        "spinning",
        "14 bytes one way, the client in calls that do not wait",
        "us",
        True,
        (_OWN, "serve", "{port}"),
        (_OWN, "spinning", "{host}", "{port}", "14"),
        _ours("ns_one_way", 1000),
    ),
    Figure(
        "sockperf",
        "sockperf, 14 bytes one way, median, in calls that wait",
        "us",
        True,
        _SOCKPERF_SERVER,
        _SOCKPERF,
        _sockperf,
    ),
    Figure(
        "sockperf-spinning",
        "the same, both in calls that do not wait",
        "us",
        True,
        (*_SOCKPERF_SERVER, "--nonblocked"),
        (*_SOCKPERF, "--nonblocked"),
        _sockperf,
    ),
    Figure(
        "redis-1",
        "redis GET, one client, median",
        "us",
        True,
        _REDIS,
        (*_GET, "-c", "1", "-n", "40000"),
        lambda text: 1000 * _redis(4)(text),
    ),
    Figure(
        "redis-50",
        "redis GET, 50 clients",
        "requests/s",
        False,
        _REDIS,
        (*_GET, "-c", "50", "-n", "100000"),
        _redis(1),
    ),
    Figure(
        "iperf3",
        "iperf3, one stream",
        "MB/s",
        False,
        ("iperf3", "-s", "-1", "-p", "{port}"),
        ("iperf3", "-c", "{host}", "-p", "{port}", "-t", "3", "-J"),
        _iperf,
    ),
    Figure(
        "many",
        "1 KiB there and back, on each of 5,000 connections at once",
        "us",
        True,
        (_OWN, "serve", "{port}"),
        (_OWN, "many", "{host}", "{port}", "5000"),
        _ours("ns_each", 1000),
    ),
    Figure(
        "short",
        "a connection that ends at once",
        "us",
        True,
        (_OWN, "closing", "{port}"),
        (_OWN, "short", "{host}", "{port}", "5000"),
        _ours("ns_each", 1000),
        switches=False,
    ),
    Figure(
        "short-plain",
        "the same, to a server without Beowire",
        "us",
        True,
        (_OWN, "closing", "{port}"),
        (_OWN, "short", "{host}", "{port}", "5000"),
        _ours("ns_each", 1000),
        switches=False,
        plain_server=True,
    ),
)
NAMES = tuple(each.name for each in FIGURES)


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
        lacking = [each for each in figure.needs if shutil.which(each) is None]
        if lacking:
            report.missing[figure.name] = f"{', '.join(sorted(lacking))}: not installed"
        else:
            values[figure.name] = ([], [])
    ports = itertools.cycle(PORTS)
    for number in range(rounds):
        tell(f"round {number + 1} of {rounds}")
        for figure in figures:
            for into, library in zip(values.get(figure.name, ()), (False, True), strict=False):
                into.append(_run(figure, made, library, next(ports)))
    report.figures = [
        Measured(figure, tcp, beowire, samples.ratio(beowire, tcp))
        for figure in figures
        if figure.name in values
        for tcp, beowire in [values[figure.name]]
    ]
    report.load.append(os.getloadavg()[0])
    return report


def _filled(words: tuple[str, ...], host: str, port: int) -> list[str]:
    known = {"{port}": str(port), "{host}": host, _OWN: str(places.example("connects"))}
    return [known.get(each, each) for each in words]


def _run(figure: Figure, lab: labs.Lab, library: bool, port: int) -> float:
    client, server = lab.node_names()[:2]
    host = lab.address(server)
    with tempfile.TemporaryDirectory(prefix="beowire-sockets-") as directory:
        variables = {**preloading.preload(), preloading.STATS: directory}
        words = _filled(figure.server, host, port)
        if library and not figure.plain_server:
            words = preloading.command(words, preloading.preload())
        with _serving(lab.name, server, words, port):
            words = _filled(figure.client, host, port)
            if library:
                words = preloading.command(words, variables)
            text = _output([*preloading.where(lab.name, client), *words])
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


def _output(words: list[str]) -> str:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        with child.running(words, output, errors) as program:
            try:
                status = program.wait(LIMIT_S)
            except subprocess.TimeoutExpired as error:
                raise BeowireError(
                    f"{words[-1]}: no end after {LIMIT_S:.0f} s", " ".join(words)
                ) from error
        if status:
            said = _text(output) + _text(errors)
            raise BeowireError(f"A program ended with {status}:\n{said}", " ".join(words))
        return _text(output)


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")


@contextlib.contextmanager
def _serving(lab: str, node: str, words: list[str], port: int) -> Iterator[None]:
    if _listens(lab, node, port):
        raise BeowireError(f"{node}: port {port} is taken.", "End who listens there.")
    with (
        tempfile.TemporaryFile() as said,
        child.running([*preloading.where(lab, node), *words], said, said) as server,
    ):
        until = time.monotonic() + START_S
        while not _listens(lab, node, port):
            if server.poll() is not None or time.monotonic() > until:
                raise BeowireError(f"{words[0]} does not serve:\n{_text(said)}", " ".join(words))
            time.sleep(0.05)
        yield


def _listens(lab: str, node: str, port: int) -> bool:
    """Is there a socket that listens on this port? (proc(5): /proc/net/tcp, state 0A)"""
    text = _output([*preloading.where(lab, node), "cat", "/proc/net/tcp", "/proc/net/tcp6"])
    rows = [line.split() for line in text.splitlines()]
    return any(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows if len(row) > 3)


def both(told: Measured) -> tuple[float, float]:
    """Geometric means over TCP and over Beowire."""
    from statistics import geometric_mean

    return geometric_mean(told.tcp), geometric_mean(told.beowire)
