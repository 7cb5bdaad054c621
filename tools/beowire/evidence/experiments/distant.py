# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""HPL's work on two sites over an emulated line [C2], and whether the second site pays [C3].

Runs are those of `bench wan`, in a file of its kind that is kept beside the state: entries share
points, and an experiment that was interrupted goes on.
"""

import itertools
import os

from beowire.evidence.entry import Parameters
from beowire.evidence.experiment import Context
from beowire.evidence.figures import Curve, Figures
from beowire.run.launch import Transport
from beowire.wan import run, sites
from beowire.wan.grid import CLEAR, Line, Point, Problem
from beowire.wan.report import PAPER_FLAT
from beowire.wan.results import Results

_FILE = "distant.jsonl"
_NODES = 4
_ABOUT = 1.1
"""A block of 100 at N = 6400, which the paper calls N/60, is N/64."""


def sweep(parameters: Parameters, context: Context) -> Figures:
    """Problems over lines: performance relative to the same lab without emulation, and seconds.

    x is the delay, the rate, the size, or how many blocks the size has; a curve is named by its
    transport and what else tells it from others.
    """
    lines = [Line(float(delay), float(rate)) for delay, rate in parameters["lines"]]
    problems = [Problem(int(size), int(block)) for size, block in parameters["problems"]]
    transports: tuple[Transport, ...] = tuple(parameters["transports"])
    rounds = range(1, int(parameters["rounds"]) + 1)
    wanted = [
        (Point(transport, problem, line), number)
        for number in rounds
        for problem in problems
        for line in (CLEAR, *lines)
        for transport in transports
    ]
    times: dict[tuple[Point, int], float] = {}
    remarks = _measured(context, _results(context), wanted, times)
    relative: dict[str, list[tuple[float, float]]] = {}
    seconds: dict[str, list[tuple[float, float]]] = {}
    for transport in transports:
        for problem in problems:
            base = _mean(times, Point(transport, problem, CLEAR), rounds)
            for line in lines:
                took = _mean(times, Point(transport, problem, line), rounds)
                x, name = _placed(str(parameters["across"]), problem, line, problems)
                relative.setdefault(f"relative, {transport}{name}", []).append((x, base / took))
                seconds.setdefault(f"seconds, {transport}{name}", []).append((x, took))
    curves: dict[str, Curve] = {
        name: tuple(sorted(each)) for name, each in {**relative, **seconds}.items()
    }
    numbers = _of_blocks(curves) if parameters["across"] == "block" else {}
    return Figures(numbers=numbers, curves=curves, remarks=remarks)


def _placed(
    across: str, problem: Problem, line: Line, problems: list[Problem]
) -> tuple[float, str]:
    """The x of a point, and what its curve's name ends with."""
    if across == "delay":
        return line.delay_ms, ""
    if across == "rate":
        return line.rate_mbit, ""
    if across == "block":
        return problem.size / problem.block, f", {line.delay_ms:g} ms"
    blocks = sorted({each.block for each in problems})
    named = {blocks[0]: ", small block", blocks[-1]: ", large block"}
    return float(problem.size), named.get(problem.block, f", block {problem.block}")


def _of_blocks(curves: dict[str, Curve]) -> dict[str, float]:
    """What larger blocks bring, step by step, and the ends of the paper's flat range."""
    low, high = PAPER_FLAT[::-1]
    numbers = {}
    for name, curve in curves.items():
        if not name.startswith("seconds"):
            continue
        by_block = curve[::-1]
        for step, (small, large) in enumerate(itertools.pairwise(by_block), 1):
            numbers[f"{name}, gain of step {step}"] = small[1] / large[1]
        flat = [y for x, y in by_block if low <= x <= high * _ABOUT]
        if flat:
            numbers[f"{name}, at N/{high}"], numbers[f"{name}, at N/{low}"] = flat[0], flat[-1]
    return numbers


def _results(context: Context) -> Results:
    run.check_tools()
    cpus = sites.default_cpus(_NODES, os.cpu_count() or 1)
    return Results(context.directory / _FILE, run.setting(_NODES, cpus))


def _measured(
    context: Context,
    results: Results,
    wanted: list[tuple[Point, int]],
    times: dict[tuple[Point, int], float],
) -> tuple[str, ...]:
    """Fills in the times of all points, those that the file lacks by measuring; what the emulator
    says against its own work comes back."""
    found = {key: results.find(key[1], key[0]) for key in wanted}
    missing = [key for key, measured in found.items() if measured is None]
    setting = results.setting
    if missing:
        with sites.made(setting.nodes, setting.cpus) as lab:
            for place, (point, number) in enumerate(missing, 1):
                context.tell(f"{place} of {len(missing)}: {point}")
                measured = run.measure(lab, number, point, context.left_s())
                results.add(measured)
                found[point, number] = measured
    late = []
    for key, each in found.items():
        assert each is not None
        times[key] = each.time_s
        if each.verdict.valid is False:
            late.append(f"{key[0]}: {each.verdict}")
    told = f"{setting.nodes} nodes of {setting.cpus:g} processors (limits by control groups)"
    return told, *late


def _mean(times: dict[tuple[Point, int], float], point: Point, rounds: range) -> float:
    found = [times[point, number] for number in rounds]
    return sum(found) / len(found)


def verdict(parameters: Parameters, context: Context) -> Figures:
    """The speedup of both sites together over one of them, against the delay; above 1 the distant
    nodes pay."""
    problem = Problem(int(parameters["size"]), int(parameters["block"]))
    transport: Transport = parameters["transport"]
    results = _results(context)
    number = 1
    times: dict[tuple[Point, int], float] = {}
    lines = [Line(float(each), float(parameters["rate"])) for each in parameters["delays"]]
    clear = Point(transport, problem, CLEAR)
    wanted = [(clear, number), *((Point(transport, problem, line), number) for line in lines)]
    remarks = _measured(context, results, wanted, times)
    one = _one_site_s(context, results, clear)
    curve = tuple(
        (line.delay_ms, one / times[Point(transport, problem, line), number]) for line in lines
    )
    numbers = {"one site, s": one, "both sites to one, no line": one / times[clear, number]}
    return Figures(numbers=numbers, curves={"both sites to one": curve}, remarks=remarks)


def _one_site_s(context: Context, results: Results, point: Point) -> float:
    """The same on one site alone: half of the nodes, without a line."""
    context.tell(f"one site alone: {point}")
    with sites.made(results.setting.nodes, results.setting.cpus) as lab:
        lab.cluster = lab.site()
        return run.measure(lab, 1, point, context.left_s()).time_s
