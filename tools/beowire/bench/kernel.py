# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel host measured by executed instructions, in guests that count them.

A guest measures all cases in turn, round by round. It is started several times: every start must
give the same output to the last bit, else the figures are not counts of instructions alone.
"""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from beowire import places
from beowire.bench import kernel_profile, samples
from beowire.bench.kernel_figures import Figure, Row
from beowire.vm import counted, machine

PROGRAM = "hosts/kernel/bench/beowire-kernel-bench"
_LIMIT_S = 3600
_WALL = {"trips": 2000, "warmup": 500}
_WALL_ROUNDS = 9
"""At least: other work of the host's disturbs some, and the ratio's interval is drawn from them."""

Progress = Callable[[str], None]
Records = dict[str, list[dict[str, Any]]]
"""What the program told of each case, one record for each round."""


@dataclass(frozen=True)
class Plan:
    """What to measure, in which kernel, and how often."""

    figures: list[Figure]
    kernel: str = ""
    rounds: int = 2
    repeats: int = 3
    profile: int = 0
    """Round trips of which each instruction is looked at; 0: none."""


@dataclass(frozen=True)
class Measured:
    """One row: per round trip or message, instructions (of wall-clock figures: nanoseconds)."""

    row: Row
    value: float
    """What is compared: the mean, of wall-clock times and of growth the median."""
    p50: float
    min: float
    max: float
    ratio: samples.Ratio | None
    """To the figure's first row; none for that row itself."""
    sent: float | None = None
    """Of rows of messages, until the sender's calls had returned."""
    copied_tx: float | None = None
    copied_rx: float | None = None
    """Bytes that the processor copied for each byte of payload."""
    checksum: float | None = None
    """Of a row with the payload checksum: what it takes, the row without it subtracted."""
    retransmits: int = 0


