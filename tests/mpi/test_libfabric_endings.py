# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two libfabric programs without a launcher: when one is killed, the other must be told.

libfabric's own fi_pingpong runs between two nodes; nobody but the transport can tell the
survivor that its peer is gone.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from beowire import places
from beowire.lab.lab import Lab
from beowire.run.cluster import Cluster
from mpi_lab import lab_behind
from mpi_programs import HANG_S

DEAD_TIMEOUT_S = 5
GONE = re.compile(
    r"^beowire: .+ is gone \((.+)\): operations with it end with an error$", re.MULTILINE
)

pytestmark = pytest.mark.skipif(
    shutil.which("fi_pingpong") is None,
    reason="fi_pingpong is not installed: apt-get install libfabric-bin",
)


def _start(lab: Lab, node: str, *arguments: str) -> "subprocess.Popen[str]":
    environment = {
        **os.environ,
        "FI_PROVIDER_PATH": str(places.provider_dir()),
        "FI_PROVIDER": "beowire",
        "BEOWIRE_DEAD_TIMEOUT": str(DEAD_TIMEOUT_S),
    }
    command = ["fi_pingpong", "-p", "beowire", "-e", "rdm", *arguments]
    return subprocess.Popen(
        ["sh", str(lab.enter_path(node)), *command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _await_listener(server: "subprocess.Popen[str]") -> None:
    """Waits until fi_pingpong listens, in the namespace that the process has entered by then."""
    patience = time.monotonic() + HANG_S
    while not re.search(r":B9E8 [0-9A-F:]+ 0A", Path(f"/proc/{server.pid}/net/tcp").read_text()):
        assert server.poll() is None
        assert time.monotonic() < patience
        time.sleep(0.02)


def _await_talk(server: "subprocess.Popen[str]") -> None:
    """Waits until messages go back and forth: before that, the two speak by a connection of their
    own, whose end would tell them."""

    def frames() -> int:
        counted = Path(f"/proc/{server.pid}/net/dev").read_text()
        return int(counted.split("eth0:")[1].split()[1])

    patience, wanted = time.monotonic() + HANG_S, frames() + 1000
    while frames() < wanted:
        assert time.monotonic() < patience
        time.sleep(0.02)


@contextlib.contextmanager
def _talking(lab: Lab, iterations: int) -> Iterator[tuple["subprocess.Popen[str]", ...]]:
    """A server on node1 and a client on node2 that sends to it; both are gone afterwards."""
    often = ("-I", str(iterations), "-S", "64")
    server = _start(lab, "node1", *often)
    _await_listener(server)  # the client gives up at once if nobody listens yet
    client = _start(lab, "node2", *often, lab.address("node1"))
    try:
        yield server, client
    finally:
        for process in (server, client):
            process.kill()
            process.communicate()


def _program(process: "subprocess.Popen[str]") -> int:
    """The process that runs fi_pingpong: the one started, or its child."""
    pids = [process.pid]
    for pid in pids:
        if Path(f"/proc/{pid}/comm").read_text().strip() == "fi_pingpong":
            return pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        pids.extend(int(child) for child in children)
    raise AssertionError("fi_pingpong does not run")


def test_pingpong_ends_well(pair: Cluster) -> None:
    with _talking(lab_behind(pair), 1000) as pingpong:
        for process in pingpong:
            output, _ = process.communicate(timeout=HANG_S)
            assert process.returncode == 0, output
            assert "64" in output


@pytest.mark.parametrize("victim", ["server", "client"])
def test_survivor_is_told(victim: str, pair: Cluster) -> None:
    with _talking(lab_behind(pair), 1_000_000_000) as (server, client):
        _await_talk(server)
        assert server.poll() is None
        assert client.poll() is None
        killed, survivor = (server, client) if victim == "server" else (client, server)
        os.kill(_program(killed), signal.SIGKILL)
        output, _ = survivor.communicate(timeout=HANG_S)
        assert survivor.returncode != 0, output
        assert len(GONE.findall(output)) == 1, output
        assert "cq_readerr" in output, output
