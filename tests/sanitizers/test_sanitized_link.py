# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel link built with sanitizers: programs that only a guest can run, as it has the
module."""

import alone
import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.vm import machine
from test_sanitizers import ADDRESS, PROVIDER, configured, run

LINKED = ("link_anew", "link_keys", "link_meets", "link_room", "link_strangers")
LOADING = ("test_cut", "test_getinfo", "test_memory", "test_messages", "test_waiting")
PROGRAMS = (
    *(f"tests/kernel/{each}" for each in LINKED),
    *(f"tests/libfabric/{each}" for each in LOADING),
)
LIMIT_S = 300
GUEST_S = 1500
pytestmark = [pytest.mark.long, pytest.mark.timeout(GUEST_S + 900)]


def test_no_complaint_over_the_kernel_link() -> None:
    try:
        machine.find_kernel("")
    except BeowireError as error:
        pytest.skip(f"there are no guests here: {error}")
    build = configured(ADDRESS)
    targets = [*PROGRAMS, PROVIDER, "tests/sanitizers/planted"]
    run([places.program("ninja", "ninja-build"), "-C", str(build), *targets])
    folder = (build / PROVIDER).parent
    calls = [alone.Call(each.rpartition("/")[2], build / each, folder) for each in PROGRAMS]
    ended, complaints = alone.run(calls, LIMIT_S, GUEST_S)
    assert {name: each.said for name, each in ended.items() if each.status} == {}
    assert complaints == []
