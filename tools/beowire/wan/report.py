# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the sweeps found: performance relative to the same lab without emulation, as in [C2], beside
the figures that the paper states."""

from dataclasses import asdict, dataclass
from typing import Any

from beowire.bench import samples
from beowire.bench.samples import Ratio
from beowire.wan.grid import CLEAR, TRANSPORTS, Grid, Point, Problem, SweepName
from beowire.wan.results import Measured, Results

PAPER_DELAY = {25.0: 0.75, 50.0: 0.5}
"""By delay in ms: relative performance [C2]."""
PAPER_RATE_MBIT = 60.0
"""More rate gains hardly anything [C2]."""
PAPER_BLOCKS = (6400, 10, 100, 2.5)
"""At that size and 25 ms the first block size takes that many times as long as the second [C2]."""
PAPER_FLAT = (60, 6)
"""Between N/60 and N/6 the block size changes little [C2]."""


@dataclass(frozen=True)
class Row:
    """One transport over one line, in the sweep's terms."""

    sweep: SweepName
    point: Point
    time_s: float
    """The median of the rounds."""
    relative: Ratio | None
    """Performance to that without emulation; None: that is not measured."""
    paper: float | None
    """What the paper has for it."""
    invalid: tuple[str, ...]
    """What the emulator says against it; empty: nothing."""
    rounds: int
    judged: bool
    """An emulator watched itself; a cable or the kernel's token bucket does not."""


@dataclass(frozen=True)
class Report:
    """All rows, and what in them can be compared with the paper's sentences."""

    rows: list[Row]
    over_tcp: dict[str, Ratio]
    """Time over Beowire to time over TCP, by problem and line."""
    notes: list[str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def evaluate(grid: Grid, results: Results) -> Report:
    """Out of the results that are there; a grid may be half done."""
    found: dict[Point, list[Measured]] = {}
    for number in range(1, grid.rounds + 1):
        for problem, line in grid.cases():
            for transport in TRANSPORTS:
                point = Point(transport, problem, line)
                if (measured := results.find(number, point)) is not None:
                    found.setdefault(point, []).append(measured)
    rows = [
        _row(sweep.name, Point(transport, problem, line), found)
        for sweep in grid.sweeps
        for problem in sweep.problems
        for line in sweep.lines
        for transport in TRANSPORTS
        if Point(transport, problem, line) in found
    ]
    return Report(rows, _over_tcp(grid, found), _notes(rows))


def _times(found: dict[Point, list[Measured]], point: Point) -> list[float]:
    return [each.time_s for each in found.get(point, [])]


def _paired(over: list[float], under: list[float]) -> Ratio | None:
    """A ratio of the rounds that both have."""
    rounds = min(len(over), len(under))
    return samples.ratio(over[:rounds], under[:rounds]) if rounds else None


def _row(sweep: SweepName, point: Point, found: dict[Point, list[Measured]]) -> Row:
    base = Point(point.transport, point.problem, CLEAR)
    runs = found[point]
    reasons = [
        reason for run in runs if run.verdict.valid is False for reason in run.verdict.reasons
    ]
    return Row(
        sweep=sweep,
        point=point,
        time_s=samples.percentiles(_times(found, point))["p50"],
        relative=_paired(_times(found, base), _times(found, point)),
        paper=PAPER_DELAY.get(point.line.delay_ms) if sweep == "delay" else None,
        invalid=tuple(dict.fromkeys(reasons)),
        rounds=len(runs),
        judged=all(run.verdict.valid is not None for run in runs),
    )


def _over_tcp(grid: Grid, found: dict[Point, list[Measured]]) -> dict[str, Ratio]:
    ratios = {}
    for problem, line in grid.cases():
        tcp, beowire = (_times(found, Point(each, problem, line)) for each in TRANSPORTS)
        if (ratio := _paired(beowire, tcp)) is not None:
            ratios[f"{problem}, {line}"] = ratio
    return ratios


def _notes(rows: list[Row]) -> list[str]:
    notes = []
    for transport in TRANSPORTS:
        own = [row for row in rows if row.point.transport == transport]
        for text in (_saturation(own), *_flatness(own), *_blocks(own)):
            if text:
                notes.append(f"{transport}: {text}")
    return notes


def _saturation(rows: list[Row]) -> str:
    """The least rate from which on the performance stays within 5 % of that at the highest."""
    swept = sorted(
        (row.point.line.rate_mbit, row.relative.value)
        for row in rows
        if row.sweep == "rate" and row.relative
    )
    if len(swept) < 3:
        return ""
    best = swept[-1][1]
    enough = [rate for rate, value in swept if value >= 0.95 * best]
    return (
        f"within 5 % of the performance at {swept[-1][0]:g} Mbit/s from {enough[0]:g} Mbit/s on "
        f"(paper: near {PAPER_RATE_MBIT:g})"
    )


def _flatness(rows: list[Row]) -> list[str]:
    """Slowest to fastest among the block sizes that the paper calls equal."""
    notes = []
    lines = dict.fromkeys(row.point.line for row in rows if row.sweep == "block")
    for line in lines:
        times = [
            row.time_s
            for row in rows
            if row.sweep == "block" and row.point.line == line and _flat(row.point.problem)
        ]
        if len(times) > 1:
            notes.append(
                f"at {line} blocks from N/60 to N/6 differ by a factor of "
                f"{max(times) / min(times):.2f} (paper: hardly)"
            )
    return notes


def _flat(problem: Problem) -> bool:
    low, high = PAPER_FLAT
    return problem.size / low <= problem.block <= problem.size / high


def _blocks(rows: list[Row]) -> list[str]:
    """The smallest block's time to the largest's, at the largest size of the sweep over sizes."""
    swept = [row for row in rows if row.sweep == "size"]
    size = max((row.point.problem.size for row in swept), default=0)
    by_block = {
        row.point.problem.block: row.time_s for row in swept if row.point.problem.size == size
    }
    if len(by_block) < 2:
        return []
    small, large = min(by_block), max(by_block)
    paper_size, paper_small, paper_large, factor = PAPER_BLOCKS
    return [
        f"N={size}: block {small} takes {by_block[small] / by_block[large]:.2f} times as long as "
        f"block {large} (paper, N={paper_size}: block {paper_small} {factor} times block "
        f"{paper_large})"
    ]
