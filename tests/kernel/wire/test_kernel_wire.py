# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two guests with the kernel module on one wire: every byte arrives though the wire is bad, and
endpoints of user space use the same interface beside the module."""

import json
import re
import tempfile
from pathlib import Path

import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.vm import machine, several
from beowire.vm.wire import Faults

HERE = Path(__file__).resolve().parent
LIMIT_S = 400
MS = 1_000_000
BAD = Faults(
    loss=0.03, corruption=0.01, duplication=0.02, delay_ns=MS // 2, jitter_ns=2 * MS, seed=1
)


def run(
    words: list[str], network: several.Network, shares: list[Path]
) -> tuple[several.Outcomes, str]:
    """Both guests run this; how they ended, and what they said."""
    try:
        machine.find_kernel("")
    except BeowireError as error:
        pytest.skip(f"there are no guests here: {error}")
    guest = machine.Guest(words, memory_mb=768, limit_s=LIMIT_S, shares=shares, modules=True)
    with tempfile.TemporaryFile("w+") as said:
        outcomes = several.run(guest, network, said.fileno())
        said.seek(0)
        text = said.read()
    for outcome in outcomes.guests:
        assert (outcome.exit_status, outcome.complaints) == (0, []), text
    return outcomes, text


@pytest.mark.parametrize(
    "network",
    [
        several.Network(2, "virtio-net-pci", 1500, BAD),
        pytest.param(several.Network(2, "e1000e", 9000, BAD), marks=pytest.mark.long),
    ],
    ids=["virtio, 1500", "e1000e, 9000"],
)
def test_every_byte_arrives_over_a_bad_wire(network: several.Network) -> None:
    exchange = str(places.product("tests/kernel/wire/exchange"))
    outcomes, text = run([exchange, "60", "only"], network, [])
    assert text.count("60 messages each way") == 2
    wire = outcomes.wire
    assert min(wire.lost, wire.corrupted, wire.duplicated) > 5, wire


def test_a_full_queue_of_the_interface_costs_no_frame() -> None:
    """A virtual NIC that looks after its queue, of 256 frames, every 200 ms only."""
    exchange = str(places.product("tests/kernel/wire/exchange"))
    network = several.Network(2, nic_options="tx=timer,x-txtimer=200000000")
    _, text = run([exchange, "1000", "full", "at-once"], network, [])
    assert text.count("1000 messages each way") == 2
    waited = sum(int(count) for count in re.findall(r"(\d+) frames had to wait", text))
    assert waited > 0, text


def test_endpoints_of_user_space_beside_the_module() -> None:
    words = [str(HERE / "beside.sh"), str(places.product("tests/kernel/wire/exchange"))]
    words.append(str(places.product("programs/beowire-pingpong")))
    with tempfile.TemporaryDirectory(dir=places.build_dir()) as stats:
        _, text = run([*words, stats], several.Network(2), [Path(stats)])
        told = [json.loads(each.read_text()) for each in Path(stats).glob("*.json")]
    assert text.count("20 messages each way") == 2, text
    # The client over the module, the one over bare frames, and their two servers.
    links = [{name for name, link in each["links"].items() if link["tx_frames"]} for each in told]
    assert sorted(map(sorted, links)) == [["kernel"], ["packet"], ["packet"], ["packet"]]
    # Neither side refuses the other's frames, or takes them for nobody's; a last word of a port of
    # the module to another one that has just ended may be, and is refused then; it is said three
    # times.
    assert text.count("malformed 0") == 2, text
    assert all(int(count) < 30 for count in re.findall(r"unclaimed (\d+)", text)), text
    assert all(int(count) < 10 for count in re.findall(r"refused (\d+)", text)), text
