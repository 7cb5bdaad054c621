# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A file against tcp_rmem: the setting is the receiver's, in its namespace alone, and the transfer
is timed to its last byte."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from beowire import namespaces
from beowire.errors import BeowireError
from beowire.evidence.experiment import Context
from beowire.evidence.experiments import files
from beowire.lab import stream
from beowire.lab.lab import Lab
from beowire.topology.topology import End

RECEIVE = Path("/proc/sys/net/ipv4/tcp_rmem")
FIRST, SECOND = End("node1", "eth0"), End("node2", "eth0")
PARAMETERS = {
    "rate_bits": 1_000_000_000,
    "stated_bytes": 900_000_000,
    "file_bytes": 300_000,
    "buffers": (10_000, 100_000),
    "rounds": 2,
}


def told(lab: Lab, node: str) -> str:
    return namespaces.within(lab.namespace_path(node), RECEIVE.read_text)


@pytest.mark.usefixtures("two_nodes")
def test_the_receiver_has_the_setting_while_a_file_comes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = RECEIVE.read_text()
    seen: list[tuple[str, str]] = []
    transfer: Callable[..., float] = stream.transfer

    def watched(lab: Lab, *rest: Any) -> float:
        seen.append((told(lab, "node1"), told(lab, "node2")))
        return transfer(lab, *rest)

    monkeypatch.setattr(stream, "transfer", watched)
    context = Context(lambda _: None, tmp_path, time.monotonic() + 300)
    found = files.receive_buffer(PARAMETERS, context)
    assert [theirs.split() for _, theirs in seen] == [["10000"] * 3, ["100000"] * 3] * 2
    assert {mine for mine, _ in seen} == {before}
    assert RECEIVE.read_text() == before
    assert [x for x, _ in found.curves["seconds"]] == [10_000, 100_000]
    assert all(y > 0 for _, y in found.curves["seconds"])
    assert found.remarks[0] == "a file of 300,000 bytes: the paper's divided by 3000"


def test_a_transfer_is_whole_or_late(two_nodes: Lab) -> None:
    size = 3_000_001
    before = stream.rx_bytes(two_nodes, SECOND)
    assert stream.transfer(two_nodes, FIRST, SECOND, size, 60) > 0
    assert stream.rx_bytes(two_nodes, SECOND) - before > size
    with pytest.raises(BeowireError, match="did not end in 0 s"):
        stream.transfer(two_nodes, FIRST, SECOND, 1 << 30, 0.01)
