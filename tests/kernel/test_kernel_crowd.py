# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A thousand connections of one listener: what a second processor gains, though they share the lock
of their port. By the clock, so it is for a machine that has nothing else to do."""

import json
import sys

import pytest
from beowire import places
from beowire.bench import samples
from beowire.vm import machine

CONNECTIONS = 1000
ROUNDS = 9
GAIN_LEAST = 1.6
GUEST_S = 600


@pytest.mark.long
@pytest.mark.timeout(GUEST_S + 100)
def test_a_second_processor_gains(capfd: pytest.CaptureFixture[str]) -> None:
    bench = places.product("hosts/kernel/bench/beowire-kernel-bench")
    command = [str(bench), "--monotonic", "--rounds", str(ROUNDS), "--crowd", str(CONNECTIONS)]
    machine.run(
        machine.Guest(
            [*command, "transport=seqpacket"],
            cpus=2,
            memory_mb=2048,
            limit_s=GUEST_S,
            load=["veth"],
            modules=True,
        )
    )
    said = capfd.readouterr().out
    sys.stdout.write(said)
    lines = [json.loads(line) for line in said.splitlines() if line.startswith('{"case"')]
    assert len(lines) == ROUNDS
    gain = samples.ratio([each["two"] for each in lines], [each["one"] for each in lines])
    assert gain.low >= GAIN_LEAST, gain
