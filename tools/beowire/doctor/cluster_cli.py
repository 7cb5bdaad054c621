# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire doctor cluster`: many nodes at once, and the node that differs."""

import dataclasses
import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beowire.doctor.options import TROUBLE, Goal, Interface, Only, RoundTrip, checks, make_node
from beowire.doctor.words import counted
from beowire.errors import BeowireError
from beowire.terminal import note, out

if TYPE_CHECKING:
    from beowire.doctor import uniformity
    from beowire.doctor.everywhere import Answers
    from beowire.run.cluster import Cluster

_WIDTH = 100
_FINDINGS = 1


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("cluster")(cluster_)


def cluster_(
    nodes: Annotated[
        str | None, typer.Option("--nodes", "-w", help="These nodes over ssh: node[01-32].")
    ] = None,
    hostfile: Annotated[
        Path | None, typer.Option(help="The nodes in this file, one a line.")
    ] = None,
    lab: Annotated[str | None, typer.Option("--lab", help="The nodes of this lab.")] = None,
    ssh: Annotated[str, typer.Option(help="The command that reaches a node.")] = "ssh",
    goal: Goal = "latency",
    interface: Interface = None,
    round_trip_ms: RoundTrip = None,
    only: Only = None,
    fanout: Annotated[int, typer.Option(min=1, help="How many nodes at once.")] = 64,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds for each node.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Examine many nodes, and tell which of them differ. Exit status as of doctor."""
    from beowire.doctor import everywhere
    from beowire.doctor.uniformity import differences, duplicates, findings

    chosen = _chosen(lab, nodes, hostfile, ssh)
    make_node(goal, round_trip_ms, "")
    checks(only)
    arguments = ["--json", "--goal", goal]
    if round_trip_ms is not None:
        arguments += ["--round-trip-ms", str(round_trip_ms)]
    for option, values in (("--interface", interface), ("--only", only)):
        for value in values or ():
            arguments += [option, value]
    answers = everywhere.ask(chosen, arguments, fanout, timeout)
    if not answers.told and not as_json:
        _tell_failed(answers)
        raise BeowireError("No node could be examined.", "See the reasons above.", TROUBLE)
    different = differences(answers.told)
    double = duplicates(answers.told)
    found = findings(answers.told)
    if as_json:
        told = {
            "failed": answers.failed,
            "differences": [dataclasses.asdict(each) for each in different],
            "duplicates": [dataclasses.asdict(each) for each in double],
            "findings": [dataclasses.asdict(each) | {"differs": each.differs} for each in found],
            "nodes": answers.told,
        }
        print(json.dumps(told, indent=2))
    else:
        out().print(_verdict(answers, goal, different, double, found))
    _tell_failed(answers)
    troubled = [node for node, each in answers.told.items() if each["troubles"]]
    for node in troubled:
        note(f"{node}: {' '.join(answers.told[node]['troubles'])}")
    if answers.failed or troubled:
        raise typer.Exit(TROUBLE)
    if different or double or found:
        raise typer.Exit(_FINDINGS)


def _chosen(lab: str | None, nodes: str | None, hostfile: Path | None, ssh: str) -> "Cluster":
    """The nodes that the options name. Status 1 is for findings."""
    from beowire.run.options import choose_cluster

    if sum(option is not None for option in (lab, nodes, hostfile)) != 1:
        raise BeowireError(
            "Which nodes?", "Give one of --lab NAME, -w node[01-32] and --hostfile FILE.", TROUBLE
        )
    try:
        return choose_cluster(lab, nodes, hostfile, ssh, "")
    except BeowireError as error:
        raise BeowireError(error.what, error.fix.replace("--hosts", "-w"), TROUBLE) from error


def _tell_failed(answers: "Answers") -> None:
    from beowire.doctor.uniformity import folded

    reasons: dict[str, list[str]] = {}
    for node, reason in answers.failed.items():
        reasons.setdefault(reason, []).append(node)
    for reason, those in reasons.items():
        note(f"{folded(those)} cannot be examined: {reason}")


def _verdict(
    answers: "Answers",
    goal: str,
    different: "list[uniformity.Difference]",
    double: "list[uniformity.Duplicate]",
    found: "list[uniformity.Finding]",
) -> str:
    count = len(answers.told)
    lines = [f"{count} of {count + len(answers.failed)} nodes examined, goal {goal}"]
    if double:
        lines += ["", "Addresses of more than one node"]
        lines += [_wrapped(f"{each.address}: {each.nodes}", 2) for each in double]
    if different:
        lines += ["", "Not alike"]
        for each in different:
            values = "; ".join(f"{nodes}: {value}" for value, nodes in each.nodes)
            lines.append(_wrapped(f"{each.what}: {values}", 2))
    weight = ""
    for finding in found:
        if finding.weight != weight:
            weight = finding.weight
            lines += ["", weight.capitalize()]
        who = f"{finding.nodes} ({finding.count} of {finding.of})"
        mark = ", unlike the others" if finding.differs else ""
        subject = f"{finding.check} {finding.interface}".strip()
        lines.append(f"  {subject}: {who}{mark}")
        lines.append(_wrapped(f"{' / '.join(finding.read[:3])}; good is {finding.good}", 6))
        lines.append(_wrapped(finding.why, 6))
        lines.append(_wrapped(finding.fix, 6))
    end = f"{counted(len(found), 'finding')}, {counted(len(different), 'difference')}"
    if double:
        end += f", {counted(len(double), 'address', 'addresses')} of more than one node"
    lines += ["", f"{end}."]
    return "\n".join(lines)


def _wrapped(text: str, indent: int) -> str:
    margin = " " * indent
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=margin,
        subsequent_indent=margin + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
