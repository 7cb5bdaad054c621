# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The provider where long messages are copied, and fetched before they are received: its tests of
messages over a line that is slow enough for that, the loopback of a namespace."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from beowire import namespaces, places, selftest

SLOW = (
    "ip link set lo mtu 9000 up"
    " && tc qdisc add dev lo root tbf rate 300mbit burst 20kb limit 400kb"
    ' && exec "$@"'
)
LIMIT_S = 120


@pytest.mark.parametrize("name", ["test_messages", "test_memory"])
def test_program(name: str, tmp_path: Path) -> None:
    refusal = namespaces.refusal()
    if refusal:
        pytest.skip(refusal)
    program = str(places.product(f"tests/libfabric/{name}"))
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", SLOW, "sh", program],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={
            **os.environ,
            "FI_PROVIDER_PATH": str(places.provider_dir()),
            "FI_PROVIDER": "beowire",
            "BEOWIRE_LINKS": "udp",
            "BEOWIRE_UDP_ADDRESS": "127.0.0.1",
            "BEOWIRE_STATS": str(tmp_path),
        },
    )
    cases = selftest.cmocka_cases(name, done.stdout, done.stderr)
    assert len(cases) > 10
    assert [each for each in cases if each.verdict != "passed"] == []
    ends = [json.loads(each.read_text()) for each in tmp_path.iterdir()]
    assert sum(each["tx_copies"] for each in ends) > 0
    if name == "test_messages":
        assert sum(each["rx_early"] for each in ends) > 0
