# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The provider where long messages are copied, and fetched before they are received: its tests of
messages over a line that is slow enough for that, the loopback of a namespace."""

from pathlib import Path

import pytest
from provider_programs import run_in_namespace

SLOW = """
ip link set lo mtu 9000 up
tc qdisc add dev lo root tbf rate 300mbit burst 20kb limit 400kb
"""
BY_UDP = {"BEOWIRE_LINKS": "udp", "BEOWIRE_UDP_ADDRESS": "127.0.0.1"}


@pytest.mark.parametrize("name", ["test_messages", "test_memory"])
def test_program(name: str, tmp_path: Path) -> None:
    ends = run_in_namespace(name, SLOW, BY_UDP, tmp_path)
    assert sum(each["tx_copies"] for each in ends) > 0
    if name == "test_messages":
        assert sum(each["rx_early"] for each in ends) > 0
