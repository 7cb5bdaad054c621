# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Labs for the MPI programs, and a switch that does harm while a test lasts."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from beowire import places
from beowire.lab import up
from beowire.lab.lab import MTU_DEFAULT_BYTES, Lab, Shape, load_ready
from beowire.run import cluster
from beowire.run.cluster import Cluster

MODULE = Path("/proc/net/beowire")
"""It is there where the kernel module is loaded."""
NODES_WITHOUT = int(os.environ.get("BEOWIRE_TEST_NODES_WITHOUT_MODULE", "0"))
"""So many of a lab's last nodes do not use it all the same."""


def attach(where: Lab) -> None:
    """The nodes' interfaces to the kernel module, as their administrator would do it."""
    command = [str(places.product("programs/beowire-attach")), "eth0"]
    for node in where.node_names()[: where.nodes - NODES_WITHOUT]:
        enter = ["nsenter", f"--net={where.namespace_path(node)}", "--"]
        subprocess.run([*enter, *command], check=True)


@contextlib.contextmanager
def lab_of(nodes: int) -> Iterator[Cluster]:
    """A lab of that many nodes, for as long as the context lasts. The kernel module is used where
    it is loaded."""
    name = f"test-mpi-{os.getpid()}-{nodes}"
    up.up(name, nodes, MTU_DEFAULT_BYTES)
    try:
        if MODULE.exists():
            attach(load_ready(name))
        yield cluster.of_lab(name)
    finally:
        up.down(name)


def lab_behind(where: Cluster) -> Lab:
    """The lab of a cluster that is one."""
    assert where.lab is not None
    return where.lab


class FaultySwitch:
    """The switch of a lab, made to lose or damage frames."""

    def __init__(self, where: Cluster) -> None:
        self.cluster = where

    def shape(self, *, loss: float = 0.0, corrupt: float = 0.0) -> None:
        """From now on these shares of frames are lost and damaged, on every port."""
        made = lab_behind(self.cluster)
        shape = Shape(loss=loss, corrupt=corrupt)
        up.reshape(made.name, dict.fromkeys(made.node_names(), shape))

    def counts(self) -> tuple[int, int]:
        """The frames lost and the frames damaged since shape() was called."""
        ports = up.port_counts(load_ready(lab_behind(self.cluster).name)).values()
        return sum(port.lost for port in ports), sum(port.corrupted for port in ports)
