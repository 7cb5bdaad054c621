# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The two nodes of a matrix: those of labs that are made for it, of a lab, or real hosts."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from beowire import installed
from beowire.bench import pingpong
from beowire.errors import BeowireError
from beowire.lab import up
from beowire.run import options, remote
from beowire.run.cluster import Cluster, of_lab
from beowire.run.job import check_settings

# The MTU of the interface by which a packet to the first host named would leave.
_ASK_MTU = """for host in {hosts}; do
  address=$(getent ahostsv4 "$host" | awk 'NR == 1 {{print $1}}')
  device=$(ip -o route get "${{address:-none}}" 2>/dev/null | sed -n 's/.* dev \\([^ ]*\\).*/\\1/p')
  [ -z "$device" ] || [ "$device" = lo ] || {{ cat "/sys/class/net/$device/mtu"; exit; }}
done
exit 1"""


@dataclass(frozen=True)
class Nodes:
    """Where to measure."""

    given: Cluster | None = None
    """None: labs of two nodes, one for each MTU."""

    @property
    def setting(self) -> dict[str, Any]:
        """What must be the same for cells to belong together."""
        machine = pingpong.machine()
        told = "labs made for it"
        if self.given is not None:
            names = ",".join(self.given.hosts)
            told = f"lab {self.given.lab.name}" if self.given.lab else f"hosts {names}"
        return {"nodes": told, "kernel": machine["kernel"], "cores": machine["cores"]}

    @property
    def raw_refused(self) -> str:
        """Why raw frames cannot pass; empty if nothing is known against them."""
        if self.given is None:
            mode, reason = up.choose_mode()
            return reason if mode == "loopback" else ""
        made = self.given.lab
        return made.reason if made is not None and made.mode == "loopback" else ""

    @contextlib.contextmanager
    def of_mtu(self, mtu_bytes: int) -> Iterator[Cluster]:
        """The nodes, while they are there."""
        if self.given is not None:
            yield self.given
            return
        name = f"matrix-{os.getpid()}"
        with up.termination_raises():
            up.up(name, 2, mtu_bytes)
            try:
                where = of_lab(name)
                check_settings(where)
                yield where
            finally:
                up.down(name)

    def mtus(self, wanted: tuple[int, ...], *, asked: bool) -> tuple[int, ...]:
        """The MTUs that can be measured: those of labs as wanted, else that of the nodes; `asked`:
        they were named, and others are an error."""
        if self.given is None:
            return wanted
        if self.given.lab is None and asked and len(wanted) == 1:
            return wanted
        found = self._mtu(self.given)
        if asked and wanted != (found,):
            raise BeowireError(
                f"--mtu {','.join(map(str, wanted))}: the MTU of these nodes is {found}.",
                "Leave --mtu out, or leave --lab out: labs of all MTUs are made then.",
            )
        return (found,)

    @staticmethod
    def _mtu(given: Cluster) -> int:
        if given.lab is not None:
            return given.lab.topology.mtu_bytes()
        script = _ASK_MTU.format(hosts=" ".join(reversed(given.hosts)))
        try:
            return int(remote.execute(given, given.hosts[0], script))
        except (BeowireError, ValueError) as error:
            what = error.what if isinstance(error, BeowireError) else str(error)
            raise BeowireError(
                f"The MTU between {' and '.join(given.hosts)} cannot be found out: {what}.",
                "Say it: --mtu 1500.",
            ) from error


def chosen(lab: str | None, hosts: str | None, hostfile: Any, ssh: str, network: str) -> Nodes:
    """The nodes that the options name; without any: labs made for it."""
    if lab is None and hosts is None and hostfile is None:
        return Nodes()
    given = options.choose_cluster(lab, hosts, hostfile, ssh, network)
    if len(given.hosts) < 2:
        raise BeowireError(
            f"A matrix needs two nodes; there is {given.hosts[0]} alone.",
            f"Give a lab of two nodes ({installed.COMMAND} lab up NAME --nodes 2), or two hosts.",
        )
    check_settings(given)
    return Nodes(replace(given, hosts=given.hosts[:2]))
