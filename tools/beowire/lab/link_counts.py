# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What has passed the links of a lab, and what the kernel's part of them did to frames."""

from beowire import netlink
from beowire.lab import port
from beowire.lab.lab import Lab
from beowire.topology.topology import Direction


def port_maps(lab: Lab) -> dict[tuple[str, Direction], int]:
    """The counters' maps of the links that have a classifier, by link and direction."""
    path = lab.directory / "ports"
    if not path.exists():
        return {}
    found: dict[tuple[str, Direction], int] = {}
    for line in path.read_text().splitlines():
        link, direction, number = line.split()
        found[link, "ab" if direction == "ab" else "ba"] = int(number)
    return found


def write_port_maps(lab: Lab, ids: dict[tuple[str, Direction], int]) -> None:
    text = "".join(f"{link} {direction} {number}\n" for (link, direction), number in ids.items())
    temporary = lab.directory / ".ports"
    temporary.write_text(text)
    temporary.replace(lab.directory / "ports")


def counts(lab: Lab) -> dict[tuple[str, Direction], port.PortCounts]:
    """What the classifiers have done to frames so far, by link and direction."""
    return {key: port.counts(number) for key, number in port_maps(lab).items()}


def passed(link: str, *, inward: bool, plain: bool) -> tuple[tuple[int, int], int]:
    """(Bytes and frames) that left the link in a direction, and how many the queue before it
    dropped; asked in the namespace of the switch. Inward, a plain link has no queue: what comes in
    has passed."""
    with netlink.IPRoute() as switch:
        interface = link if plain or not inward else f"{link}~i"
        (told,) = switch.get_links(switch.link_lookup(ifname=interface)[0])
    stats = told.get_attr("IFLA_STATS64")
    if inward and plain:
        return (stats["rx_bytes"], stats["rx_packets"]), 0
    return (stats["tx_bytes"], stats["tx_packets"]), stats["tx_dropped"]
