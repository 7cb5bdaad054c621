# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel host measured by executed instructions, in guests that count them.

A guest measures all cases in turn, round by round. It is started several times: every start must
give the same output to the last bit, else the figures are not counts of instructions alone.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from beowire import kernel_profile, places, samples, vm, vm_counted, vm_module
from beowire.kernel_figures import Figure, Row

PROGRAM = "hosts/kernel/bench/beowire-kernel-bench"
_CHECKSUMS = ["crc32c_generic", "crc32c_intel"]
"""What libcrc32c asks modprobe for, which is not in the guest."""
_WALL = {"trips": 2000, "warmup": 500}

Progress = Callable[[str], None]
Records = dict[str, list[dict[str, Any]]]
"""What the program told of each case, one record for each round."""


@dataclass(frozen=True)
class Plan:
    """What to measure, in which kernel, and how often."""

    figures: list[Figure]
    kernel: str = ""
    rounds: int = 3
    repeats: int = 3
    profile: int = 0
    """Round trips of which each instruction is looked at; 0: none."""


@dataclass(frozen=True)
class Measured:
    """One row: per round trip or message, instructions (of wall-clock figures: nanoseconds)."""

    row: Row
    p50: float
    mean: float
    min: float
    max: float
    ratio: samples.Ratio | None
    """To the figure's first row; none for that row itself."""
    sent_p50: float | None = None
    """Of rows of messages, until the sender's calls had returned."""
    copied_tx: float | None = None
    copied_rx: float | None = None
    """Bytes that the processor copied for each byte of payload."""
    retransmits: int = 0


@dataclass
class Report:
    """What was measured and how it came about."""

    kernel: str
    module: bool
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
    """The kernel, the modules and the program, ready to be measured."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.kernel = vm.find_kernel(plan.kernel)
        self.program = places.product(PROGRAM)
        self.modules = vm_module.Modules([], [])
        self.has_module = (places.root() / "hosts" / "kernel" / "Kbuild").exists()
        if self.has_module:
            self.modules = vm_module.build(self.kernel)
        self.figures = [figure.with_module(self.has_module) for figure in plan.figures]

    def guest(self, words: list[str], wall: bool) -> vm_counted.Guest:
        return vm_counted.Guest(
            program=self.program,
            words=words,
            stock=["veth", *_CHECKSUMS, *self.modules.stock],
            modules=self.modules.files,
            counted=not wall,
            cpus=2 if wall else 1,
        )

    def measure(self, progress: Progress) -> Report:
        plan = self.plan
        report = Report(self.kernel.release, self.has_module, plan.rounds, plan.repeats)
        for wall in (False, True):
            figures = [figure for figure in self.figures if figure.wall == wall]
            cases = list(dict.fromkeys(case for figure in figures for case in cases_of(figure)))
            if not cases:
                continue
            words = ["--rounds", str(plan.rounds), *(["--monotonic"] if wall else []), *cases]
            outputs = []
            for number in range(1, (1 if wall else plan.repeats) + 1):
                progress(f"{'two processors' if wall else f'guest {number} of {plan.repeats}'}")
                outputs.append(vm_counted.run(self.guest(words, wall), self.kernel))
            report.identical &= len(set(outputs)) == 1
            records = records_of(cases, outputs[0])
            absent = {case for case in cases if any("absent" in told for told in records[case])}
            figures = [without(figure, absent) for figure in figures]
            report.figures += [(figure, evaluate(figure, records)) for figure in figures]
        return report

    def profile(self, progress: Progress) -> list[Profile]:
        rows = [row for figure in self.figures if not figure.wall for row in figure.rows]
        trips = self.plan.profile
        cases = [f"{row.case},profile={trips}" for row in rows]
        progress("the kernel's symbols")
        symbols = kernel_profile.of_kernel(self.kernel, self.plan.kernel)
        progress(f"{len(cases)} cases, {trips} round trips each")
        recorder = kernel_profile.Recorder(self.program)
        output = vm_counted.run(
            self.guest(["--symbols", *cases], wall=False), self.kernel, recorder.follow
        )
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
    base = _medians(figure, figure.rows[0], records)
    return [_measured(figure, row, base, records) for row in figure.rows]


def _medians(figure: Figure, row: Row, records: Records) -> list[float]:
    """What each round says of a row: its median trip, or what bulk beside adds to that."""
    alone = _of_case(_alone(figure, row), records, row.messages)
    if not figure.bulk:
        return alone
    both = _of_case(_beside_bulk(figure, row), records, row.messages)
    bulk = _of_case(_bulk_alone(figure), records, 1)
    return [a - b - c for a, b, c in zip(both, bulk, alone, strict=True)]


def _of_case(case: str, records: Records, messages: int) -> list[float]:
    return [samples.percentiles(each["whole"])["p50"] / messages for each in records[case]]


def _measured(figure: Figure, row: Row, base: list[float], records: Records) -> Measured:
    told = records[_alone(figure, row)]
    medians = _medians(figure, row, records)
    every = [value / row.messages for each in told for value in each["whole"]]
    if figure.bulk:
        every = medians
    spread = samples.percentiles(every)
    sent = [value / row.messages for each in told for value in each.get("sent", [])]
    payload = row.bytes * sum(len(each["whole"]) for each in told) * row.messages
    counted = bool(told and "tx" in told[0])
    ratio = None
    if row != figure.rows[0] and min(base) > 0:
        ratio = _ratio(medians, base)
    return Measured(
        row=row,
        p50=spread["p50"],
        mean=sum(every) / len(every),
        min=spread["min"],
        max=spread["max"],
        ratio=ratio,
        sent_p50=samples.percentiles(sent)["p50"] if sent else None,
        copied_tx=sum(each["tx"]["copied_tx"] for each in told) / payload if counted else None,
        copied_rx=sum(each["rx"]["copied_rx"] for each in told) / payload if counted else None,
        retransmits=sum(each["tx"]["retransmits"] for each in told) if counted else 0,
    )


def _ratio(medians: list[float], base: list[float]) -> samples.Ratio:
    if min(medians) > 0:
        return samples.ratio(medians, base)
    value = samples.percentiles(medians)["p50"] / samples.percentiles(base)["p50"]
    return samples.Ratio(value, value, value)
