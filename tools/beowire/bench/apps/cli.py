# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire bench apps`."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from beowire import drawing
from beowire.bench.apps import catalogue, installed, measure, place, plot, profile, tables
from beowire.bench.apps.application import Application
from beowire.bench.apps.measure import TRANSPORTS, Plan, Runs
from beowire.bench.apps.store import Store
from beowire.bench.matrix.stacks import Cores, cores_of
from beowire.errors import BeowireError
from beowire.lab.lab import MTU_DEFAULT_BYTES
from beowire.progress import Progress
from beowire.run import options
from beowire.run.cluster import Cluster
from beowire.run.job import check_settings
from beowire.terminal import note, out

Profiled = Literal["none", "behind", "all"]


def run(
    lab: options.Lab = None,
    hosts: options.Hosts = None,
    hostfile: options.HostFile = None,
    apps: Annotated[
        str, typer.Option(help=f"Of {', '.join(catalogue.APPLICATIONS)}; default: all here.")
    ] = "",
    ranks: Annotated[
        str, typer.Option(help="Ranks, or ranks x nodes (4x4); default: one per core, and two.")
    ] = "",
    rounds: Annotated[int, typer.Option(min=1, help="Of TCP and Beowire in turn.")] = 5,
    profiled: Annotated[
        Profiled, typer.Option("--profile", help="Where the time goes: of which applications.")
    ] = "none",
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every figure to this file.")
    ] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", help="Draw the ratios: FILE.png, .svg or .pdf.")
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Install what is missing here, by apt-get.")
    ] = False,
    mtu: Annotated[
        int, typer.Option(min=576, max=65535, help="Of the lab that is made for it.")
    ] = MTU_DEFAULT_BYTES,
    bind: Annotated[
        Literal["auto", "none", "core"],
        typer.Option(help="Pin ranks to cores; auto: if each has one."),
    ] = "auto",
    tcp_stack: Annotated[
        Literal["native", "ofi", "ucx"], typer.Option(help="Which software speaks TCP.")
    ] = "native",
    ssh: options.Ssh = "ssh",
    network: options.Network = "",
) -> None:
    """Programs of the distribution over TCP and over Beowire in turn: ratios of their times."""
    chosen = catalogue.named(apps)
    given = _given(lab, hosts, hostfile, ssh, network)
    cores = cores_of(given)
    shapes = place.read_shapes(ranks or _usual(cores))
    if plot_file is not None:
        drawing.check_file(plot_file)
    plan = Plan(chosen, shapes, rounds, tcp_stack, None if bind == "auto" else bind)
    told: dict[str, Any] = {"nodes": _told_nodes(given), "mtu": mtu if given is None else None}
    store = Store(json_file, plan, told)
    if install:
        installed.install(chosen)
    plan = _possible(plan, given, store, strict=bool(apps))
    with _where(given, max(shape.nodes for shape in shapes), mtu) as cluster:
        for shape in shapes:
            place.some_of(cluster, shape.nodes)
        with place.bench(cluster) as bench:
            _measure(Runs(bench, plan, cores), store, profiled)
    _show(store, plot_file)


def _usual(cores: Cores) -> str:
    """One rank per core, and two, on two nodes."""
    count = cores.count if cores.shared else 2 * cores.count
    return ",".join(str(min(max(each, 2), place.RANKS_MAX)) for each in (count, 2 * count))


def _given(
    lab: str | None, hosts: str | None, hostfile: Path | None, ssh: str, network: str
) -> Cluster | None:
    """The nodes that were named; None: a lab is made."""
    if lab is None and hosts is None and hostfile is None:
        return None
    given = options.choose_cluster(lab, hosts, hostfile, ssh, network)
    check_settings(given)
    return given


@contextlib.contextmanager
def _where(given: Cluster | None, nodes: int, mtu: int) -> Iterator[Cluster]:
    if given is not None:
        yield given
        return
    with place.of_lab_made(nodes, mtu) as made:
        yield made


def _told_nodes(given: Cluster | None) -> str:
    if given is None:
        return "a lab made for it"
    return f"lab {given.lab.name}" if given.lab else f"hosts {','.join(given.hosts)}"


def _possible(plan: Plan, given: Cluster | None, store: Store, *, strict: bool) -> Plan:
    """The plan without what cannot be measured, which is named; an error if it was asked for."""
    kept: list[Application] = []
    for each in plan.applications:
        why = installed.lacking(each, given)
        if not why:
            kept.append(each)
            continue
        if strict:
            raise BeowireError(f"{each.name}: {why}", "Install it, or let --install do so.")
        store.missing.append({"application": each.name, "why": why})
        note(f"missing: {each.name}: {why}")
    return Plan(tuple(kept), plan.shapes, plan.rounds, plan.tcp_stack, plan.bind)


def _measure(runs: Runs, store: Store, profiled: Profiled) -> None:
    plan, results = runs.plan, store.results
    with Progress(plan.steps).shown() as progress:
        measure.sweep(plan, results, runs.run, progress.begin, store.save)
    wanted = {
        (cell.application, cell.key.shape): None
        for cell in sorted(results.cells.values(), key=lambda cell: cell.badness)
        if profiled == "all" or (profiled == "behind" and cell.verdict == "behind")
    }
    with Progress(len(wanted) * len(TRANSPORTS)).shown() as progress:
        for name, shape in wanted:
            application = catalogue.APPLICATIONS[name]
            store.profiles.append(profile.take(runs, application, shape, progress.begin))
            store.save()


def _show(store: Store, plot_file: Path | None) -> None:
    store.save()
    results = store.results
    cells = list(results.cells.values())
    if cells and drawing.wanted(plot_file):
        plot.draw(cells, plot_file)
    if cells:
        out().print(tables.ratios(cells))
        out().print(tables.told_median(cells))
    for each in store.profiles:
        out().print(tables.where_time_goes(each))
    for missing in store.missing:
        out().print(f"Missing: {missing['application']}: {missing['why']}")
    out().print(
        "A ratio is Beowire's time to TCP's in the same rounds, with its 95 % interval: below 1 "
        "Beowire is ahead; even: 1 is in the interval."
    )
    if results.failed:
        told = [f"{each['application']} {each['ranks']}: {each['why']}" for each in results.failed]
        raise BeowireError("\n".join(told), code=results.code)
