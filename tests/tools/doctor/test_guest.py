# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Faults of a whole machine and of an emulated NIC, in a virtual machine (see guest_faults.py)."""

import json
import os
import socket
import sys
from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.vm import kernels, machine, wire
from beowire.vm.guest import Seat
from guest_faults import BOOT, BOOTED

_HERE = Path(__file__).parent


@pytest.mark.long
@pytest.mark.parametrize(
    ("nic", "boot", "least", "expected"), [("e1000e", BOOT, 38, BOOTED), ("vmxnet3", "", 7, ())]
)
def test_faults_of_a_whole_machine_and_of_a_nic_are_found_fixed_and_taken_back(
    tmp_path: Path, nic: str, boot: str, least: int, expected: tuple[str, ...]
) -> None:
    try:
        kernels.find()
    except BeowireError as error:
        pytest.skip(f"no kernel for guests: {error}")
    meet = tmp_path / "meet"
    meet.mkdir()
    paths = os.pathsep.join((str(_HERE), str(_HERE.parent)))
    program = f"{sys.executable} {_HERE}/guest_faults.py {nic}"
    script = f"PYTHONPATH={paths} BEOWIRE_STATE=/tmp/state exec {program} 2>&1"
    read, write = os.pipe()
    with os.fdopen(read) as output, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as cable:
        cable.bind(str(wire.wire_end(tmp_path, 1)))
        try:
            outcome = machine.run(
                machine.Guest(
                    ["sh", "-c", script],
                    cpus=4,
                    limit_s=900,
                    load=["veth", "br_netfilter", "nf_conntrack"],
                    seat=Seat(1, 1, nic, 1500, tmp_path, meet),
                    shares=[meet],
                    boot=boot,
                ),
                write,
            )
        finally:
            os.close(write)
        text = output.read()
    assert (outcome.exit_status, outcome.complaints) == (0, []), text[-4000:]
    results = json.loads(text.splitlines()[-1])
    assert {name: wrong for name, wrong in results.items() if wrong} == {}
    assert len(results) >= least
    assert set(expected) <= set(results)
