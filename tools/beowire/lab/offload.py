# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Offloads of a lab's interfaces: segmentation and checksums left to the devices, or not."""

from collections import defaultdict
from functools import partial

from beowire import ethtool, namespaces
from beowire.lab.lab import WIRES, Lab
from beowire.lab.place import far, near, place


def set_offloads(lab: Lab) -> None:
    """Segmentation by the topology's choice, but never into netem, which would lose 64 KiB as one
    frame; beowire-link takes such frames apart. Where frames are corrupted, checksums are computed
    and verified, else damage would pass TCP unseen, as it cannot on a wire."""
    links = lab.topology.links
    honest_sums = any(link.ab.corrupt or link.ba.corrupt for link in links)
    wanted: dict[str, dict[str, tuple[bool, bool]]] = defaultdict(dict)
    for link in links:
        where = place(lab.topology, link)
        kind = lab.wires[link.name].kind
        checksum = not honest_sums and kind != "netem"
        choice = (checksum, checksum and link.offloads)
        here = wanted[where.namespace]
        here[link.name] = choice
        if kind != "plain":
            here[near(link)] = choice
        if kind != "plain" and where.namespace != WIRES:
            here[far(link)] = choice
        for end in (where.outer, where.inner):
            if end.interface:
                wanted[end.device][end.interface] = choice
            elif end == where.outer:
                wanted[end.device][link.name] = choice
    for device, interfaces in wanted.items():
        namespaces.within(lab.namespace_path(device), partial(_set_offloads, interfaces))


def _set_offloads(interfaces: dict[str, tuple[bool, bool]]) -> None:
    for interface, (checksum, segmentation) in interfaces.items():
        ethtool.set_tx_checksum(interface, checksum)
        ethtool.set_segmentation(interface, segmentation)
