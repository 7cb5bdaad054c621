# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel's own emulator, sch_netem, at an interface of a lab's switch; for links whose topology
asks for it. Not every kernel has it.
"""

from beowire import netlink
from beowire.errors import BeowireError
from beowire.lab.port import add_bucket
from beowire.topology.topology import Link, Model

_ROOM_PACKETS = 100_000
"""Frames under way; beyond it netem drops. 100 ms at 10 Gbit/s of full Ethernet frames."""


def check(link: Link) -> None:
    """Raises an error for what netem cannot do, or does in another way than the model says."""
    for model in (link.ab, link.ba):
        missing = {
            "burst": model.burst_frames > 1,
            "mark": model.mark_bytes,
            "coalesce": model.coalesce_ns,
            "reorder without delay": model.reorder and not model.delay_ns,
        }
        if words := [key for key, wanted in missing.items() if wanted]:
            raise BeowireError(
                f"Link {link.name}: netem has no {', '.join(words)}.",
                'Leave it out, or take emulator = "beowire-link".',
            )


def add(switch: "netlink.IPRoute", index: int, model: Model, mtu_bytes: int) -> None:
    """Frames that leave the interface meet the model, its rate last; the interface has nothing at
    its root yet."""
    try:
        switch.tc(
            "add",
            "netem",
            index=index,
            handle="1:",
            limit=_ROOM_PACKETS,
            delay=model.delay_ns // 1000,
            jitter=model.jitter_ns // 1000,
            loss=100 * model.loss,
            duplicate=100 * model.duplicate,
            prob_reorder=100 * model.reorder,
            prob_corrupt=100 * model.corrupt,
        )
    except netlink.NetlinkError as error:
        raise BeowireError(
            f"This kernel has no netem (sch_netem): {error}.",
            'Load it (modprobe sch_netem), or take emulator = "beowire-link", which needs nothing '
            "of the kernel.",
        ) from error
    if model.rate_bits:
        add_bucket(switch, index, model, mtu_bytes, parent="1:1", handle="10:")
