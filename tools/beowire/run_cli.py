# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire run`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from beowire import cluster, launch, path, places
from beowire.cluster import Cluster
from beowire.errors import BeowireError
from beowire.run import check_settings
from beowire.run import run as run_job
from beowire.terminal import note

Lab = Annotated[str | None, typer.Option("--lab", help="Run on the nodes of this lab.")]
Hosts = Annotated[
    str | None, typer.Option("--hosts", help="Run on these hosts over ssh: A,B or node[1-4].")
]
HostFile = Annotated[
    Path | None, typer.Option("--hostfile", help="Run on the hosts in this file, one a line.")
]
Ssh = Annotated[str, typer.Option(help="The command that reaches a host.")]
Mpi = Annotated[str, typer.Option(help="Which MPI: openmpi, mpich, or where one is installed.")]
Network = Annotated[
    str, typer.Option(help="Network a.b.c.d/n for the launcher and for TCP, on real hosts.")
]


def choose_cluster(
    lab: str | None, hosts: str | None, hostfile: Path | None, ssh: str, network: str
) -> cluster.Cluster:
    """The cluster that exactly one of the three options names."""
    if sum(option is not None for option in (lab, hosts, hostfile)) != 1:
        raise BeowireError(
            "Where to run?", "Give one of --lab NAME, --hosts A,B and --hostfile FILE."
        )
    if lab is not None:
        return cluster.of_lab(lab)
    names = [hosts] if hosts is not None else cluster.read_hostfile(hostfile or Path())
    return cluster.of_hosts(names, ssh, network)


def run(
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM ARGS...")],
    ranks: Annotated[int, typer.Option("-n", help="Number of ranks.")],
    transport: Annotated[Literal["beowire", "tcp"], typer.Option(help="What carries messages.")],
    lab: Lab = None,
    hosts: Hosts = None,
    hostfile: HostFile = None,
    ppn: Annotated[int, typer.Option(help="Ranks per node; 0: spread evenly.")] = 0,
    mpi: Mpi = "openmpi",
    bind: Annotated[Literal["none", "core"], typer.Option(help="Pin ranks to cores.")] = "none",
    tcp_stack: Annotated[
        Literal["native", "ofi", "ucx"], typer.Option(help="Which software speaks TCP.")
    ] = "native",
    stats: Annotated[
        Path | None, typer.Option(help="Write what was counted during the run to this directory.")
    ] = None,
    prove: Annotated[
        bool, typer.Option("--prove", help="Fail unless the payload went as --transport says.")
    ] = False,
    ssh: Ssh = "ssh",
    network: Network = "",
) -> None:
    """Run an MPI program: run --lab NAME -n 4 --transport beowire -- PROGRAM ARGS."""
    where = choose_cluster(lab, hosts, hostfile, ssh, network)
    job = launch.Job(
        program=program,
        ranks=ranks,
        transport=transport,
        mpi=mpi,
        per_node=ppn,
        bind=bind,
        tcp_stack=tcp_stack,
    )
    if transport == "beowire":
        check_settings(where)
    if stats is not None:
        places.make_output_dir(stats)
    record = run_job(job, where, keep_stats=stats)
    if stats is not None:
        told = {**record.as_json(), "lab": described_lab(where)}
        places.write_json(stats / "job.json", told)
    if prove and record.exit_status == 0:
        path.prove(record)
        note(f"proved: {describe(record)}")
    raise typer.Exit(record.exit_status)


def described_lab(where: Cluster) -> dict[str, Any] | None:
    """The lab, its links and limits, that a result came from; None on real hosts."""
    if where.lab is None:
        return None
    from beowire.lab import status

    return status.described(where.lab)


def describe(record: path.JobRecord) -> str:
    """What each transport carried, in one line."""
    return (
        f"payload over Beowire {record.payload_bytes:,} B, raw frames {record.raw_bytes:,} B, "
        f"TCP {record.tcp_octets:,} B (launcher included)"
    )
