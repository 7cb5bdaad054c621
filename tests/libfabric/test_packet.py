# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The provider over raw frames: its tests between two interfaces at a bridge, all in one namespace,
as nodes of their own; also over a link that damages frames."""

import os
from pathlib import Path

import pytest
from beowire import places
from provider_programs import run_in_namespace

PORTS = """
ip link set lo up
for side in a b; do
    ip link add pair-$side mtu 9000 type veth peer name port-$side mtu 9000
    ip link set pair-$side up
    ip link set port-$side up
done
"""
BRIDGE = f"""{PORTS}
ip link add bridge mtu 9000 up type bridge
for side in a b; do ip link set port-$side master bridge; done
"""
DAMAGE = f"""{PORTS}
{places.product("emulator/beowire-link")} port-a port-b corrupt=5% > /dev/null &
"""
SIDES = {"PAIR_INTERFACE_A": "pair-a", "PAIR_INTERFACE_B": "pair-b"}
# A node's messages to itself go by the local link.
BY_PACKET = {"BEOWIRE_LINKS": "packet,local", **SIDES}
PROGRAMS = [
    "test_bounds",
    "test_hostile",
    "test_memory",
    "test_messages",
    "test_plugin",
    "test_rail",
    "test_waiting",
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, tmp_path: Path) -> None:
    ends = run_in_namespace(name, BRIDGE, BY_PACKET, tmp_path)
    assert sum(each["links"]["packet"]["rx_payload"] for each in ends) > 0


def test_nothing_set(tmp_path: Path) -> None:
    """All links and copies, as without a variable: frames are what is chosen between two nodes."""
    assert {"BEOWIRE_LINKS", "BEOWIRE_SEND_COPIES"}.isdisjoint(os.environ)
    ends = run_in_namespace("test_memory", BRIDGE, SIDES, tmp_path)
    assert sum(each["links"]["packet"]["rx_payload"] for each in ends) > 0


def test_damaged_frames(tmp_path: Path) -> None:
    """Long transfers by frames of 9000 bytes: a checksum that is not looked at would be noticed."""
    ends = run_in_namespace("test_memory", DAMAGE, BY_PACKET, tmp_path)
    assert sum(each["drops"]["data"] for each in ends) > 0
