# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire status`."""

import sys
from typing import Annotated, Any

import typer
from rich.live import Live

from beowire import places, tabular
from beowire.errors import BeowireError
from beowire.run.cluster import Cluster, of_hosts, of_lab
from beowire.run.options import Ssh
from beowire.status import __main__ as node_main
from beowire.status import cluster, job_view, tables
from beowire.status import prometheus as text
from beowire.terminal import note, out


def _where(lab: str | None, hosts: str | None, ssh: str) -> Cluster | None:
    """The cluster that is asked; None: this node."""
    if lab is not None and hosts is not None:
        raise BeowireError("Which nodes?", "Give --lab NAME or --hosts A,B, not both.")
    if lab is not None:
        return of_lab(lab)
    return None if hosts is None else of_hosts([hosts], ssh)


def status(
    as_json: Annotated[bool, typer.Option("--json", help="For machines: docs/status.md.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Again every second, until Ctrl-C.")
    ] = False,
    hosts: Annotated[
        str | None, typer.Option("--hosts", help="Of these hosts, over ssh: A,B or node[1-4].")
    ] = None,
    lab: Annotated[str | None, typer.Option("--lab", help="Of the nodes of this lab.")] = None,
    ssh: Ssh = "ssh",
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds that a node may take to answer.")
    ] = 20.0,
    job: Annotated[
        int | None,
        typer.Option(
            "--job",
            metavar="PID|SLURM_JOB_ID",
            help="Why does this job hang? The number of its launcher's process, or Slurm's.",
        ),
    ] = None,
    prometheus: Annotated[
        bool, typer.Option("--prometheus", help="In Prometheus' text format.")
    ] = False,
    serve: Annotated[
        str | None,
        typer.Option(
            "--serve",
            metavar="ADDRESS",
            help="Serve it to Prometheus: 127.0.0.1:PORT, or the path of a Unix socket.",
        ),
    ] = None,
    node: Annotated[
        bool, typer.Option("--node", help="What this node tells to a status elsewhere, as JSON.")
    ] = False,
    chosen: tabular.Chosen = "table",
) -> None:
    """Show the endpoints that run here, or on a cluster, and who is slow, silent or lossy."""
    if node:
        node_main.main(["--ranks"])
        return
    if chosen != "table" and (as_json or watch or prometheus or job is not None):
        raise BeowireError("--format is asked alone.", "Leave out the other form of output.", 2)
    where = _where(lab, hosts, ssh)
    if job is not None:
        job_view.show(job, where, ssh, timeout, as_json=as_json, again=watch)
        return
    if serve is not None:
        _serve(serve, where, timeout)
        return
    if prometheus:
        sys.stdout.write(text.text(cluster.look(where, timeout)))
        return
    if watch:
        _watch(where, timeout, as_json)
        return
    _show(cluster.look(where, timeout), as_json, chosen)


def _serve(address: str, where: Cluster | None, limit_s: float) -> None:
    """Until a signal; asyncio is loaded for this alone."""
    import asyncio

    from beowire.status import metrics_server

    with metrics_server.listening(address) as listener:
        told = listener.getsockname()
        at = told if isinstance(told, str) else f"{address.rpartition(':')[0]}:{told[1]}"
        note(f"serving {metrics_server.PATH} at {at}")
        server = metrics_server.Server(lambda: text.text(cluster.look(where, limit_s)))
        asyncio.run(server.serve(listener))


def rows(state: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each endpoint, without its peers."""
    return [
        tabular.flat({name: value for name, value in each.items() if name != "peers"})
        for each in state["endpoints"]
    ]


def _show(state: dict[str, Any], as_json: bool, chosen: tabular.Format = "table") -> None:
    if as_json:
        sys.stdout.write(places.json_text(state))
        sys.stdout.flush()
    else:
        tabular.tell(chosen, rows(state), lambda: out().print(tables.whole(state)))
    for host, why in _unreached(state).items():
        note(f"{host}: {why}")


def _unreached(state: dict[str, object]) -> dict[str, str]:
    failed = state["unreached"]
    assert isinstance(failed, dict)
    return failed


def _watch(where: Cluster | None, limit_s: float, as_json: bool) -> None:
    """Again and again: on a terminal in one place, else one block after another."""
    try:
        if as_json or not out().is_terminal:
            while True:
                _show(cluster.look(where, limit_s), as_json)
        with Live(console=out(), auto_refresh=False, screen=False) as live:
            while True:
                state = cluster.look(where, limit_s)
                live.update(tables.whole(state), refresh=True)
    except KeyboardInterrupt:
        pass
