# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where a job runs: the nodes of a lab, or real hosts over ssh, seen alike by the launchers."""

import ipaddress
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError
from beowire.lab.lab import Lab, load_ready
from beowire.run import host_names, host_sets

_OPTIONS = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=30"]
"""Of ssh, unless its options are named: it asks nobody, and TCP alone would wait for a node that is
lost for two minutes, or for ever for one that takes calls and is silent."""


@dataclass(frozen=True)
class Cluster:
    """A set of hosts and how to reach them."""

    hosts: list[str]
    agent: list[str]
    """The command that executes something on a host: AGENT HOST COMMAND."""
    head: list[str] = field(default_factory=list)
    """What goes before the launcher's command to start it where it belongs; empty: here."""
    network: str = ""
    """What the launcher and TCP should use, a.b.c.d/n; empty: their own choice."""
    interface: str = ""
    """The interface of that network on the hosts; empty: the launcher's own choice."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables that the agent needs."""
    shares_cores: bool = False
    """The hosts are one machine, as in a lab."""
    shares_host_name: bool = False
    """The hosts have one host name, as on loopback addresses."""
    lab: Lab | None = None

    def __post_init__(self) -> None:
        for host in self.hosts:
            host_names.check(host)

    def reach(self, host: str, script: str) -> list[str]:
        """The words that execute a shell script on a host. ssh takes what follows -- for a host and
        not for an option; other agents may not know it."""
        end = ["--"] if Path(self.agent[0]).name == "ssh" else []
        return [*self.agent, *end, host, script]

    def by_hand(self, host: str) -> str:
        """What to type to see whether a host can be reached."""
        return f"Try it by hand: {shlex.join(self.reach(host, 'true'))}"


def of_lab(name: str) -> Cluster:
    made = load_ready(name)
    loopback = made.mode == "loopback"
    first = made.topology.nodes[0]
    return Cluster(
        hosts=made.node_names(),
        agent=[str(places.package_file("run/agent.sh"))],
        head=[] if loopback else ["sh", str(made.enter_path(first.name))],
        network="127.0.0.0/8" if loopback else made.network(),
        interface="lo" if loopback else first.interfaces[0].name,
        environment={"BEOWIRE_LAB_DIR": str(made.directory)},
        shares_cores=True,
        shares_host_name=loopback,
        lab=made,
    )


def of_hosts(
    hosts: list[str], ssh: str = "ssh", network: str = "", *, groups: bool = True
) -> Cluster:
    """Real hosts; `ssh` may carry options. Host names may be sets: node[1-4]. `groups`: as for
    host_sets.expand()."""
    expanded = host_sets.expand(hosts, groups=groups)
    if not expanded:
        raise BeowireError("No hosts named.", "Write --hosts A,B or --hostfile FILE.")
    return Cluster(
        hosts=list(dict.fromkeys(expanded)), agent=_agent(ssh), network=_checked(network)
    )


def _agent(ssh: str) -> list[str]:
    """The words of the command that reaches a host."""
    try:
        words = shlex.split(ssh)
    except ValueError as error:
        raise BeowireError(f"--ssh {ssh} cannot be read: {error}.", "Close the quotes.") from error
    if not words:
        raise BeowireError("--ssh names no command.", "Leave it out, or name one such as ssh.")
    return [*words, *_OPTIONS] if ssh == "ssh" else words


def _checked(network: str) -> str:
    try:
        return str(ipaddress.ip_network(network, strict=False)) if network else ""
    except ValueError as error:
        raise BeowireError(
            f"--network {network} is no network: {error}.", "Write one such as 10.0.0.0/24."
        ) from error


def read_hostfile(path: Path) -> list[str]:
    """The hosts named in a file, one a line; comments and slot counts are left out."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BeowireError(
            f"{path} cannot be read: {why}.", "Give a file with the name of a host on each line."
        ) from error
    return hosts_in(lines)


def hosts_in(lines: list[str]) -> list[str]:
    """The hosts that the lines of such a file name."""
    found = [words[0] for line in lines if (words := line.partition("#")[0].split())]
    return [host if host_names.is_ipv6(host) else host.partition(":")[0] for host in found]
