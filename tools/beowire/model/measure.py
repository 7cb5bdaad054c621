# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs a command at several numbers of nodes, repeated, in an order that lets no drift of the
machine look like an effect of N: every round has each N once, shuffled by the round's number.

A run that fails is named and counted, the others go on. A command in the middle of which we end is
ended first, with all that it started.
"""

import random
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import IO, Literal

from ClusterShell.RangeSet import RangeSet, RangeSetException

from beowire import child
from beowire.errors import BeowireError
from beowire.model.results import Results, Traffic
from beowire.run.path import Endpoint, read_endpoints

Unit = Literal["s", "ms", "us", "ns"]

UNITS: dict[Unit, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_BETWEEN = ("packet", "udp", "kernel")
"""Links of Beowire between nodes."""
_SHOWN = 300
"""Characters of a failed command's last words."""

Tell = Callable[[str], None]


class RunError(Exception):
    """A run that gave no time; the text says why."""


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    command: list[str]
    """{N} stands for the number of nodes, {ranks} for that of ranks, {stats} for a directory where
    the command leaves the counters of Beowire's endpoints."""
    nodes: list[int]
    repeats: int
    per_node: int
    limit_s: float
    """After which a run has failed; 0: no limit."""
    clock: str = ""
    """A regular expression whose group is the time in the output; empty: the wall clock."""
    unit: Unit = "s"

    def words(self, nodes: int, stats: str = "") -> list[str]:
        """The command at so many nodes."""
        values = {"{N}": str(nodes), "{ranks}": str(nodes * self.per_node), "{stats}": stats}
        return [
            re.sub(r"\{N\}|\{ranks\}|\{stats\}", lambda found: values[found[0]], word)
            for word in self.command
        ]

    def runs(self) -> Iterator[tuple[int, int]]:
        """N and repeat, in the order of measuring."""
        for repeat in range(1, self.repeats + 1):
            order = list(self.nodes)
            random.Random(repeat).shuffle(order)
            for nodes in order:
                yield nodes, repeat


def parse_nodes(text: str) -> list[int]:
    """1,2,4-8 or 2-16/2: numbers of nodes."""
    try:
        numbers = sorted({int(str(each)) for each in RangeSet(text)})
    except (RangeSetException, ValueError) as error:
        raise BeowireError(f"--nodes {text}?", "Write numbers such as 1,2,4-8.") from error
    if not numbers or numbers[0] < 1:
        raise BeowireError(f"--nodes {text}?", "Numbers of nodes begin at 1.")
    return numbers


def check(plan: Plan) -> None:
    """What can be refused before anything runs."""
    if not any("{N}" in word or "{ranks}" in word for word in plan.command):
        raise BeowireError(
            "The command does not depend on the number of nodes.",
            "Write {N} where it stands, or {ranks}: mpirun -n {ranks} ./program.",
        )
    if plan.clock:
        try:
            groups = re.compile(plan.clock).groups
        except re.error as error:
            raise BeowireError(f"--time {plan.clock}: {error}.", "Fix the expression.") from error
        if groups != 1:
            raise BeowireError(
                f"--time {plan.clock} has {groups} groups.", "Put what the time is in ( )."
            )


def sweep(plan: Plan, results: Results, tell: Tell) -> int:
    """All runs that are not in the file; returns how many failed."""
    missing = [run for run in plan.runs() if run not in results.times]
    if not missing:
        tell(f"all runs stand in {results.path} already")
    failed = 0
    began_s = time.monotonic()
    for step, (nodes, repeat) in enumerate(missing):
        left = ""
        if step:
            each_s = (time.monotonic() - began_s) / step
            left = f", about {each_s * (len(missing) - step):.0f} s left"
        tell(f"{step + 1}/{len(missing)} N = {nodes}, repeat {repeat}{left}")
        try:
            with tempfile.TemporaryDirectory(prefix="beowire-model-") as stats:
                time_s = run_once(plan, nodes, stats)
                results.add(nodes, repeat, time_s, traffic(Path(stats)))
        except RunError as why:
            failed += 1
            tell(f"N = {nodes}, repeat {repeat} failed: {why}")
            results.add_failure(nodes, repeat, str(why))
    return failed


def traffic(directory: Path) -> Traffic | None:
    """Of the ranks that exchanged most with other nodes, from the counters of their endpoints;
    None: there are no counters."""
    (directory / "job.json").unlink(missing_ok=True)  # of `beowire run`, about the whole job
    ends = read_endpoints(directory)
    if not ends:
        return None
    return Traffic(messages=max(map(_messages, ends)), bytes=max(map(_bytes, ends)))


def _messages(end: Endpoint) -> int:
    """One after another. A long message is asked for and then comes: three, with the one that
    announces it."""
    sent = end.tx_messages + 2 * end.rx_pulls
    received = end.rx_messages + 2 * end.tx_pulls
    fewer = min(end.tx_messages, end.rx_messages)
    at_once = min(end.duplex_messages / fewer, 1) if fewer else 0
    return round(sent + received - at_once * min(sent, received))


def _bytes(end: Endpoint) -> int:
    sent, received = (end.sum(counter, *_BETWEEN) for counter in ("tx_payload", "rx_payload"))
    return sent + received - min(end.duplex_payload, sent, received)


def run_once(plan: Plan, nodes: int, stats: str = "") -> float:
    """The time of one run in seconds. Raises RunError."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        began_ns = time.monotonic_ns()
        status = _execute(plan.words(nodes, stats), output, errors, plan.limit_s)
        took_s = (time.monotonic_ns() - began_ns) / 1e9
        if status is None:
            raise RunError(f"it ran longer than {plan.limit_s:g} s")
        if status:
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
            raise RunError(f"{how}: {_last(errors) or _last(output) or 'it said nothing'}")
        return _told(plan, output) if plan.clock else took_s


def _told(plan: Plan, output: IO[bytes]) -> float:
    """The time that the output has, the last if there are several."""
    output.seek(0)
    found = re.findall(plan.clock, output.read().decode(errors="replace"))
    if not found:
        raise RunError(f"no time in its output ({plan.clock}): {_last(output) or 'there is none'}")
    try:
        told_s = float(found[-1]) * UNITS[plan.unit]
    except ValueError:
        raise RunError(f"the time in its output is no number: {found[-1]}") from None
    if not isfinite(told_s) or told_s <= 0:
        raise RunError(f"the time in its output is {found[-1]}")
    return told_s


def _execute(words: list[str], output: IO[bytes], errors: IO[bytes], limit_s: float) -> int | None:
    """The exit status; None: it ran into the limit."""
    with child.running(words, output, errors) as program:
        try:
            return program.wait(limit_s or None)
        except subprocess.TimeoutExpired:
            return None


def _last(stream: IO[bytes]) -> str:
    """The last line that was said."""
    stream.seek(0)
    lines = stream.read().decode(errors="replace").split("\n")
    return next((line.strip()[:_SHOWN] for line in reversed(lines) if line.strip()), "")
