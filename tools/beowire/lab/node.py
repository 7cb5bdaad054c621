# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The nodes and routers of a lab: their addresses and routes, the names they know one another by,
and the scripts that enter them."""

import shlex
from functools import partial
from pathlib import Path

from beowire import namespaces, netlink, places, signals
from beowire.lab import address, quota, service, slurm
from beowire.lab.address import Route
from beowire.lab.lab import Lab

_IPV4 = Path("/proc/sys/net/ipv4")


def start(lab: Lab) -> None:
    """Gives the hosts of a lab, whose links are made, their addresses and routes."""
    routers = {router.name for router in lab.topology.routers}
    for host in lab.host_names():
        signals.check_interrupted()
        routes = address.routes(lab.topology, lab.addresses, host)
        start_here = partial(_start_here, lab.addresses[host], routes, forward=host in routers)
        namespaces.within(lab.namespace_path(host), start_here)


def _start_here(addresses: dict[str, str], routes: list[Route], *, forward: bool) -> None:
    """Addresses and starts the interfaces of the host in whose namespace this runs."""
    with netlink.IPRoute() as host:
        for interface, address in addresses.items():
            index = host.link_lookup(ifname=interface)[0]
            number, _, length = address.partition("/")
            host.addr("add", index=index, address=number, prefixlen=int(length))
            host.link("set", index=index, state="up")
        host.link("set", index=host.link_lookup(ifname="lo")[0], state="up")
        for route in routes:
            host.route("add", dst=route.network, gateway=route.gateway)
    if forward or len(addresses) > 1:
        # An answer may come back on another interface than the one the kernel would take.
        for setting in (_IPV4 / "conf").glob("*/rp_filter"):
            setting.write_text("0")
    if forward:
        (_IPV4 / "ip_forward").write_text("1")


def write_hosts(lab: Lab, host: str) -> None:
    """The names that this host knows: nodes by their first interface, and NODE-INTERFACE for the
    others."""
    directory = lab.settings_path(host)
    directory.mkdir(parents=True)
    lines = ["127.0.0.1 localhost", "::1 localhost"]
    for name, addresses in lab.addresses.items():
        for number, (interface, told) in enumerate(addresses.items()):
            known = f"{name}-{interface}" if number else name
            lines.append(f"{told.partition('/')[0]} {known}")
    (directory / "hosts").write_text("\n".join(lines) + "\n")


def _views(lab: Lab, node: str) -> list[str]:
    """What is mounted for those who enter the node, as lines of shell."""
    views = [quota.view_command(lab.quotas[node])] if node in lab.quotas else []
    return [*views, slurm.view_command(lab, node)] if node in lab.slurm else views


def enter_script(lab: Lab, node: str) -> str:
    """A script that becomes the command given to it, on the node."""
    if lab.mode == "namespace":
        ip = places.program("ip", "iproute2")
        nsenter = places.program("nsenter", "util-linux")
        host = shlex.quote(f"--uts={lab.host_name_path(node)}")
        become = f"{nsenter} {host} -- {ip} netns exec {lab.namespace(node)}"
        if views := _views(lab, node):
            become += " sh -c " + shlex.quote("; ".join([*views, 'exec "$@"'])) + " sh"
        become += ' "$@"'
        variables = {}
        if lab.slurm:
            variables["SLURM_CONF"] = str(slurm.conf_path(lab))
        if node in lab.services:
            # The same on all nodes, as launchers hand on that of the first one: %h is the node.
            variables["BEOWIRE_SERVICE"] = str(service.socket_path(lab, "%h"))
    else:
        become = '"$@"'
        variables = {
            "BEOWIRE_NODE": node,
            "BEOWIRE_LINKS": "local,udp",
            "BEOWIRE_INTERFACE": "lo",
            "BEOWIRE_UDP_ADDRESS": lab.address(node),
            # Launchers keep files by host name, which these nodes share.
            "TMPDIR": str(lab.temporary_path(node)),
            "OMPI_MCA_btl_vader_backing_directory": str(lab.temporary_path(node)),
        }
    variables |= {"BEOWIRE_LAB": lab.name, "BEOWIRE_LAB_DIR": str(lab.directory)}
    exports = "".join(f"export {key}={shlex.quote(value)}\n" for key, value in variables.items())
    join = quota.join_command(lab.quotas[node]) + "\n" if node in lab.quotas else ""
    purpose = f"# Executes its arguments on {node} of lab {lab.name}."
    return f"#!/bin/sh\n{purpose}\n{exports}{join}exec {become}\n"
