# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a message costs an engine that knows many peers, and what an idle one holds.

`peers` has all engines in one process, so that the instructions counted are those of engines alone;
two runs with different numbers of messages make what one message costs."""

import json
import re
import subprocess

import pytest
from beowire import places

FEW, MANY = 16, 128
MESSAGES = (20000, 40000)
GROWTH = 1.3
"""A message among many peers to one among few; most of it are acknowledgements that have no
message to ride on."""


def run(nodes: int, messages: int, *before: str) -> tuple[dict[str, float], str]:
    call = [*before, str(places.product("tests/speed/peers")), str(nodes), str(messages)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, float] = json.loads(done.stdout)
    return told, done.stderr


def instructions(nodes: int) -> float:
    """Of one message, sent and received."""
    found = []
    for messages in MESSAGES:
        valgrind = ("valgrind", "--tool=cachegrind", "--cache-sim=no")
        told, said = run(nodes, messages, *valgrind, "--cachegrind-out-file=/dev/null")
        match = re.search(r"I\s+refs:\s+([\d,]+)", said)
        assert match is not None, said
        found.append((told["messages"], int(match[1].replace(",", ""))))
    (less, before), (more, after) = found
    return (after - before) / (more - less)


def test_a_message_costs_about_the_same_among_many_peers() -> None:
    few, many = instructions(FEW), instructions(MANY)
    assert few < many <= GROWTH * few, f"{few:.0f} among {FEW}, {many:.0f} among {MANY}"


def test_an_idle_peer_is_small() -> None:
    told, _ = run(FEW, 1000)
    assert told["peer_bytes"] <= 4096


@pytest.mark.long
def test_a_thousand_nodes_all_to_all() -> None:
    told, _ = run(1024, 1024 * 1023)
    assert told["messages"] == 1024 * 1023
    assert told["grown_bytes_per_peer"] <= 4096
