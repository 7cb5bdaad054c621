# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Endpoints with raw frames that come and go, on an interface of their own."""

import os
import subprocess

import pytest
from beowire import namespaces, places
from beowire.selftest import reports

LIMIT_S = 300
ENTER = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
INTERFACES = """
set -e
ip link set lo up
ip link add one mtu 9000 type veth peer name other mtu 9000
ip link set one up
ip link set other up
exec "$@"
"""


@pytest.mark.parametrize(("name", "tests"), [("test_close", 3), ("test_threads", 5)])
def test_program(name: str, tests: int) -> None:
    if refusal := namespaces.refusal():
        pytest.skip(refusal)
    program = str(places.product(f"tests/user/{name}"))
    done = subprocess.run(
        [*ENTER, "sh", "-c", INTERFACES, "sh", program],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={**os.environ, "BEOWIRE_LINKS": "packet,local", "BEOWIRE_INTERFACE": "one"},
    )
    cases = reports.cmocka_cases(name, done.stdout, done.stderr)
    assert len(cases) >= tests, done.stdout + done.stderr
    assert [each for each in cases if each.verdict != "passed"] == []
