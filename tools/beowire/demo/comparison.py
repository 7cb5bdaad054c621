# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The demonstration: unmodified MPI programs over TCP and over Beowire, in turn, on one cluster.

Every run proves its path and every answer must agree to the last bit; any doubt is an error.
What was measured is one `Result`, which is printed and written as JSON.
"""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from beowire import places
from beowire.bench import pingpong, samples
from beowire.bench.matrix import fill, stacks
from beowire.bench.matrix.cells import Cell
from beowire.bench.matrix.grid import QUICK
from beowire.bench.matrix.nodes import Nodes
from beowire.bench.matrix.store import Store
from beowire.demo import capture, place
from beowire.demo.faults import Killed, Lossy, kill_a_rank, lose_frames
from beowire.demo.place import Place
from beowire.demo.programs import PROGRAMS, Outcome, Program
from beowire.errors import BeowireError
from beowire.lab import lab, status, up
from beowire.progress import Progress
from beowire.run import path
from beowire.run.cluster import Cluster, of_lab
from beowire.run.job import run_captured
from beowire.run.launch import Job, Transport

NODES = 4
RUN_LIMIT_S = 300.0
FRAMES_SHOWN = 3
TRANSPORTS: tuple[Transport, ...] = ("tcp", "beowire")
MATRIX = replace(QUICK, figures=("latency", "bandwidth"), links=("raw", "udp"))


@dataclass(frozen=True)
class Row:
    """One program, compared."""

    name: str
    about: str
    unit: str
    lower_is_better: bool
    tcp: list[float]
    """The figure of each round."""
    beowire: list[float]
    ratio: samples.Ratio
    answers_agree: bool | None
    """None: the program computes no answer."""


@dataclass
class Result:
    """All that the demonstration found."""

    rows: list[Row] = field(default_factory=list)
    carried: dict[str, dict[str, int]] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)
    stock: dict[str, str] = field(default_factory=dict)
    """Files that must not change, and their SHA-256."""
    library: str = ""
    """The MPI library that the programs load."""
    frames: str = ""
    lossy: Lossy | None = None
    killed: Killed | None = None
    left_out: list[str] = field(default_factory=list)
    """What this machine does not allow to show."""
    answers: dict[str, str] = field(default_factory=dict)
    lab: dict[str, Any] = field(default_factory=dict)
    """The lab's own description; empty on real hosts."""
    cells: list[Cell] = field(default_factory=list)
    """A row of `beowire bench matrix`, between two of the nodes."""

    def as_json(self) -> dict[str, Any]:
        """All of it; the cells as in the file of `beowire bench matrix`."""
        return {
            **asdict(self),
            "cells": [cell.as_json() for cell in self.cells],
            "order": "A B A B, A is TCP",
            "machine": pingpong.machine(),
        }


def steps(hosts: bool) -> int:
    """How many steps are told."""
    runs = sum(2 * program.rounds for program in PROGRAMS)
    return runs + (1 if hosts else 4)


def on_lab(name: str, progress: Progress) -> Result:
    """The whole demonstration on a lab of its own, which is gone afterwards."""
    with up.termination_raises():
        progress.begin(f"making a lab of {NODES} nodes")
        made = up.up(name, NODES, lab.MTU_DEFAULT_BYTES)
        try:
            return _on_made_lab(made, progress)
        finally:
            up.down(name)


def _on_made_lab(made: lab.Lab, progress: Progress) -> Result:
    cluster = of_lab(made.name)
    result = Result(lab=status.described(made))
    with place.on_lab(cluster, NODES) as where:
        compare(where, result, progress)
        result.cells = matrix_row(cluster, progress)
        if made.mode == "loopback":
            result.left_out = [
                f"no raw frames ({made.reason}): the udp link on loopback addresses was used",
                "no decoded frames",
                "no run with lost frames",
            ]
        else:
            progress.begin("catching frames")
            result.frames = _show_frames(made, cluster, where.directory)
            progress.begin("losing 1 % of the frames")
            result.lossy = lose_frames(made, cluster, result.answers)
        progress.begin("killing a rank")
        result.killed = kill_a_rank(cluster)
    return result


def on_hosts(cluster: Cluster, progress: Progress) -> Result:
    """The table alone, between real hosts; what is copied there is removed again."""
    result = Result(left_out=["on real hosts: decoded frames, lost frames, a killed rank"])
    with up.termination_raises():
        progress.begin(f"copying what is needed to {', '.join(cluster.hosts)}")
        with place.on_hosts(cluster, NODES) as where:
            compare(where, result, progress)
    return result


