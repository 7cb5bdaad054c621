# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The labs in which the suites run."""

import contextlib
import os
from collections.abc import Iterator

from beowire.lab import up
from beowire.lab.lab import MTU_DEFAULT_BYTES, Shape
from beowire.run.cluster import Cluster, of_lab

NODES = 2
NETWORKS: dict[str, tuple[str, Shape]] = {
    "raw": ("raw frames", Shape()),
    "udp": ("UDP, as raw frames are dropped", Shape(drop_raw=True)),
    "slow": ("raw frames, 1 Gbit/s to each node", Shape(rate_bits=1_000_000_000)),
    "loss": ("raw frames, 1 % lost to each node", Shape(loss=0.01)),
}


@contextlib.contextmanager
def lab(network: str, number: int) -> Iterator[Cluster]:
    """Two nodes on such a network, for as long as the context lasts; the number tells labs of one
    runner apart."""
    name = f"foreign-{os.getpid()}-{network}-{number}"
    up.up(name, NODES, MTU_DEFAULT_BYTES, shape=NETWORKS[network][1])
    try:
        yield of_lab(name)
    finally:
        up.down(name)
