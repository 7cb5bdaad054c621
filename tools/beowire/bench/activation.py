# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From an event to whom it wakes: runs of beowire-activation with measures against delay and
without, in turn, on an idle machine and beside a load of our own."""

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from beowire import places
from beowire.bench import pingpong, samples
from beowire.errors import BeowireError
from beowire.replicate import command as replicate

PROGRAM = "programs/beowire-activation"
SCOPES = ("threads", "processes")
EVENTS = ("timer", "futex", "eventfd")
LOADS = ("idle", "busy")
MEASURES = ("none", "pinned", "together", "realtime", "replicate", "huge", "all")
STEPS = ("first", "second", "whole")
"""From the event to the first thread, from that to the second, from the event to the end of all."""
FIGURES = ("p50", "p99.9", "mean", "max")
PRIORITY = 50
WARM = 50
PATIENCE_S = 120.0
PAPER = {"before_us": 34.0, "after_us": 20.0}
"""Of a machine with four nodes at 500 MHz; an average by its abstract, a maximum by its text."""


@dataclass(frozen=True)
class Plan:
    """What is measured, each with each, in so many rounds."""

    scopes: tuple[str, ...] = SCOPES
    events: tuple[str, ...] = EVENTS
    measures: tuple[str, ...] = MEASURES
    loads: tuple[str, ...] = LOADS
    rounds: int = 5
    count: int = 2000
    interval_us: int = 1000
    work: int = 1

    def settings(self) -> Iterator[tuple[str, str]]:
        """Each scope with each event."""
        for scope in self.scopes:
            for event in self.events:
                yield scope, event


@dataclass(frozen=True)
class Key:
    """Which runs belong together."""

    load: str
    scope: str
    event: str
    measure: str


@dataclass
class Report:
    """Every sample of every run, in the order of the rounds."""

    plan: Plan
    runs: dict[Key, list[dict[str, Any]]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Measures that the machine refused, and why."""
    load: list[float] = field(default_factory=list)

    def figure(self, key: Key, step: str, name: str) -> list[float]:
        """One number of each round, in microseconds."""
        return [figures(run[f"{step}_ns"])[name] / 1000 for run in self.runs[key]]

    def ratio(self, key: Key, step: str, name: str) -> samples.Ratio | None:
        """By what was measured without any measure, in the same rounds."""
        base = Key(key.load, key.scope, key.event, "none")
        if base not in self.runs or len(self.runs[base]) != len(self.runs[key]):
            return None
        return samples.ratio(self.figure(key, step, name), self.figure(base, step, name))

    def as_json(self) -> dict[str, Any]:
        return {
            "plan": vars(self.plan),
            "order": "measures in turn, the first of each round another one",
            "runs": [{**vars(key), "rounds": runs} for key, runs in self.runs.items()],
            "figures": [self._summary(key, step) for key in self.runs for step in STEPS],
            "missing": self.missing,
            "load": self.load,
            "load_generator": LOAD_SAYS,
            "paper": PAPER,
            "machine": pingpong.machine(),
        }

    def _summary(self, key: Key, step: str) -> dict[str, Any]:
        told: dict[str, Any] = {**vars(key), "step": step}
        for name in FIGURES:
            ratio = self.ratio(key, step, name)
            told[name] = {
                "us": self.figure(key, step, name),
                "ratio": vars(ratio) if ratio is not None else None,
            }
        return told


LOAD_SAYS = (
    "for each processor a process of the ordinary class that never sleeps: 4 MiB of code called, "
    "4 MiB written, 1 MiB mapped, touched and unmapped, again and again"
)


def figures(values: list[int]) -> dict[str, float]:
    """Percentiles by nearest rank, the average and the maximum. p99.9 of fewer than 1000 is the
    maximum."""
    if not values:
        raise ValueError("no samples")
    ranked = sorted(values)

    def rank(share: float) -> float:
        return float(ranked[max(0, -int(-share * len(ranked) // 1) - 1)])

    mean = sum(ranked) / len(ranked)
    return {"p50": rank(0.5), "p99.9": rank(0.999), "mean": mean, "max": float(ranked[-1])}


def processors() -> tuple[int, int, int]:
    """Of the source, the first and the second: others' where there are enough."""
    allowed = sorted(os.sched_getaffinity(0))
    first, second = allowed[0], allowed[min(1, len(allowed) - 1)]
    return (allowed[2] if len(allowed) > 2 else second), first, second


def words(plan: Plan, key: Key) -> list[str]:
    """The command line of a run."""
    line = [str(places.product(PROGRAM)), key.scope, "--event", key.event]
    line += ["--count", str(plan.count), "--warm", str(WARM), "--work", str(plan.work)]
    line += ["--interval", str(plan.interval_us)]
    source, first, second = processors()
    if key.measure in ("pinned", "all"):
        line += ["--pin", f"{source},{first},{second}"]
    if key.measure == "together":
        line += ["--pin", f"{source},{first},{first}"]
    if key.measure in ("realtime", "all"):
        line += ["--priority", str(PRIORITY)]
    if key.measure in ("replicate", "huge", "all"):
        line = replicate.line(line, "small" if key.measure == "replicate" else "huge")
    return line


def measure(plan: Plan, tell: Callable[[str], None]) -> Report:
    """Runs everything; `tell` hears of each round before it begins."""
    report = Report(plan)
    report.load.append(os.getloadavg()[0])
    for number in range(plan.rounds if plan.scopes else 0):
        for load in plan.loads:
            tell(f"round {number + 1} of {plan.rounds}, {load}")
            with loaded() if load == "busy" else contextlib.nullcontext():
                _round(report, number, load)
    report.load.append(os.getloadavg()[0])
    return report


def _round(report: Report, number: int, load: str) -> None:
    plan = report.plan
    turn = number % len(plan.measures)
    for scope, event in plan.settings():
        for measure_ in (*plan.measures[turn:], *plan.measures[:turn]):
            if measure_ in report.missing:
                continue
            key = Key(load, scope, event, measure_)
            try:
                told = run(words(plan, key))
            except _RefusedError as error:
                report.missing[measure_] = str(error)
                for each in [each for each in report.runs if each.measure == measure_]:
                    del report.runs[each]
                continue
            report.runs.setdefault(key, []).append(told)


class _RefusedError(Exception):
    """The machine does not allow a measure."""


def run(line: list[str]) -> dict[str, Any]:
    """What one run of the program told."""
    done = subprocess.run(
        line,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=PATIENCE_S,
        check=False,
    )
    said = done.stderr.strip()
    if done.returncode and ("real-time priority" in said or "processor " in said):
        raise _RefusedError(said)
    if done.returncode:
        raise BeowireError(f"beowire-activation ended with {done.returncode}:\n{said}")
    return checked(done.stdout)


def checked(said: str) -> dict[str, Any]:
    """What the program told, if it is what it should be."""
    try:
        told: dict[str, Any] = json.loads(said)
        for step in STEPS:
            figures(told[f"{step}_ns"])
    except (ValueError, KeyError, TypeError) as error:
        raise BeowireError(f"beowire-activation printed {said[:200]!r}") from error
    return told


@contextlib.contextmanager
def loaded() -> Iterator[int]:
    """Our own load for as long: the number of its processes, which end with the first of them."""
    count = len(os.sched_getaffinity(0))
    with subprocess.Popen(
        [str(places.product(PROGRAM)), "load", str(count)], stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            yield int(json.loads(child.stdout.readline())["processes"])
        finally:
            child.terminate()
