# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire bench load`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from beowire import drawing, places
from beowire.bench.load import (
    distribution,
    health,
    incast,
    measure,
    nodes,
    plan,
    plot,
    runs,
    slowdown,
    tables,
)
from beowire.bench.load.distribution import Distribution
from beowire.bench.load.plan import Pattern, Plan
from beowire.bench.load.runs import Carrier, Phase
from beowire.bench.load.store import Round, Store
from beowire.bench.matrix.figures import told_size
from beowire.bench.matrix.pace import Pace, told
from beowire.errors import BeowireError
from beowire.progress import Progress
from beowire.run import mpi, options
from beowire.terminal import note, out
from beowire.topology.keys import format_rate

_SIZES: dict[Pattern, str] = {"mixed": "w4", "beside": "8", "incast": "256k"}
_CLASSES = 10


def run(
    lab: options.Lab = None,
    hosts: options.Hosts = None,
    hostfile: options.HostFile = None,
    pattern: Annotated[
        Literal["mixed", "beside", "incast"],
        typer.Option(help="Sizes at shares of the line; short beside a bulk transfer; waves."),
    ] = "mixed",
    sizes: Annotated[
        str,
        typer.Option(
            help="mixed: w3, w4, w5, uniform, uniform:1k-1m or a file (default: w4). "
            "beside and incast: one size (8, 256k)."
        ),
    ] = "",
    loads: Annotated[str, typer.Option(help="Of mixed, in per cent of the line.")] = "50,80",
    to: Annotated[
        Literal["one", "all"], typer.Option(help="mixed: all to one node, or to random others.")
    ] = "one",
    node_count: Annotated[
        int, typer.Option("--nodes", min=0, help="0: 4, 2 and 17 by pattern, or all named.")
    ] = 0,
    rate: Annotated[str, typer.Option(help="Of the line towards each node (default: 1G).")] = "",
    mtu: Annotated[int, typer.Option(min=576, max=65535, help="Of the lab made for it.")] = 1500,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Measured, of each load in each run.")
    ] = 10.0,
    per_second: Annotated[
        int, typer.Option(min=1, max=100000, help="Short messages beside the bulk transfer.")
    ] = 1000,
    rounds: Annotated[int, typer.Option(min=1, help="Of TCP and Beowire in turn.")] = 5,
    classes: Annotated[
        int, typer.Option(min=1, max=100, help="Of sizes, each with as many messages.")
    ] = _CLASSES,
    round_trips: Annotated[
        bool, typer.Option("--round-trips", help="Time answers; between hosts it always does.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Keep the rounds here, and go on from there.")
    ] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", help="Draw slowdowns: FILE.png, .svg or .pdf.")
    ] = None,
    mpi_name: Annotated[str, typer.Option("--mpi", help="As of run.")] = "openmpi",
    tcp_stack: Annotated[
        Literal["native", "ofi", "ucx"], typer.Option(help="Which software speaks TCP.")
    ] = "native",
    ssh: options.Ssh = "ssh",
    network: options.Network = "",
) -> None:
    """Slowdown of messages under load and its tail, by size; or beside bulk, or in an incast."""
    lengths = _sizes(pattern, sizes)
    shares = plan.read_loads(loads) if pattern == "mixed" else (0.0,)
    if to == "all" and pattern != "mixed":
        raise BeowireError(f"--to all: {pattern} is to one node.", "Leave it out.")
    if plot_file is not None:
        drawing.check_file(plot_file)
    _check_program(mpi_name, tcp_stack)
    where = nodes.chosen(
        lab,
        hosts,
        hostfile,
        ssh,
        network,
        pattern=pattern,
        nodes=node_count,
        rate=rate,
        mtu_bytes=mtu,
    )
    wanted = Plan(
        pattern=pattern,
        sizes=lengths,
        loads=shares,
        rate_bits=where.rate_bits,
        nodes=where.count,
        burst_bytes=where.burst_bytes,
        to=to,
        seconds=seconds,
        per_second=per_second,
        mpi=mpi_name,
        tcp_stack=tcp_stack,
        answers=round_trips or not where.shares_clock,
        nap_us=where.nap_us,
    )
    plan.check(wanted)
    result = Result(wanted, lengths.classes(classes))
    store = Store(json_file, {**wanted.setting, **where.setting}, result.as_json)
    try:
        _measure(wanted, where, store, rounds)
    except (KeyboardInterrupt, SystemExit, BeowireError):
        if store.path is not None and store.rounds:
            note(
                f"{len(store.rounds)} of {rounds} rounds stand in {store.path}; the same command "
                "goes on from there"
            )
        raise
    _show(result, store, plot_file)


def _sizes(pattern: Pattern, text: str) -> Distribution:
    text = text or _SIZES[pattern]
    if pattern == "mixed":
        return distribution.chosen(text)
    return distribution.constant(distribution.read_bytes("--sizes", text))


