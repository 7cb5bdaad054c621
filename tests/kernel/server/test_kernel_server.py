# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Protocol servers of the kernel module, tested by a program that runs in a guest.

The guest is booted once for each kernel; each test of the program asks for its own verdict here.
"""

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.selftest import reports
from beowire.vm import kernels, machine
from remembered import remembered

SOURCE = Path(__file__).with_name("test_server.c")
NAMES = re.findall(
    r"^\t\tcmocka_unit_test_setup_teardown\((\w+),", SOURCE.read_text(), re.MULTILINE
)
# Nothing may be left that holds the modules, and what is freed late must be freed then.
SCRIPT = """
"$3" 400 "$1" "$2" 2>&1
status=$?
rmmod beowire_datagram beowire || exit 99
exit $status
"""


@dataclass(frozen=True)
class Run:
    """What came out of a guest."""

    cases: dict[str, reports.Case]
    outcome: machine.Outcome
    output: str


def tried(kernel: str, server: Path, settings: Mapping[str, str]) -> Run:
    """The program with this server in a guest with this kernel, with these variables set.
    BeowireError: there is no such guest."""
    program = places.product("tests/kernel/server/test_server")
    with tempfile.TemporaryFile("w+") as said:
        limit = places.product("tools/guest/guest-limit")
        command = ["env", *(f"{name}={value}" for name, value in settings.items())]
        command += ["sh", "-c", SCRIPT, "sh", str(program), str(server), str(limit)]
        guest = machine.Guest(command, kernel, memory_mb=1024, limit_s=600, modules=True)
        outcome = machine.run(guest, said.fileno())
        said.seek(0)
        output = said.read()
    print(output)
    cases = reports.cmocka_cases("test_server", output, output)
    return Run({case.name.split(": ")[1]: case for case in cases}, outcome, output)


@remembered
def run(kernel: str) -> Run:
    """With the build's server."""
    return tried(kernel, places.product("hosts/kernel/server/beowire-server"), {})


def run_or_skip(kernel: str) -> Run:
    try:
        machine.find_kernel(kernel)
    except BeowireError as error:
        pytest.skip(f"no such kernel for guests: {error}")
    return run(kernel)


@pytest.mark.parametrize("name", NAMES)
def test_server(name: str) -> None:
    case = run_or_skip("").cases.get(name)
    assert case is not None, f"it was not reached: {run('').outcome.complaints}"
    assert case.verdict == "passed", f"{case} {run('').outcome.complaints}"


@pytest.mark.parametrize(
    "kernel", ["", pytest.param(kernels.NEWER, marks=pytest.mark.long)], ids=["stock", "newer"]
)
def test_nothing_remains_and_the_kernel_is_content(kernel: str) -> None:
    outcome = run_or_skip(kernel).outcome
    assert (outcome.exit_status, outcome.complaints) == (0, [])
