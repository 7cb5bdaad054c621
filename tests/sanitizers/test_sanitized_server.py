# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""beowire-server built with sanitizers, under the tests of protocol servers in a guest."""

import re
from pathlib import Path

import pytest
from beowire import places
from test_kernel_server import NAMES, tried
from test_sanitizers import ADDRESS, OPTIONS, configured, run

SERVER = "hosts/kernel/server/beowire-server"
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def server() -> Path:
    made = configured(ADDRESS)
    run([places.program("ninja", "ninja-build"), "-C", str(made), SERVER])
    assert "libasan" in run(["ldd", str(made / SERVER)])
    return made / SERVER


def test_no_complaint_of_the_server(server: Path) -> None:
    """A complaint ends it, and so fails the tests that follow."""
    done = tried("", server, OPTIONS)
    assert not re.search("Sanitizer|runtime error", done.output), done.output
    assert done.outcome.exit_status == 0, done.output
    assert {name for name, case in done.cases.items() if case.verdict == "passed"} == set(NAMES)
