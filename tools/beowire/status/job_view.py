# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire status --job`: one screen that says why a job hangs."""

import os
import socket
import sys
import time
from typing import Any

from rich.console import Group
from rich.table import Table

from beowire import places
from beowire.errors import BeowireError
from beowire.run.cluster import Cluster, of_hosts
from beowire.status import cluster, conclude, job, slurm, waits
from beowire.status.conclude import Case, Conclusion
from beowire.status.slurm import Known
from beowire.status.words import age, plain
from beowire.terminal import out

_ROWS_MAX = 40
_WAITS_MAX = 2
"""Of a rank that are shown."""
_PAUSE_S = 1.0


def _where(number: int, ssh: str, known: Known | None) -> Cluster | None:
    """The nodes of the job, as Slurm or its launcher was told them; None: this one alone."""
    if "BEOWIRE_LAB" in os.environ:
        return None  # its nodes are this machine
    if job.names_process(number, known):
        hosts = job.hosts_of(number)
        own = {socket.gethostname().partition(".")[0], socket.gethostname()}
        own |= {"localhost", "127.0.0.1"}
        return of_hosts(hosts, ssh, groups=False) if set(hosts) - own else None
    listed = known.nodes if known else job.hosts_of_slurm(str(number))
    return None if listed is None else of_hosts([listed], ssh, groups=False)


def _here(where: Cluster | None) -> str | None:
    """By which name the cluster calls this node. In a lab all nodes are one machine."""
    if where is None or where.lab is not None:
        return None
    own = socket.gethostname()
    known = [host for host in where.hosts if host.partition(".")[0] == own.partition(".")[0]]
    return known[0] if known else own


def look(number: int, where: Cluster | None, limit_s: float, known: Known | None = None) -> Case:
    state = cluster.look(where, limit_s, ranks=True)
    members = job.members(state, number, _here(where), known)
    return Case(members, waits.waits(members), state["unreached"])


def _line(case: Case, index: int) -> list[str]:
    member = case.members[index]
    own = [each for each in case.waits if each.who == index]
    words = [f"{each.says(case.members)} since {age(each.since_s)}" for each in own[:_WAITS_MAX]]
    if len(own) > _WAITS_MAX:
        words.append(f"and {len(own) - _WAITS_MAX} more")
    process = member.process
    load = f"{100 * process['running']:.0f} %" if process else "-"
    troubles = [
        f"{peer['host'] or peer['name']} {verdict}"
        for endpoint in member.endpoints
        for peer in endpoint["peers"]
        for verdict in peer["verdicts"]
    ]
    return [
        "-" if member.rank is None else str(member.rank),
        member.host,
        str(member.pid),
        process["state"] if process else "-",
        load,
        member.doing(),
        "; ".join(words) or "-",
        "; ".join(troubles[:_WAITS_MAX]) or "-",
    ]


def screen(case: Case, said: Conclusion) -> Group:
    """The ranks that say most, and the conclusion."""
    shown = Table("rank", "node", "pid", "state", "runs", "does", "waits", "sees")
    waiting = {each.who for each in case.waits}
    order = sorted(
        range(len(case.members)),
        key=lambda i: (not case.members[i].stopped, i not in waiting, i),
    )
    for index in sorted(order[:_ROWS_MAX]):
        shown.add_row(*(plain(cell) for cell in _line(case, index)))
    lines: list[Any] = [shown]
    if len(case.members) > _ROWS_MAX:
        lines.append(plain(f"({len(case.members) - _ROWS_MAX} more)"))
    lines += [plain(f"{host}: {why}") for host, why in sorted(case.unreached.items())]
    lines += [plain(f"Likely cause: {said.says}"), plain(f"  {said.fix}")]
    return Group(*lines)


def show(
    number: int, where: Cluster | None, ssh: str, limit_s: float, *, as_json: bool, again: bool
) -> None:
    """Prints it, once or until Ctrl-C."""
    if number < 1:
        raise BeowireError(f"There is no job {number}.", "Give the number of a process.")
    known = None if job.is_of_launcher(number) else slurm.ask(number, where)
    where = where or _where(number, ssh, known)
    try:
        while True:
            case = look(number, where, limit_s, known)
            said = conclude.conclude(case)
            if as_json:
                sys.stdout.write(places.json_text({"job": number, **conclude.as_json(case, said)}))
                sys.stdout.flush()
            else:
                out().print(screen(case, said))
            if not again:
                return
            time.sleep(_PAUSE_S)
    except KeyboardInterrupt:
        pass
