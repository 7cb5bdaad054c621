# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Hostile frames into a job over the kernel module: tests for a guest that has it loaded.

Collected by name alone: tests/kernel/link/test_hostile_over_the_module.py has a guest run them.
"""

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from beowire.run.cluster import Cluster
from mpi_hostile import Build, Way, beside, member, release
from mpi_lab import MODULE, NODES_WITHOUT, lab_behind, lab_of
from test_stranger import MEMBER_KIB

FRAMES = int(os.environ.get("BEOWIRE_TEST_FRAMES", "3000"))
"""Hostile frames that ports must have looked at."""
HELD = Path("/sys/module/beowire/parameters/held_bytes")
"""Bytes that the module holds for all users."""
MEMORY_MAX = 64 << 20
"""Bytes that a port's engine may take, and that may wait in its socket (`memory_max`)."""
LOOK_S = 0.1
END_S = 60
"""For so long a port may live on when its socket was closed."""


class Held(threading.Thread):
    """Looks at the most bytes that the module ever held, until it is told to stop."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.stop = threading.Event()
        self.most = 0

    def run(self) -> None:
        """Look again and again."""
        while not self.stop.wait(LOOK_S):
            self.most = max(self.most, int(HELD.read_text()))


@contextmanager
def bounded() -> Iterator[None]:
    """What the module holds meanwhile is bounded, and all is given back."""
    before = int(HELD.read_text())
    held = Held()
    held.start()
    try:
        yield
    finally:
        held.stop.set()
        held.join()
    ended = threading.Event()
    for _ in range(END_S):
        if int(HELD.read_text()) <= before or ended.wait(1):
            break
    after = int(HELD.read_text())
    print(f"the module held {before} bytes before, {held.most} at most, {after} after")
    assert before < held.most < before + 2 * 2 * MEMORY_MAX  # two ranks
    assert after <= before


def set_keys(cluster: Cluster, way: Way) -> None:
    """The nodes' key and whether they encrypt, as their administrator would set them."""
    lab = lab_behind(cluster)
    settings = "/proc/sys/net/beowire"
    script = f"cat {way.key} >{settings}/key; " if way.key else ""
    script += f"echo {int(way.encrypt)} >{settings}/encrypt"
    for node in lab.node_names()[: lab.nodes - NODES_WITHOUT]:
        enter = ["nsenter", f"--net={lab.namespace_path(node)}", "--", "sh", "-ec", script]
        subprocess.run(enter, check=True)


def build() -> Build:
    """A guest is slow."""
    return replace(release(), rate=3000, rounds=40, least=100)


@pytest.fixture
def lab() -> Iterator[Cluster]:
    """Three nodes, of which the last is the hostile program's, and does not use the module."""
    assert MODULE.exists()
    assert NODES_WITHOUT == 1
    with lab_of(3) as made:
        yield made


@pytest.mark.parametrize("kind", ["plain", "key", "encrypted"])
@pytest.mark.parametrize("who", ["stranger", "member"])
def test_hostile_frames(who: str, kind: str, key: str, lab: Cluster) -> None:
    """No byte is wrong, no conversation ends, and nothing is held for long."""
    way = Way(kind, "kernel", "" if kind == "plain" else key, kind == "encrypted")
    set_keys(lab, way)
    bound = replace(build(), resident_kib=build().resident_kib + MEMBER_KIB)
    with bounded():
        jobs, said = beside(
            lab,
            bound,
            way,
            lambda seed: ("stranger", str(seed)) if who == "stranger" else member(seed, way),
            lambda jobs: (jobs.seen if who == "stranger" else jobs.heard) >= FRAMES,
        )
    if who == "stranger":
        raw, _, challenges, answers = said
        assert raw > FRAMES // 10
        assert challenges > FRAMES // 1000
        assert (answers == 0) == bool(way.key)
    else:
        sent, changed, contacts = said
        assert changed > sent // 4
        assert contacts > 0
    assert "\033" not in jobs.said
    assert "\007" not in jobs.said
    for word in ("stranger", "is gone", "install the same Beowire"):
        assert word not in jobs.said
