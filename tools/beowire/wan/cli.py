# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire wan`: a program's profile, the verdict over a line, and a check of
both."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from beowire import places
from beowire.errors import BeowireError
from beowire.run import options
from beowire.terminal import note, out
from beowire.wan import advice, calibrate, check, plan, probe, tables
from beowire.wan.advice import Answer, Link
from beowire.wan.profile import Book, Plan

app = typer.Typer(help="Are distant nodes worth it for a program?", no_args_is_help=True)

EXIT_CODES: dict[Answer, int] = {"yes": 0, "no": 10, "unknown": 11}

Json = Annotated[Path | None, typer.Option("--json", help="Write every figure to this file.")]
Limit = Annotated[float, typer.Option(min=1, help="Seconds until a run is given up.")]


@app.callback()
def wan_() -> None:
    """Are distant nodes worth it for a program?"""


@app.command(context_settings={"allow_interspersed_args": False})
def profile(
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM ARGS...")],
    file: Annotated[Path, typer.Option("--out", help="The profile; an interrupted one goes on.")],
    transport: Annotated[
        Literal["both", "tcp", "beowire"], typer.Option(help="What carries messages.")
    ] = "both",
    nodes: Annotated[int, typer.Option(help="Nodes, half of them at each site.")] = 4,
    ppn: Annotated[int, typer.Option(help="Ranks on each node.")] = 1,
    cpus: Annotated[
        float, typer.Option(min=0, help="Processor time of each node; 0: equal shares.")
    ] = 0,
    mpi: options.Mpi = "openmpi",
    delay_max: Annotated[str, typer.Option(help="The longest delay, one way.")] = "50ms",
    rate_min: Annotated[str, typer.Option(help="The lowest rate.")] = "10M",
    rate_max: Annotated[str, typer.Option(help="A rate of the better lines.")] = "100M",
    loss_max: Annotated[str, typer.Option(help="The largest share lost; 0: none.")] = "0.2%",
    line: Annotated[
        list[str] | None, typer.Option(help="A further line: delay=25ms,rate=100M,loss=0.1%.")
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(min=0, help="Of one site, and of both without a line; 0: 3, or as before."),
    ] = 0,
    limit: Limit = 600,
    hosts: Annotated[
        str | None, typer.Option("--hosts", help="Real hosts of one place, as many as nodes.")
    ] = None,
    ssh: options.Ssh = "ssh",
    network: options.Network = "",
) -> None:
    """Measure a program on one site and on both over a few lines: profile --out FILE -- PROGRAM."""
    lines = plan.lines(delay_max, rate_min, rate_max, loss_max)
    begun = file.exists()
    if line and begun:
        lines = []  # one that is there gets these lines, not others beside its own
    lines += [advice.parse_link(each).line for each in line or []]
    where = calibrate.hosts(hosts, ssh, network, nodes)
    names = tuple(where.hosts) if where else ()
    chosen = plan.transports(transport)
    rounds = rounds or (1 if begun else plan.ROUNDS)
    asked_for = Plan(rounds, chosen, tuple(dict.fromkeys(lines)), hosts=names)
    setting = calibrate.setting(program, nodes, ppn, cpus, mpi)
    book = Book.begin(file, "profile", setting, asked_for)
    places.check_output(file)
    calibrate.fill(book, limit, note, where)
    for table in tables.of_profile(book):
        out().print(table)
    out().print(tables.told(book), highlight=False)


@app.command()
def advise(
    file: Annotated[Path, typer.Argument(metavar="PROFILE")],
    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- PROGRAM ARGS...]", help="Fail unless it is the profile's."),
    ] = None,
    link: Annotated[
        str, typer.Option(help="The line between the sites: delay=25ms,rate=100M,loss=0.1%.")
    ] = "",
    lab: Annotated[
        str | None, typer.Option("--lab", help="Probe between this lab's first and last node.")
    ] = None,
    hosts: Annotated[
        str | None, typer.Option("--hosts", help="Probe between two hosts over ssh: A,B.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Of the probe.")] = 3,
    worth: Annotated[float, typer.Option(min=0, help="The least speedup that pays.")] = 1.0,
    json_file: Json = None,
    ssh: options.Ssh = "ssh",
    network: options.Network = "",
) -> None:
    """Do the nodes of a second site pay? Exit status: 0 yes, 10 no, 11 cannot be told."""
    if sum(each not in ("", None) for each in (link, lab, hosts)) != 1:
        raise BeowireError(
            "Which line joins the sites?",
            "Give one of --link delay=25ms,rate=100M, --hosts A,B and --lab NAME.",
        )
    described = advice.parse_link(link) if link else None
    book = Book.load(file, "profile")
    book.check_complete()
    if program:
        calibrate.check_program(book, program)
    if json_file is not None:
        places.check_output(json_file)
    found = described or _probed(lab, hosts, ssh, network, rounds)
    plan.check_losses(book, found.line)
    advices = advice.advise(book, found, worth)
    answer = advice.overall(advices)
    if json_file is not None:
        told = advice.as_json(book, found, advices, worth)
        places.write_output(json_file, json.dumps(told, indent=1, allow_nan=False) + "\n")
    for text in tables.verdict(book, found, advices, worth):
        out().print(text)
    raise typer.Exit(EXIT_CODES[answer])


def _probed(lab: str | None, hosts: str | None, ssh: str, network: str, rounds: int) -> Link:
    where = options.choose_cluster(lab, hosts, None, ssh, network)
    note(f"probing the line between {where.hosts[0]} and {where.hosts[-1]}")
    return probe.probe(where, rounds)


@app.command("check")
def check_(
    file: Annotated[Path, typer.Argument(metavar="PROFILE")],
    results: Annotated[
        Path | None,
        typer.Option(
            help="Keep each result here; what is here is not run again. Default: PROFILE.check"
        ),
    ] = None,
    line: Annotated[
        list[str] | None,
        typer.Option(help="A line to measure: delay=25ms,rate=100M. Default: 14 of them."),
    ] = None,
    limit: Limit = 600,
    json_file: Json = None,
) -> None:
    """Measure lines that the profile has not seen, and compare with what it predicts."""
    book = Book.load(file, "profile")
    book.check_complete()
    if json_file is not None:
        places.check_output(json_file)
    setting = calibrate.again(book)
    asked = [advice.parse_link(each).line for each in line or []] or check.lines(book)
    for each in asked:
        plan.check_losses(book, each)
    lines = tuple(each for each in asked if each not in book.plan.lines)
    if not lines:
        raise BeowireError(
            "The profile has been fitted to all of these lines; that would prove nothing.",
            "Name others by --line.",
        )
    asked_for = Plan(1, book.plan.transports, lines, ends=False)
    place = results or file.with_name(file.name + ".check")
    found = Book.begin(place, "check", setting, asked_for)
    places.check_output(place)
    calibrate.fill(found, limit, note)
    compared = check.compare(book, found)
    if json_file is not None:
        told = {**check.as_json(compared), "setting": tables.setting(book.setting)}
        places.write_output(json_file, json.dumps(told, indent=1, allow_nan=False) + "\n")
    out().print(tables.compared(compared))
    for text in tables.errors(compared):
        out().print(text, highlight=False)
    out().print(tables.told(found), highlight=False)
    worst = max(check.as_json(compared)["median_error"].values())
    raise typer.Exit(0 if worst <= check.ERROR_MAX else 1)
