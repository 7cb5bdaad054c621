# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A real run seen by three witnesses: tcpdump at the switch, the dissector, Beowire's counters.

An MPI program runs in a lab while every frame at one node's port is recorded; all of them must
decode without a problem, and their payload must add up to what the endpoints counted.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from beowire import places
from beowire.lab import up
from beowire.run import cluster
from beowire.run.job import run_captured
from beowire.run.launch import Job
from tshark import columns, decode
from wire_layout import wire_layout

C = wire_layout().constants
HANG_S = 240.0
FIELDS = ["eth.src", "beowire.hdr.type", "beowire.hdr.len", "beowire.part.kind"]
FIELDS += ["beowire.part.plen", "beowire.hdr.hcrc.status", "beowire.part.crc.status"]
FIELDS += ["_ws.expert.message", "beowire.hello.node"]


@contextlib.contextmanager
def recorded(namespace: str, port: str, path: Path) -> Iterator[None]:
    """Records Beowire's frames in both directions at a port of the switch; loses none."""
    command = ["ip", "netns", "exec", namespace, places.program("tcpdump", "tcpdump")]
    command += ["-i", port, "-w", str(path), "-B", "65536", "-Z", "root", "-U", "--immediate-mode"]
    with subprocess.Popen(
        [*command, f"ether proto {C['BW_ETHERTYPE']}"], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        while said and "listening on" not in said:
            said = process.stderr.readline()
        try:
            yield
            _settled(path)
        finally:
            process.send_signal(signal.SIGINT)
            said += process.stderr.read()
    counts = re.findall(
        r"^(\d+) packets? (captured|received by filter|dropped)", said, re.MULTILINE
    )
    captured, received, dropped = (int(count) for count, _ in counts)
    assert captured == received, said
    assert dropped == 0, said


def _settled(path: Path) -> None:
    """Returns when the file has stopped growing: what is in the recorder's ring is lost with it."""
    size = -1
    while size != path.stat().st_size:
        size = path.stat().st_size
        time.sleep(0.5)


@dataclass
class Run:
    """A recorded run: its frames, and the counters of each endpoint by its node's identity."""

    capture: Path
    counters: dict[str, dict[str, int]]
    whole: dict[str, dict[str, object]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    directory = tmp_path_factory.mktemp("capture")
    made = up.up(f"capture-{os.getpid()}", 2, 9000)
    try:
        if made.mode == "loopback":
            pytest.skip(f"no namespaces for a switch: {made.reason}")
        where = cluster.of_lab(made.name)
        stats = directory / "stats"
        stats.mkdir()
        program = [str(places.example("pingpong")), "--mode", "bandwidth"]
        program += ["--sizes", "8,3000,100000", "--iters", "2", "--window", "4", "--verify"]
        with recorded(made.namespace("switch"), "node1", directory / "run.pcap"):
            record, _ = run_captured(
                Job(
                    program,
                    2,
                    "beowire",
                    # All of them as raw frames, which are what is captured.
                    environment={"BEOWIRE_STATS": str(stats), "BEOWIRE_LINKS": "local,packet"},
                ),
                where,
                HANG_S,
            )
        assert record.exit_status == 0
        whole = {
            each["node"]: each
            for each in map(json.loads, map(Path.read_text, stats.glob("*.json")))
        }
        yield Run(
            directory / "run.pcap",
            {node: each["links"]["packet"] for node, each in whole.items()},
            whole,
        )
    finally:
        up.down(made.name)


@dataclass
class Sent:
    """What one node was seen to send, its farewell included."""

    frames: int = 0
    bytes_: int = 0
    payload: int = 0


def test_every_frame_decodes_and_the_payload_adds_up(run: Run) -> None:
    """With all checksums verified, payloads too."""
    sent: dict[str, Sent] = {}
    node_of: dict[str, str] = {}
    types: Counter[int] = Counter()
    pad = str(C["BW_PART_PAD"])
    for row in columns(run.capture, FIELDS, "-o", "beowire.payload:TRUE"):
        (source,), kind, length, kinds, sizes, head, payloads, problems, node = row
        assert problems == []
        assert head == ["1"]
        data = [int(size) for part, size in zip(kinds, sizes, strict=True) if part != pad]
        checked = [each for part, each in zip(kinds, payloads, strict=True) if part != pad]
        assert checked == ["1" if size else "2" for size in data]
        types[int(kind[0])] += 1
        if node:
            node_of[source] = node[0].removeprefix("0x")
        total = sent.setdefault(source, Sent())
        size = 32 + int(length[0])
        total.frames += 1
        total.bytes_ += size
        total.payload += sum(data)
    assert len(run.counters) == len(sent) == 2
    for source, total in sent.items():
        counted = run.counters[node_of[source]]
        assert counted["tx_payload"] == total.payload
        assert (counted["tx_frames"], counted["tx_bytes"]) == (total.frames, total.bytes_)
    assert types[C["BW_FRAME_HELLO"]] >= 2
    assert types[C["BW_FRAME_DATA"]] > 0


def test_all_kinds_of_parts_were_used(run: Run) -> None:
    """Eager messages, pulls and their data, and the probe of the frame size."""
    seen = {part for row in columns(run.capture, ["beowire.part.kind"]) for part in row[0]}
    wanted = {C[f"BW_PART_{kind}"] for kind in ("MESSAGE", "PULL", "BULK", "PAD")}
    assert wanted <= set(map(int, seen))


def test_in_full_detail_too(run: Run) -> None:
    """The same frames by way of PDML: no error of the dissector, no problem."""
    packets = decode(run.capture, "-c", "100")
    assert packets
    for packet in packets:
        assert packet.protocols[-1] == "beowire"
        assert not packet.problems
