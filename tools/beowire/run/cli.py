# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire run`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from beowire import places, settings
from beowire.errors import BeowireError
from beowire.run import key, launch, path, placing
from beowire.run import user as other_user
from beowire.run.job import ask_ahead, check_key, check_settings
from beowire.run.job import run as run_job
from beowire.run.mpi import find as find_mpi
from beowire.run.options import (
    HostFile,
    Hosts,
    Lab,
    Mpi,
    Network,
    Ssh,
    choose_cluster,
    described_lab,
)
from beowire.terminal import note


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
    place: Annotated[
        Literal["none", "near", "spread", "bandwidth", "latency"],
        typer.Option(help="Where on its node each rank runs, and its memory lies."),
    ] = "none",
    priority: Annotated[
        str, typer.Option(metavar="nice:N|rt:N", help="Priority of the ranks, within limits.")
    ] = "",
    tcp_stack: Annotated[
        Literal["native", "ofi", "ucx"], typer.Option(help="Which software speaks TCP.")
    ] = "native",
    stats: Annotated[
        Path | None, typer.Option(help="Write what was counted during the run to this directory.")
    ] = None,
    prove: Annotated[
        bool, typer.Option("--prove", help="Fail unless the payload went as --transport says.")
    ] = False,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key", metavar="FILE", help="The cluster's key, on every node (BEOWIRE_KEY)."
        ),
    ] = None,
    encrypt: Annotated[
        bool, typer.Option("--encrypt", help="Nobody else can read what nodes say to each other.")
    ] = False,
    user: Annotated[
        str, typer.Option(metavar="NAME", help="Run the ranks as this user, on a lab.")
    ] = "",
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
        environment=_key_variables(key_file, encrypt, transport),
        user=user,
    )
    if user:
        other_user.check(user, where)
    if place != "none" and bind != "none":
        raise BeowireError("--place pins ranks, and so does --bind.", "Leave one of them out.")
    asked = placing.Asked(place, placing.priority(priority))
    job = placing.placed(job, where, asked)
    ask_ahead(job, where, settings=transport == "beowire")
    if transport == "beowire":
        check_key(job, where)
        check_settings(where)
    if stats is not None:
        places.make_output_dir(stats)
    record = run_job(job, where, keep_stats=stats)
    if stats is not None:
        told = {**record.as_json(), "lab": described_lab(where)}
        places.write_json(stats / "job.json", told)
    if why := path.unmet(record):
        name = find_mpi(mpi).name
        note(f"{why}: a program that does not use {name} runs as {ranks} jobs of one rank")
    if prove and record.exit_status == 0:
        path.prove(record)
        note(f"proved: {describe(record)}")
    raise typer.Exit(record.exit_status)


def _key_variables(file: Path | None, encrypt: bool, transport: str) -> dict[str, str]:
    """What tells ranks where the key is, which is read by them alone, and to encrypt with it."""
    if (file is not None or encrypt) and transport != "beowire":
        option = "--encrypt" if file is None else "--key"
        raise BeowireError("Only Beowire takes a key.", f"Leave {option} out, or run over beowire.")
    variables = {} if file is None else {"BEOWIRE_KEY": str(key.full(file))}
    if not encrypt:
        return variables
    if file is None:
        if not (named := settings.get("BEOWIRE_KEY")):
            raise BeowireError("Nothing is encrypted without a key.", "Name its file by --key.")
        variables = {"BEOWIRE_KEY": named}
    return {**variables, "BEOWIRE_ENCRYPT": "1"}


def describe(record: path.JobRecord) -> str:
    """What each transport carried, in one line."""
    return (
        f"payload over Beowire {record.payload_bytes:,} B, raw frames {record.raw_bytes:,} B, "
        f"TCP {record.tcp_octets:,} B (launcher included)"
    )
