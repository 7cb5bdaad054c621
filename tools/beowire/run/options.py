# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What several commands take to say where a job runs, and what becomes of it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from beowire.errors import BeowireError
from beowire.run import cluster
from beowire.run.cluster import Cluster

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


def described_lab(where: Cluster) -> dict[str, Any] | None:
    """The lab, its links and limits, that a result came from; None on real hosts."""
    if where.lab is None:
        return None
    from beowire.lab import status

    return status.described(where.lab)
