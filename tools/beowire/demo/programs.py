# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The programs of the demonstration: how to run each, and what its output says.

An answer must be the same over both transports, bit for bit; a figure is what is compared.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from beowire.bench.hpcc_input import hpcc_input
from beowire.bench.pingpong import between_nodes_bytes
from beowire.errors import BeowireError

HPL_SIZE = 720
HPL_BLOCK = 80
HPL_REPEATS = 8

HPCC_INPUT = "hpccinf.txt"
HPCC_OUTPUT = "hpccoutf.txt"


@dataclass(frozen=True)
class Outcome:
    """What one run of a program told."""

    figure: float
    answer: str
    """What the program computed, exactly; empty when it computes nothing."""
    payload_bytes: int = 0
    """What it is known to have sent between nodes."""


@dataclass(frozen=True)
class Program:
    """A program of the demonstration."""

    name: str
    about: str
    ranks: int
    rounds: int
    unit: str
    lower_is_better: bool
    executable: str
    """Name of an example program, or of a system program."""
    arguments: tuple[str, ...]
    read: Callable[[str], Outcome]
    """Reads the program's report: its standard output, or for hpcc the file that it writes."""
    is_example: bool = True


def _report(output: str) -> dict[str, Any]:
    try:
        report: dict[str, Any] = json.loads(output)
    except ValueError as error:
        raise BeowireError(f"A program's report cannot be read ({error}):\n{output}") from error
    return report


def _read_timed(output: str) -> Outcome:
    """pi and tridiagonal: the time, and the result down to its last bit."""
    report = _report(output)
    return Outcome(int(report["time_ns"]) / 1e9, f"{report['checksum']}")


def _read_latency(output: str) -> Outcome:
    report = _report(output)
    figure = float(report["results"][0]["p50_ns"]) / 1e3
    return Outcome(figure, "", between_nodes_bytes(report))


def _read_bandwidth(output: str) -> Outcome:
    report = _report(output)
    figure = float(report["results"][0]["bytes_per_s"]) / 1e6
    return Outcome(figure, "", between_nodes_bytes(report))


_HPL_TIME = re.compile(r"^W[RC]\w+\s+\d+\s+\d+\s+\d+\s+\d+\s+([\d.]+)\s", re.MULTILINE)
_HPL_RESIDUAL = re.compile(r"^\|\|Ax-b.*=\s*([\d.e+-]+)\s*\.+ (PASSED|FAILED)", re.MULTILINE)
_SUCCESS = re.compile(r"^Success=1$", re.MULTILINE)


def _read_hpcc(text: str) -> Outcome:
    """HPL out of hpcc's report."""
    times = [float(each) for each in _HPL_TIME.findall(text)]
    residuals = _HPL_RESIDUAL.findall(text)
    if len(times) != HPL_REPEATS or not all(verdict == "PASSED" for _, verdict in residuals):
        raise BeowireError("HPL did not pass its own check.", f"Its report:\n{text[-2000:]}")
    if not _SUCCESS.search(text):
        raise BeowireError("hpcc reports a failed test.", f"Its report:\n{text[-2000:]}")
    return Outcome(median(times), " ".join(value for value, _ in residuals))


def input_of_hpcc(ranks: int) -> str:
    """A short HPL, solved several times over."""
    return hpcc_input(ranks, [HPL_SIZE] * HPL_REPEATS, HPL_BLOCK)


PROGRAMS = (
    Program(
        name="pi",
        about="short messages",
        ranks=4,
        rounds=3,
        unit="s",
        lower_is_better=True,
        executable="pi",
        arguments=("--precision", "4e-8", "--json"),
        read=_read_timed,
    ),
    Program(
        name="tridiagonal",
        about="long messages",
        ranks=4,
        rounds=3,
        unit="s",
        lower_is_better=True,
        executable="tridiagonal",
        arguments=("--json",),
        read=_read_timed,
    ),
    Program(
        name="ping-pong 8 B",
        about="latency",
        ranks=2,
        rounds=5,
        unit="us",
        lower_is_better=True,
        executable="pingpong",
        arguments=("--json", "-", "--sizes", "8", "--iters", "20000"),
        read=_read_latency,
    ),
    Program(
        name="ping-pong 1 MiB",
        about="bandwidth",
        ranks=2,
        rounds=5,
        unit="MB/s",
        lower_is_better=False,
        executable="pingpong",
        arguments=("--json", "-", "--mode", "bandwidth", "--iters", "10"),
        read=_read_bandwidth,
    ),
    Program(
        name="HPL",
        about=f"linear algebra, N = {HPL_SIZE}",
        ranks=4,
        rounds=2,
        unit="s",
        lower_is_better=True,
        executable="hpcc",
        arguments=(),
        read=_read_hpcc,
        is_example=False,
    ),
)
