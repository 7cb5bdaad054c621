# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `beowire status` reads of real endpoints is what they count themselves."""

import json
import subprocess
import sys
import time
from typing import Any

import pytest
from beowire.status import node
from user_actor import ACKED, PATIENCE_S, couple


def look() -> dict[int, dict[str, Any]]:
    """The endpoints of this machine, by process."""
    return {each["pid"]: each for each in node.look(0.3)["endpoints"]}


def await_told(pid: int, **wanted: int) -> dict[str, Any]:
    """The endpoint of a process, once it tells these numbers."""
    until = time.monotonic() + PATIENCE_S
    while True:
        told = look()[pid]
        if all(told[name] == value for name, value in wanted.items()):
            return told
        assert time.monotonic() < until, told


@pytest.mark.parametrize("link", ["packet", "udp", "local"])
def test_the_board_tells_what_the_endpoint_counts(nodes: tuple[str, str], link: str) -> None:
    where = (nodes[0], nodes[0]) if link == "local" else nodes
    with couple(where, BEOWIRE_LINKS=f"{link},local") as two:
        for number in range(3):
            two.a.send(two.to_b, tag=number, length=1000, flags=ACKED, op=1)
            two.a.expect("sent", op=1)
        counted = two.a.stats()
        # A sheet of before the last message was acknowledged tells less.
        again = {"retransmits": counted["retransmits"]}
        told = await_told(two.a.process.pid, tx_messages=3, **again)
        assert told["engine"] == counted["engine"]
        assert told["identity"].startswith(counted["node"])
        assert told["program"] == "actor"
        (peer,) = told["peers"]
        assert peer["link"] == link
        assert peer["up"]
        assert peer["status"] == 0
        sent = 3 + counted["retransmits"]  # whose acknowledgement is late is sent again
        assert told["by_link"][link]["tx_payload"] == counted["links"][link]["tx_payload"]
        assert counted["links"][link]["tx_payload"] == 1000 * sent
        if link != "local":
            assert peer["tx_messages"] == 3
            assert peer["srtt_ns"] > 0
            assert peer["identity"].split("/")[1] == str(two.b.stats()["engine"])


def test_a_stopped_process_is_read_all_the_same(nodes: tuple[str, str]) -> None:
    with couple(nodes) as two:
        two.a.send(two.to_b, tag=1, length=10, flags=ACKED, op=1)
        two.a.expect("sent", op=1)
        await_told(two.b.process.pid, rx_messages=1)
        two.b.process.send_signal(19)
        try:
            told = node.look(0.1)
            pid = two.b.process.pid
            assert [each["rx_messages"] for each in told["endpoints"] if each["pid"] == pid] == [1]
            assert told["processes"][str(pid)]["state"] == "T"
        finally:
            two.b.process.send_signal(18)


def test_a_lost_peer_is_told_of(nodes: tuple[str, str]) -> None:
    with couple(nodes) as two:
        two.a.send(two.to_b, tag=1, length=10, flags=ACKED, op=1)
        two.a.expect("sent", op=1)
        two.b.process.kill()
        two.a.send(two.to_b, tag=2, length=10, flags=ACKED, op=2)
        two.a.expect("down")
        until = time.monotonic() + PATIENCE_S
        while look()[two.a.process.pid]["peers"][0]["status"] == 0:
            assert time.monotonic() < until


def test_nodes_of_a_lab_see_their_own_alone(nodes: tuple[str, str]) -> None:
    with couple(nodes) as two:
        command = [sys.executable, "-P", "-m", "beowire.status", "--own-network"]
        said = subprocess.run(
            ["ip", "netns", "exec", nodes[0], *command], capture_output=True, check=True
        ).stdout
        pids = {each["pid"] for each in json.loads(said)["endpoints"]}
        assert two.a.process.pid in pids
        assert two.b.process.pid not in pids
