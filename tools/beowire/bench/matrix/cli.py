# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire bench matrix`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from beowire import drawing, tabular
from beowire.bench.matrix import available, fill, nodes, plot, stacks, tables
from beowire.bench.matrix.cells import Cell
from beowire.bench.matrix.figures import FIGURES, read_sizes
from beowire.bench.matrix.grid import FULL, LINKS, QUICK, Grid, named, read_mtus
from beowire.bench.matrix.nodes import Nodes
from beowire.bench.matrix.store import Store
from beowire.errors import BeowireError
from beowire.run import options
from beowire.terminal import note, out


def run(
    lab: options.Lab = None,
    hosts: options.Hosts = None,
    hostfile: options.HostFile = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small grid, in minutes.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Keep the cells here, and go on from there.")
    ] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", help="Draw heat maps: FILE.png, .svg or .pdf.")
    ] = None,
    figures: Annotated[str, typer.Option(help=f"Of {', '.join(FIGURES)}.")] = "",
    sizes: Annotated[str, typer.Option(help="Message sizes: 8,4k,1m.")] = "",
    links: Annotated[str, typer.Option(help="raw, udp, local (within a node).")] = "",
    mtu: Annotated[str, typer.Option(help="MTUs: 1500,9000.")] = "",
    mpi: Annotated[str, typer.Option(help="MPIs: openmpi, mpich, directories.")] = "",
    rounds: Annotated[int, typer.Option(min=0, help="Of all stacks; 0: the grid's own.")] = 0,
    cell_ms: Annotated[
        int, typer.Option(min=0, max=60000, help="For each cell and run; 0: the grid's own.")
    ] = 0,
    ranks: Annotated[
        int, typer.Option(min=0, max=256, help="Of collective calls; 0: 4 if cores suffice, or 2.")
    ] = 0,
    worst: Annotated[int, typer.Option(min=0, help="How many are listed; 0: all.")] = 20,
    ssh: options.Ssh = "ssh",
    network: options.Network = "",
    chosen: tabular.Chosen = "table",
) -> None:
    """Where Beowire is ahead of TCP and where behind, by figure, size, link, MTU and MPI."""
    base = QUICK if quick else FULL
    grid = replace(
        base,
        figures=named("--figures", figures, tuple(FIGURES)) if figures else base.figures,
        sizes=read_sizes(sizes) if sizes else base.sizes,
        links=tuple(link for link in LINKS if link in named("--links", links, LINKS))
        if links
        else base.links,
        mtus=read_mtus(mtu) if mtu else base.mtus,
        mpis=_mpis(mpi) if mpi else base.mpis,
        rounds=rounds or base.rounds,
        cell_ms=cell_ms or base.cell_ms,
    )
    if ranks % 2:
        raise BeowireError(f"--ranks {ranks}?", "Give an even number: half are on each node.")
    if plot_file is not None:
        drawing.check_file(plot_file)
    where = nodes.chosen(lab, hosts, hostfile, ssh, network)
    grid = replace(grid, mtus=where.mtus(grid.mtus, asked=bool(mtu)))
    cores = stacks.cores_of(where.given)
    grid = replace(grid, collective_ranks=ranks or cores.collective_ranks)
    own = {"cell_ms": grid.cell_ms, "collective_ranks": grid.collective_ranks}
    store = Store(json_file, {**where.setting, **own})
    grid = _possible(grid, where, store, strict_links=bool(links), strict_mpis=bool(mpi))
    try:
        fill.fill(grid, where, store, cores)
    except (KeyboardInterrupt, SystemExit, BeowireError):
        _told_interrupted(grid, store)
        raise
    _show(grid, store, plot_file, worst, chosen)


def _mpis(text: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(each.strip() for each in text.split(",")))
    if not all(found):
        raise BeowireError(f"--mpi {text}?", "Give MPIs with commas, such as openmpi,mpich.")
    return found


def _possible(
    grid: Grid, where: Nodes, store: Store, *, strict_links: bool, strict_mpis: bool
) -> Grid:
    """The grid without what cannot be here, which is named; it is an error if it was asked for."""
    grid = available.usable(grid, store, strict=strict_mpis)
    if "raw" in grid.links and (why := where.raw_refused):
        left: Any = tuple(link for link in grid.links if link != "raw")
        if strict_links or not left:
            raise BeowireError(f"No raw frames here: {why}.", "Take --links udp,local.")
        store.missing.append({"mpi": "", "stack": "raw", "why": why})
        grid = replace(grid, links=left)
    return grid


def _told_interrupted(grid: Grid, store: Store) -> None:
    done = [key for key in grid.wanted() if not store.missing_rounds(key, grid.rounds)]
    if store.path is not None and store.cells:
        note(
            f"{len(done)} of {len(grid.wanted())} cells are complete; what is measured stands in "
            f"{store.path}; the same command goes on from there"
        )


def _show(
    grid: Grid, store: Store, plot_file: Path | None, worst: int, chosen: tabular.Format
) -> None:
    store.save()
    cells = [store.cells[key] for key in grid.wanted()]
    if drawing.wanted(plot_file):
        plot.draw(cells, plot_file)
    tabular.tell(chosen, rows(cells), lambda: _tables(store, cells, worst))


def rows(cells: list[Cell]) -> list[dict[str, Any]]:
    """A row for each cell, without the values of its rounds."""
    told = [each.as_json() for each in cells]
    return [{name: value for name, value in each.items() if name != "values"} for each in told]


def _tables(store: Store, cells: list[Cell], worst: int) -> None:
    out().print(tables.summary(cells))
    out().print(tables.worst(cells, worst))
    for each in store.missing:
        out().print(f"Missing: {fill.told_missing(each)}")
    out().print(
        "A ratio is Beowire's to that of the fastest other stack in the same rounds, with its "
        "95 % interval: of times below 1 is ahead, of rates above 1; even: 1 is in the interval."
    )