def compare(where: Place, result: Result, progress: Progress) -> None:
    """Runs every program over both transports in turn and adds what came of it to `result`."""
    result.library = mpi_library(places.example("pi"))
    stock = [Path(result.library)]
    if isinstance(where, place.LabPlace):
        stock.append(Path(places.program("hpcc", "hpcc")))
    result.stock = checksums(stock)
    outcomes: dict[tuple[str, Transport], list[Outcome]] = {}
    for program, number, transport in _turns():
        progress.begin(f"{program.name} over {transport}, round {number} of {program.rounds}")
        record, output = run_captured(where.job(program, transport), where.cluster, RUN_LIMIT_S)
        outcome = program.read(output if program.is_example else where.take_report())
        path.prove(record, outcome.payload_bytes)
        outcomes.setdefault((program.name, transport), []).append(outcome)
        result.commands[f"{program.name} over {transport}"] = record.command
        pingpong.add_carried(result.carried, record)
    result.rows = [
        _row(program, outcomes[program.name, "tcp"], outcomes[program.name, "beowire"])
        for program in PROGRAMS
    ]
    result.answers = {program.name: outcomes[program.name, "tcp"][0].answer for program in PROGRAMS}
    if checksums(stock) != result.stock:
        raise BeowireError("A program or library changed while it was measured.")


def matrix_row(cluster: Cluster, progress: Progress) -> list[Cell]:
    """What `beowire bench matrix --quick` says of two nodes, of messages between two ranks."""
    where = Nodes(replace(cluster, hosts=cluster.hosts[:2]))
    links = MATRIX.links if not where.raw_refused else ("udp",)
    grid = replace(MATRIX, links=links, mtus=where.mtus((), asked=False))
    store = Store(None, where.setting)
    fill.fill(grid, where, store, stacks.cores_of(cluster), progress)
    return [store.cells[key] for key in grid.wanted()]


def _turns() -> Iterator[tuple[Program, int, Transport]]:
    """Rounds outermost, so that a change of the machine's mood meets all programs alike."""
    for number in range(1, max(program.rounds for program in PROGRAMS) + 1):
        for program in PROGRAMS:
            if number <= program.rounds:
                for transport in TRANSPORTS:
                    yield program, number, transport


def _row(program: Program, tcp: list[Outcome], beowire: list[Outcome]) -> Row:
    answers = {outcome.answer for outcome in tcp + beowire}
    if len(answers) != 1:
        raise BeowireError(
            f"{program.name} computes different answers: over TCP "
            f"{sorted({outcome.answer for outcome in tcp})}, over Beowire "
            f"{sorted({outcome.answer for outcome in beowire})}."
        )
    tcp_figures = [outcome.figure for outcome in tcp]
    beowire_figures = [outcome.figure for outcome in beowire]
    return Row(
        name=program.name,
        about=program.about,
        unit=program.unit,
        lower_is_better=program.lower_is_better,
        tcp=tcp_figures,
        beowire=beowire_figures,
        ratio=samples.ratio(beowire_figures, tcp_figures),
        answers_agree=True if answers != {""} else None,
    )


def mpi_library(program: Path) -> str:
    """The MPI library that the dynamic linker gives this program."""
    listing = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    match = re.search(r"libmpi\S* => (\S+)", listing.stdout)
    if match is None:
        raise BeowireError(f"{program} loads no MPI library: {listing.stdout}{listing.stderr}")
    return str(Path(match[1]).resolve())


def checksums(files: list[Path]) -> dict[str, str]:
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def _show_frames(made: lab.Lab, cluster: Cluster, working_dir: Path) -> str:
    """A short run of pi, watched at node1's port of the switch."""
    pi = PROGRAMS[0]
    job = Job([str(places.example("pi")), "--precision", "1e-5"], pi.ranks, "beowire")
    with capture.raw_frames(made, "node1") as frames:
        run_captured(job, cluster, RUN_LIMIT_S)
    chosen = capture.one_of_each(frames, FRAMES_SHOWN)
    if len(chosen) < FRAMES_SHOWN:
        raise BeowireError(f"Only {len(frames)} raw frames passed node1's port in a run of pi.")
    file = working_dir / "frames.pcap"
    capture.write_pcap(chosen, file)
    return capture.decode(file)


def check_tools() -> None:
    """Names what is missing before anything is begun."""
    places.provider_dir()
    for example in ("pi", "tridiagonal", "pingpong"):
        places.example(example)
    places.program("hpcc", "hpcc")
    places.program("mpirun.openmpi", "openmpi-bin")
    if shutil.which("tshark") is None:
        raise BeowireError("tshark is not installed.", "Install it: apt-get install tshark")
