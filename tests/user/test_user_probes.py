# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The probes of the library (sys/sdt.h): each is in the notes of what is installed, and scripts ask
for no other."""

import re
import subprocess
from pathlib import Path

import pytest
from beowire import places

ROOT = Path(__file__).resolve().parents[2]
PROBES = {
    "first_contact": 3,
    "message_received": 2,
    "message_send": 3,
    "path_lost": 2,
    "peer_lost": 3,
    "retransmission": 2,
    "wait_begin": 2,
    "wait_end": 2,
}
"""Each one's number of arguments."""
LIBRARIES = ("hosts/user/libbeowire.so", "adapters/libfabric/libbeowire-fi.so")


def probes(library: str) -> dict[str, int]:
    """The probes in the notes of a library, and how many arguments each has."""
    notes = subprocess.run(
        ["readelf", "--notes", "--wide", places.product(library)],
        capture_output=True,
        text=True,
        check=True,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    ).stdout
    found = {}
    for name, arguments in re.findall(
        r"Provider: beowire\n\s+Name: (\w+)\n.*\n\s+Arguments:(.*)", notes
    ):
        found[name] = len(arguments.split())
    return found


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_probes_are_there(library: str) -> None:
    assert probes(library) == PROBES


def test_scripts_ask_for_probes_that_there_are() -> None:
    scripts = sorted((ROOT / "tools" / "bpftrace").glob("*.bt"))
    assert len(scripts) == 3
    asked = {
        name
        for script in scripts
        for name in re.findall(r"^usdt:\*:beowire:(\w+)", script.read_text(), re.MULTILINE)
    }
    assert asked == set(PROBES)


def test_scripts_use_no_argument_that_there_is_not() -> None:
    for script in (ROOT / "tools" / "bpftrace").glob("*.bt"):
        parts = re.split(r"^usdt:\*:beowire:(\w+)", script.read_text(), flags=re.MULTILINE)
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            used = [int(each) for each in re.findall(r"\barg(\d)\b", body)]
            assert all(each < PROBES[name] for each in used), (script, name)


def test_probes_are_documented() -> None:
    text = (ROOT / "docs" / "status.md").read_text()
    assert [name for name in PROBES if f"`{name}`" not in text] == []
