# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the points of a grid that are not yet measured, each to the disk as it ends.

A run proves which way its payload went, and all runs of a problem must find the same solution to
the last bit. A run during which the emulator came late is repeated; if it stays late its result
is kept, marked as invalid.
"""

import json
import os
from collections.abc import Callable

from beowire import places
from beowire.bench import pingpong
from beowire.errors import BeowireError
from beowire.run import mpi, path
from beowire.run.job import run_captured
from beowire.run.launch import Job
from beowire.wan.grid import Grid, Point
from beowire.wan.model import Model, calibration, fit
from beowire.wan.results import Measured, Results, Setting
from beowire.wan.sites import WanLab

ATTEMPTS = 3
"""Runs of a point until its result is kept though the emulator was late."""
BEOWIRE_LINKS = "local,udp"
"""Raw frames do not cross a router."""
_PATIENCE = 20
_PATIENCE_MIN_S = 120.0

Tell = Callable[[str], None]


def setting(nodes: int, cpus: float) -> Setting:
    """What is measured on."""
    told = pingpong.machine()
    return Setting(
        nodes=nodes,
        cpus=cpus,
        processors=os.cpu_count() or 1,
        machine=f"{told['architecture']}, Linux {told['kernel']}",
        library=mpi.find("openmpi").name,
    )


def check_tools() -> None:
    """Names what is missing before anything is begun."""
    program()
    places.provider_dir()
    places.product("emulator/beowire-link")


def program() -> str:
    """The program that does HPL's work."""
    try:
        return str(places.example("linpack"))
    except BeowireError as error:
        raise BeowireError(
            error.what,
            "Install ScaLAPACK (apt-get install libscalapack-openmpi-dev) and build again: "
            "meson setup --reconfigure build && ninja -C build",
        ) from error


def measure(lab: WanLab, number: int, point: Point, limit_s: float) -> Measured:
    """One point, repeated while the emulator is late."""
    lab.set_line(point.line)
    for attempt in range(1, ATTEMPTS + 1):
        measured = _once(lab, number, point, limit_s, attempt)
        if measured.verdict.valid is not False:
            break
    return measured


def _once(lab: WanLab, number: int, point: Point, limit_s: float, attempt: int) -> Measured:
    words = ["--size", str(point.problem.size), "--block", str(point.problem.block), "--json"]
    over_beowire = point.transport == "beowire"
    job = Job(
        [program(), *words],
        len(lab.cluster.hosts),
        point.transport,
        per_node=1,
        environment={"BEOWIRE_LINKS": BEOWIRE_LINKS} if over_beowire else {},
    )
    lab.begin()
    record, output = run_captured(job, lab.cluster, limit_s)
    verdict = lab.verdict()
    path.prove(record)
    told = json.loads(output)
    return Measured(
        round=number,
        point=point,
        time_s=told["time_ns"] / 1e9,
        residual=told["residual"],
        checksum=told["checksum"],
        payload_bytes=record.payload_bytes if over_beowire else record.tcp_octets,
        retransmits=record.retransmits,
        run_s=record.elapsed_ns / 1e9,
        verdict=verdict,
        attempts=attempt,
    )


def calibrated(lab: WanLab, results: Results, tell: Tell) -> Model:
    """The model, from small runs, or from those that the file has."""
    times = {}
    for point in calibration():
        measured = results.find(0, point)
        if measured is None:
            tell(f"small run for the prediction: {point}")
            measured = measure(lab, 0, point, _PATIENCE_MIN_S)
            _check_answer(results, measured)
            results.add(measured)
        times[point] = measured.time_s
    return fit(times)


def sweep(lab: WanLab, grid: Grid, results: Results, model: Model, tell: Tell) -> None:
    """All of the grid's runs that are not in the file."""
    done = results.done()
    missing = [run for run in grid.runs() if run not in done]
    taken_s = predicted_s = 0.0
    for step, (number, point) in enumerate(missing, 1):
        left = [each for _, each in missing[step - 1 :]]
        tell(f"{step}/{len(missing)} {point}{_left(model, left, taken_s, predicted_s)}")
        expected_s = model.run_s(point)
        measured = measure(lab, number, point, max(_PATIENCE * expected_s, _PATIENCE_MIN_S))
        _check_answer(results, measured)
        results.add(measured)
        taken_s += measured.run_s * measured.attempts
        predicted_s += expected_s


def _left(model: Model, points: list[Point], taken_s: float, predicted_s: float) -> str:
    """The time left, corrected by how the prediction did so far."""
    factor = taken_s / predicted_s if predicted_s else 1.0
    return f", {duration(factor * sum(map(model.run_s, points)))} left"


def duration(time_s: float) -> str:
    """For people: 90 s, 12 min, 3.4 h."""
    if time_s < 100:
        return f"{time_s:.0f} s"
    return f"{time_s / 60:.0f} min" if time_s < 100 * 60 else f"{time_s / 3600:.1f} h"


def _check_answer(results: Results, measured: Measured) -> None:
    """The solution of a problem depends on nothing that is swept."""
    for other in results.measured:
        if other.point.problem == measured.point.problem and other.checksum != measured.checksum:
            raise BeowireError(
                f"{measured.point} finds another solution ({measured.checksum}) than {other.point} "
                f"({other.checksum}).",
                f"One of the two transports damages data, or {results.path} is of another build.",
                code=4,
            )
