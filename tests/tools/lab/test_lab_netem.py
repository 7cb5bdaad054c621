# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel's netem as a lab's emulator, under a stock kernel that has it."""

import sys
from pathlib import Path

import pytest
from beowire_cli import beowire

MODULES = ("veth", "bridge", "sch_tbf", "sch_ingress", "cls_bpf", "sch_netem")

SCRIPT = """
import sys
from beowire.lab import lab, up
from beowire.topology import reader
from beowire.topology.topology import Model
from traffic import raw_frame, receiving, send_raw, tcp_pair

TEXT = '''
[[nodes]]
name = "node"
count = 2
[[links]]
name = "cable"
a = "node1"
b = "node2"
emulator = "netem"
delay = "20ms"
rate = "50M"
ab.loss = 1.0
'''
made = up.up_topology("n", reader.parse(TEXT, "n", "n.toml"))
for sender, receiver in (("node1", "node2"), ("node2", "node1")):
    with receiving(made, receiver) as received:
        send_raw(made, sender, [raw_frame(bytes(100))] * 20)
    print(len(received.frames))
up.set_links("n", {"cable": {"ab": Model(delay_ns=20_000_000)}})
for end in tcp_pair(made):
    end.close()
print(lab.load_ready("n").wires["cable"].kind)
up.down("n")
"""


@pytest.mark.long
def test_netem_loses_delays_and_changes() -> None:
    loads = [word for module in MODULES for word in ("--load", module)]
    path = f"import sys; sys.path[:0] = {[str(Path(__file__).parent)]!r}\n"
    answer = beowire("vm", *loads, "--", sys.executable, "-c", path + SCRIPT)
    assert answer.status == 0, answer.errors
    assert answer.output.split() == ["0", "20", "netem"]
