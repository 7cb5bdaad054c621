# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is measured of socket programs: which programs, and what they print."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from beowire.bench import postgres


@dataclass(frozen=True)
class Figure:
    """What is measured with a server on one node and a client on another."""

    name: str
    says: str
    unit: str
    lower_is_better: bool
    server: tuple[str, ...]
    """{port} stands for the port, {host} for the server's address, {connects} for the example
    program of that name, and {programs} for the directory of PostgreSQL's."""
    client: tuple[str, ...]
    value: Callable[[str], float]
    """Of what the client printed."""
    switches: bool = True
    """Its connection leaves TCP; else it is over too soon, or the server has no Beowire."""
    plain_server: bool = False
    """The server runs without Beowire."""
    postgres: bool = False
    """PostgreSQL, with data of its own: once for all rounds, and all figures of it."""

    @property
    def needs(self) -> list[str]:
        """Programs that it is made of and that are not our own, but for PostgreSQL's."""
        if self.postgres:
            return []
        return [each for each in {self.server[0], self.client[0]} if not each.startswith("{")]

    def lacking(self) -> str:
        """What is missing for it here; empty: nothing."""
        if self.postgres:
            return postgres.lacking()
        names = sorted(each for each in self.needs if shutil.which(each) is None)
        return f"{', '.join(names)}: not installed" if names else ""


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


def _pgbench(text: str) -> float:
    found = re.search(r"^tps = ([0-9.]+)", text, re.MULTILINE)
    if found is None:
        raise ValueError(text)
    return float(found[1])


def _ours(key: str, divisor: float) -> Callable[[str], float]:
    def value(text: str) -> float:
        return float(json.loads(text)[key]) / divisor

    return value


_REDIS = ("redis-server", "--port", "{port}", "--save", "", "--protected-mode", "no")
_GET = ("redis-benchmark", "-h", "{host}", "-p", "{port}", "-t", "get", "--csv")
_POSTGRES = ("listen_addresses={host}", "port={port}")
"""Settings of the server, whose command line is postgres.py's."""
_SELECT = (
    *("{programs}/pgbench", "-h", "{host}", "-p", "{port}", "-U", postgres.SUPERUSER),
    *("-n", "-S", "-M", "prepared"),
)
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
OWN = "{connects}"

FIGURES = (
    Figure(
        "pingpong",
        "14 bytes one way, in calls that wait",
        "us",
        True,
        (OWN, "serve", "{port}"),
        (OWN, "pingpong", "{host}", "{port}", "14"),
        _ours("ns_one_way", 1000),
    ),
    Figure(
        "spinning",
        "14 bytes one way, the client in calls that do not wait",
        "us",
        True,
        (OWN, "serve", "{port}"),
        (OWN, "spinning", "{host}", "{port}", "14"),
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
        "pgbench-1",
        "PostgreSQL, pgbench reads a row by its key, one client",
        "transactions/s",
        False,
        _POSTGRES,
        (*_SELECT, "-c", "1", "-t", "20000", "postgres"),
        _pgbench,
        postgres=True,
    ),
    Figure(
        "pgbench-8",
        "the same, 8 clients",
        "transactions/s",
        False,
        _POSTGRES,
        (*_SELECT, "-c", "8", "-j", "2", "-t", "40000", "postgres"),
        _pgbench,
        postgres=True,
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
        (OWN, "serve", "{port}"),
        (OWN, "many", "{host}", "{port}", "5000"),
        _ours("ns_each", 1000),
    ),
    Figure(
        "short",
        "a connection that ends at once",
        "us",
        True,
        (OWN, "closing", "{port}"),
        (OWN, "short", "{host}", "{port}", "5000"),
        _ours("ns_each", 1000),
        switches=False,
    ),
    Figure(
        "short-plain",
        "the same, to a server without Beowire",
        "us",
        True,
        (OWN, "closing", "{port}"),
        (OWN, "short", "{host}", "{port}", "5000"),
        _ours("ns_each", 1000),
        switches=False,
        plain_server=True,
    ),
)
NAMES = tuple(each.name for each in FIGURES)
