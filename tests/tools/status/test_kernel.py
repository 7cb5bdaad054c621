# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the kernel module's files say, as hosts/kernel/proc.c writes them."""

from pathlib import Path

import pytest
from beowire.status import kernel

SOCKETS = """type      state      port  to                      waiting    sending    uid        inode      charged
rdm       bound      513   00:00:00:00:00:00 0     0          0          1000       4711       0
stream    connected  514   02:00:00:00:00:01 99    10         20         0          4712       -5
"""  # noqa: E501
NODE = """node 00000000000000ab
family 19
cluster 7
copy-max 16384
interface eth0 2 02:00:00:00:00:01 1500
foreign 3
malformed 0
"""
COUNTERS = """challenges_tx 5
challenges_rx 0
drops.header 3
drops.no_buffer 18446744073709551615
"""


def test_a_module_that_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "PLACE", tmp_path)
    assert kernel.look() is None


def test_what_the_files_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "PLACE", tmp_path)
    (tmp_path / "node").write_text(NODE)
    (tmp_path / "sockets").write_text(SOCKETS)
    (tmp_path / "counters").write_text(COUNTERS)
    told = kernel.look()
    assert told is not None
    assert told["node"]["foreign"] == 3
    assert told["node"]["copy_max"] == 16384
    assert told["counters"] == {"challenges_tx": 5, "challenges_rx": 0}
    assert told["drops"] == {"header": 3, "no_buffer": 2**64 - 1}
    assert told["interfaces"] == ["eth0 2 02:00:00:00:00:01 1500"]
    assert [each["inode"] for each in told["sockets"]] == [4711, 4712]
    assert told["sockets"][1]["to"] == "02:00:00:00:00:01"
    assert told["sockets"][1]["to_port"] == 99
    assert told["sockets"][1]["charged"] == -5


def test_a_table() -> None:
    names = "type state port waiting"
    assert kernel.table(f"{names}\nrdm bound 513 -1\n") == [
        {"type": "rdm", "state": "bound", "port": 513, "waiting": -1}
    ]


def test_rows_that_do_not_fit_are_left_out() -> None:
    assert kernel.table("a b\n1\n1 2 3\n4 5\n") == [{"a": 4, "b": 5}]
    assert kernel.table("") == []