@dataclass
class Report:
    """What was measured and how it came about."""

    kernel: str
    rounds: int
    repeats: int
    identical: bool = True
    figures: list[tuple[Figure, list[Measured]]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        figures = [
            {
                "name": figure.name,
                "what": figure.what,
                "unit": "ns" if figure.wall else "instructions",
                "rows": [{"case": each.row.case, **asdict(each)} for each in rows],
            }
            for figure, rows in self.figures
        ]
        return {**asdict(replace(self, figures=[])), "figures": figures}


@dataclass(frozen=True)
class Profile:
    """Where the instructions of one case go."""

    row: Row
    shares: list[kernel_profile.Share]


class Bench:
    """The kernel and the program, ready to be measured."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.kernel = machine.find_kernel(plan.kernel)
        self.program = places.product(PROGRAM)

    def guest(self, words: list[str], wall: bool) -> machine.Guest:
        return machine.Guest(
            command=[str(self.program), *words],
            kernel=self.plan.kernel,
            cpus=2 if wall else 1,
            memory_mb=512,
            limit_s=_LIMIT_S,
            load=["veth"],
            modules=True,
            icount=not wall,
        )

    def measure(self, progress: Progress) -> Report:
        plan = self.plan
        report = Report(self.kernel.release, plan.rounds, plan.repeats)
        for wall in (False, True):
            figures = [figure for figure in plan.figures if figure.wall == wall]
            cases = list(dict.fromkeys(case for figure in figures for case in cases_of(figure)))
            if not cases:
                continue
            rounds = max(plan.rounds, _WALL_ROUNDS) if wall else plan.rounds
            words = ["--rounds", str(rounds), *(["--monotonic"] if wall else []), *cases]
            outputs = []
            for number in range(1, (1 if wall else plan.repeats) + 1):
                progress(f"{'two processors' if wall else f'guest {number} of {plan.repeats}'}")
                outputs.append(counted.run(self.guest(words, wall)))
            report.identical &= len(set(outputs)) == 1
            records = records_of(cases, outputs[0])
            absent = {case for case in cases if any("absent" in told for told in records[case])}
            figures = [without(figure, absent) for figure in figures]
            report.figures += [(figure, evaluate(figure, records)) for figure in figures]
        return report

    def profile(self, progress: Progress) -> list[Profile]:
        plan = self.plan
        rows = [row for figure in plan.figures if not figure.wall for row in figure.rows]
        trips = plan.profile
        cases = [f"{row.case},profile={trips}" for row in rows]
        progress("the kernel's symbols")
        symbols = kernel_profile.of_kernel(self.kernel, plan.kernel)
        progress(f"{len(cases)} cases, {trips} round trips each")
        recorder = kernel_profile.Recorder(self.program)
        output = counted.run(self.guest(["--symbols", *cases], wall=False), recorder.follow)
        records = records_of(cases, output)
        rows = [r for r, case in zip(rows, cases, strict=True) if "absent" not in records[case][0]]
        symbols += kernel_profile.of_modules(output) + kernel_profile.of_program(self.program)
        table = kernel_profile.Symbols(symbols)
        return [
            Profile(row, kernel_profile.shares(trace, table, trips * row.messages))
            for row, trace in zip(rows, recorder.traces, strict=True)
        ]


def _bulk_alone(figure: Figure) -> str:
    return replace(figure.rows[0], transport="none", options={"bulk": figure.bulk}).case


def _beside_bulk(figure: Figure, row: Row) -> str:
    return replace(row, options={**row.options, "bulk": figure.bulk}).case


def _alone(figure: Figure, row: Row) -> str:
    return replace(row, options={**row.options, **(_WALL if figure.wall else {})}).case


def cases_of(figure: Figure) -> list[str]:
    """The cases that a figure is made of."""
    cases = [_alone(figure, row) for row in figure.rows]
    if figure.bulk:
        cases += [_bulk_alone(figure), *(_beside_bulk(figure, row) for row in figure.rows)]
    return cases


def without(figure: Figure, absent: set[str]) -> Figure:
    """The rows that the kernel has."""
    return replace(figure, rows=[row for row in figure.rows if _alone(figure, row) not in absent])


def records_of(cases: list[str], output: str) -> Records:
    records: Records = {case: [] for case in cases}
    for line in output.splitlines():
        told = json.loads(line)
        if "case" in told:
            records[cases[told["case"]]].append(told)
    return records


def evaluate(figure: Figure, records: Records) -> list[Measured]:
    """The rows of a figure, compared with its first."""
    base = _rounds(figure, figure.rows[0], records)
    rows = [_measured(figure, row, base, records) for row in figure.rows]
    values = {each.row.case: each.value for each in rows}
    return [replace(each, checksum=_checksum(each, values)) for each in rows]


def _checksum(measured: Measured, values: dict[str, float]) -> float | None:
    row = measured.row
    unchecked = replace(row, options={**row.options, "checksum": "off"}).case
    if row.options.get("checksum") != "on" or unchecked not in values:
        return None
    return measured.value - values[unchecked]


def _rounds(figure: Figure, row: Row, records: Records) -> list[float]:
    """What each round says of a row: the mean of its trips, or what bulk beside adds to that.

    The mean, as what timers do now and then belongs to a transport as well. The median of
    wall-clock times, to which the host adds now and then, and of growth, a small difference.
    """
    alone = _of_case(figure, _alone(figure, row), records, row.messages)
    if not figure.bulk:
        return alone
    both = _of_case(figure, _beside_bulk(figure, row), records, row.messages)
    bulk = _of_case(figure, _bulk_alone(figure), records, 1)
    return [a - b - c for a, b, c in zip(both, bulk, alone, strict=True)]


def _of_case(figure: Figure, case: str, records: Records, messages: int) -> list[float]:
    every = [_samples(told["whole"], messages) for told in records[case]]
    if figure.wall or figure.bulk:
        return [samples.percentiles(each)["p50"] for each in every]
    return [sum(each) / len(each) for each in every]


def _samples(pairs: list[list[int]], messages: int) -> list[float]:
    """Out of values and how often each is there, per message."""
    return [value / messages for value, times in pairs for _ in range(times)]


def _measured(figure: Figure, row: Row, base: list[float], records: Records) -> Measured:
    told = records[_alone(figure, row)]
    rounds = _rounds(figure, row, records)
    every = [value for each in told for value in _samples(each["whole"], row.messages)]
    sent = [value for each in told for value in _samples(each.get("sent", []), row.messages)]
    payload = row.bytes * len(every) * row.messages
    if figure.bulk:
        every = rounds
    spread = samples.percentiles(every)
    counted = "tx" in told[0]
    ratio = None
    if row != figure.rows[0] and min(base) > 0:
        ratio = _ratio(rounds, base)
    return Measured(
        row=row,
        value=samples.percentiles(rounds)["p50"],
        p50=spread["p50"],
        min=spread["min"],
        max=spread["max"],
        ratio=ratio,
        sent=sum(sent) / len(sent) if sent else None,
        copied_tx=sum(each["tx"]["copied_tx"] for each in told) / payload if counted else None,
        copied_rx=sum(each["rx"]["copied_rx"] for each in told) / payload if counted else None,
        retransmits=sum(each["tx"]["retransmits"] for each in told) if counted else 0,
    )


def _ratio(rounds: list[float], base: list[float]) -> samples.Ratio:
    if min(rounds) > 0:
        return samples.ratio(rounds, base)
    # Growth that is none, or less, has no logarithm, and so no interval.
    value = samples.percentiles(rounds)["p50"] / samples.percentiles(base)["p50"]
    return samples.Ratio(value, -math.inf, math.inf)