def _check_program(mpi_name: str, tcp_stack: str) -> None:
    """The program is there, and this MPI can be held to that TCP."""
    family = mpi.find(mpi_name).family
    places.example("load.mpich" if family == "mpich" else "load")
    mpi.find(mpi_name).check_libfabric()
    if family == "mpich" and tcp_stack == "native":
        raise BeowireError(
            "MPICH has no TCP of its own.", "Give --tcp-stack ofi, or --tcp-stack ucx."
        )


@dataclass(frozen=True)
class Result:
    """What comes of rounds."""

    plan: Plan
    bounds: list[int]
    """The longest message of each class."""

    def figures(self, rounds: Sequence[Round]) -> list[slowdown.Figure]:
        return slowdown.figures(rounds, self.plan.loads, self.bounds)

    def waves(self, rounds: Sequence[Round]) -> incast.Incast:
        return incast.found(rounds, self.plan)

    def drawn(self, rounds: Sequence[Round], position: int) -> float:
        """The load that came of chance, which both transports had."""
        due = [slowdown.loaded(each["beowire"])[position]["due_bytes"] for each in rounds]
        return self.plan.offered(sum(due) / len(due))

    def as_json(self, rounds: Sequence[Round]) -> dict[str, Any]:
        """The keys are described in docs/load.md, and stay."""
        told: dict[str, Any] = {"complaints": health.complaints(rounds, self.plan)}
        if self.plan.pattern == "incast":
            return {**told, "incast": self.waves(rounds).as_json()}
        base = slowdown.alone(rounds)
        told["alone"] = [list(each) for each in zip(base.bytes, base.ns, strict=True)]
        return {**told, "figures": [each.as_json() for each in self.figures(rounds)]}


def _measure(wanted: Plan, where: nodes.Nodes, store: Store, rounds: int) -> None:
    """Fills the store, if something is missing."""
    left = measure.steps(store, rounds)
    if not left:
        note(f"all {rounds} rounds stand in {store.path} already")
        return
    planned_s = [wanted.run_s] * left
    note(f"{_told(wanted)}: {left} runs to do, about {told(sum(planned_s))} on an idle machine")
    with where.made() as cluster, Progress(left).shown() as progress:
        pace = Pace(progress, planned_s)

        def run_one(carrier: Carrier, number: int) -> list[Phase]:
            return runs.run(wanted, carrier, number, cluster)

        measure.sweep(store, rounds, run_one, pace.begin)


def _told(wanted: Plan) -> str:
    """What is measured, in words."""
    line = format_rate(wanted.rate_bits)
    if wanted.pattern == "beside":
        size = told_size(wanted.sizes.quantile(1))
        return f"{wanted.per_second} messages of {size} a second beside bulk at {line}"
    if wanted.pattern == "incast":
        return f"{wanted.senders} to 1, {told_size(wanted.sizes.quantile(1))} each, at {line}"
    way = "to one node" if wanted.to == "one" else "to random others"
    return f"sizes {wanted.sizes.name}, {wanted.senders} senders {way}, {line}"


def _show(result: Result, store: Store, plot_file: Path | None) -> None:
    store.save()
    wanted, rounds, drawn = result.plan, store.rounds, drawing.wanted(plot_file)
    times = "round trips" if wanted.answers else "one way"
    title = f"{_told(wanted)}; {times}, {len(rounds)} rounds"
    if wanted.pattern == "incast":
        waves = result.waves(rounds)
        if drawn:
            plot.draw_incast(waves, title, plot_file)
        out().print(tables.incast(waves, wanted))
        out().print(f"Ratio of shares [95 %]: {tables.told_ratio(waves.ratio)}")
    else:
        figures = result.figures(rounds)
        if drawn:
            plot.draw(figures, title, plot_file)
        if wanted.pattern == "beside":
            out().print(tables.beside(figures, slowdown.alone(rounds), rounds))
        for position, load in enumerate(wanted.loads if wanted.pattern == "mixed" else ()):
            own = [each for each in figures if each.load == load]
            drawn_load = result.drawn(rounds, position)
            name = f"Slowdown at {load:.0%} of the line ({drawn_load:.0%} as drawn)"
            out().print(tables.slowdowns(own, name))
    for each in health.complaints(rounds, wanted):
        out().print(f"Careful: {each}.")
    out().print(_footnote(wanted, times))


def _footnote(wanted: Plan, times: str) -> str:
    """How the figures came about."""
    words = f"Times ({times}) count from when a message was due. "
    if wanted.pattern == "incast":
        return words + "Shares are of the line's rate, in payload."
    if wanted.pattern == "mixed":
        words += (
            "Slowdown: to the best median of either transport with nothing else moving. Loads are "
            "payload. "
        )
    return words + "Ratio: Beowire's to TCP's in the same rounds; below 1 Beowire is ahead."
