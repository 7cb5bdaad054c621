# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The life of an installation on a machine: what is installed there, and jobs between two nodes."""

import json

from package_machine import Machine

NAMES = ("beowire", "beowire-dkms", "beowire-sockets", "beowired", "libbeowire-dev")
NAMES += ("libbeowire1", "libfabric-beowire", "openmpi-beowire")
SETTINGS = "/etc/beowire/openmpi.conf"
LAB = "try"
_AGENT = "/usr/lib/beowire/beowire/run/agent.sh"
_LAUNCHING = {
    4: f"--mca plm_rsh_agent {_AGENT} --mca oob_tcp_if_include $(cat /tmp/network)",
    5: f"--prtemca plm_ssh_agent {_AGENT} --prtemca prte_if_include $(cat /tmp/network)",
}
"""By Open MPI's first number: how its launcher finds the nodes of a lab."""


def versions(node: Machine) -> dict[str, str]:
    """Of our packages that are installed."""
    listed = node.output("dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n'")
    rows = (line.split() for line in listed.splitlines() if "beowire" in line)
    return {row[0]: row[1] for row in rows if row[2] == "ii"}


def openmpi(node: Machine) -> str:
    """Its version."""
    return node.output("mpirun --version").split("\n", 1)[0].split()[-1]


def by_beowire(
    node: Machine,
    options: str = "",
    program: str = "pi --precision 1e-4",
    says: str = "on 2 ranks",
    release: int = 4,
) -> int:
    """Bytes that two ranks of a plain mpirun, of this release of Open MPI, sent in raw frames, by
    Beowire's own counters."""
    node.output(f"beowire lab exec {LAB} node1 -- ip -4 -o route show scope link >/tmp/route")
    node.output("cut -d' ' -f1 /tmp/route | head -n 1 >/tmp/network")
    node.output("rm -rf /tmp/stats && mkdir -m 700 /tmp/stats")
    words = f"beowire lab exec {LAB} node1 -- mpirun --allow-run-as-root --host node1,node2 -n 2"
    words += f" --bind-to none {_LAUNCHING[release]} -x BEOWIRE_STATS {options}"
    said = node.run(f"{words} /tmp/shared/{program}", BEOWIRE_STATS="/tmp/stats")
    assert said.returncode == 0, said.stdout + said.stderr
    assert says in said.stdout
    assert "WARNING" not in said.stderr, said.stderr
    told = node.output("cat /dev/null $(find /tmp/stats -name '*.json')")
    counters = [json.loads(each) for each in told.splitlines()]
    assert len(counters) in (0, 2)
    return sum(each["links"]["packet"]["tx_payload"] for each in counters)
