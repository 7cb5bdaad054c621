# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Who may read a process's memory under Yama's scope 1: in a guest, since here it may lack."""

from pathlib import Path

import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.vm import machine

SCOPE = "/proc/sys/kernel/yama/ptrace_scope"


def test_processes_of_one_launcher_read_each_other_and_nobody_else_does(tmp_path: Path) -> None:
    try:
        machine.find_kernel("")
    except BeowireError as error:
        pytest.skip(f"there is no kernel for guests: {error}")
    program = places.product("tests/local/yama")
    command = ["sh", "-c", f"echo 1 >{SCOPE} && exec {program}"]
    with (tmp_path / "output").open("w+") as output:
        outcome = machine.run(machine.Guest(command, memory_mb=512), output.fileno())
        output.seek(0)
        print(output.read())
    assert not outcome.complaints, outcome.complaints
    assert outcome.exit_status == 0
