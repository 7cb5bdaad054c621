# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes of beowired, one on each node of a lab: users without CAP_NET_RAW get raw frames there.

Each lives in its node's namespace and so dies with the lab. Its socket lies where every user can
reach it; programs find it by BEOWIRE_SERVICE. Its policy and what it says are in the lab's
directory.
"""

from pathlib import Path

from beowire import places, signals
from beowire.errors import BeowireError
from beowire.lab import daemon, ebpf
from beowire.lab.lab import Lab

_READY_LIMIT_S = 60.0
_DEVICES_MAX = 8


def socket_path(lab: Lab, node: str) -> Path:
    """Where the service of a node listens."""
    return lab.public_directory / node / "beowired.sock"


def log_path(lab: Lab, node: str) -> Path:
    return lab.directory / f"{node}.beowired"


def check_possible() -> None:
    """Fails where the kernel would not take the service's programs."""
    if not ebpf.permitted():
        raise BeowireError(
            "The service needs eBPF programs, which the kernel does not take from this process.",
            "Make the lab as root, on a host, or without --service.",
        )


def start(lab: Lab) -> None:
    """Starts a service on each node, and notes their processes in the lab."""
    for node in lab.node_names():
        signals.check_interrupted()
        lab.services[node] = _start(lab, node)


@signals.uninterrupted()
def _start(lab: Lab, node: str) -> int:
    path = socket_path(lab, node)
    lab.make_public(path.parent)
    policy = lab.directory / f"{node}.beowired.conf"
    interfaces = ", ".join(list(lab.addresses[node])[:_DEVICES_MAX])
    policy.write_text(f"users = *\ninterfaces = {interfaces}\nendpoints = 1024\nring-memory = 4G\n")
    return daemon.start(
        lab,
        node,
        [str(places.product("service/beowired")), f"--policy={policy}", f"--socket={path}"],
        log_path(lab, node),
        _READY_LIMIT_S,
        lambda text: "ready at" in text,
        (
            f"The service of {node}",
            "The kernel needs veth, sch_ingress and cls_bpf (modprobe NAME).",
        ),
    )


def remove(lab: Lab) -> None:
    """Takes the status of services that have been killed."""
    for pid in lab.services.values():
        daemon.reap(pid)
