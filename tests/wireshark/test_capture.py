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
import struct
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
def recorded(namespace: str, port: str, path: Path) -> Iterator[list[int]]:
    """Records Beowire's frames in both directions at a port of the switch; loses none. The list is
    for how many were sent: the last ones may come to the port late."""
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
            # Frames of others that came before it had its filter, which count as received.
            others = _asked(process)[1]
            sent: list[int] = []
            yield sent
            _await_the_last(process, others, sum(sent))
        finally:
            process.send_signal(signal.SIGINT)
            said = process.stderr.read()
    captured, received, dropped = _counts(said)
    assert captured == received - others, said
    assert dropped == 0, said


def _counts(said: str) -> list[int]:
    """Packets written, packets that came, and packets dropped, as it says last."""
    words = (r"captured", r"received by filter", r"dropped by kernel")
    return [int(re.findall(rf"(\d+) packets? {each}", said)[-1]) for each in words]


def _asked(process: "subprocess.Popen[str]") -> list[int]:
    """The same, now."""
    assert process.stderr is not None
    process.send_signal(signal.SIGUSR1)
    return _counts(process.stderr.readline())


def _await_the_last(process: "subprocess.Popen[str]", others: int, least: int) -> None:
    """Returns when so many frames have come at least, without those of others, and the recorder has
    written all that came: what is in its ring is lost with it."""
    patience = time.monotonic() + HANG_S
    counts = [0, 0, 0]
    while time.monotonic() < patience:
        counts = _asked(process)
        if counts[0] == counts[1] - others >= least:
            return
    raise AssertionError(f"not all of {least} frames were recorded: {counts}, {others} of others")


@dataclass
class Run:
    """A recorded run: its frames, and the counters of each endpoint by its node's identity."""

    capture: Path
    counters: dict[str, dict[str, int]]
    whole: dict[str, dict[str, object]]


def recorded_run(directory: Path, **environment: str) -> Run:
    """A program of two processes with these variables, all of whose frames are raw ones: those are
    what is recorded."""
    made = up.up(f"capture-{os.getpid()}", 2, 9000)
    try:
        if made.mode == "loopback":
            pytest.skip(f"no namespaces for a switch: {made.reason}")
        where = cluster.of_lab(made.name)
        stats = directory / "stats"
        stats.mkdir()
        program = [str(places.example("pingpong")), "--mode", "bandwidth"]
        program += ["--sizes", "8,3000,100000", "--iters", "2", "--window", "4", "--verify"]
        environment |= {"BEOWIRE_STATS": str(stats), "BEOWIRE_LINKS": "local,packet"}
        with recorded(made.namespace("switch"), "node1", directory / "run.pcap") as sent:
            job = Job(program, 2, "beowire", environment=environment)
            record, _ = run_captured(job, where, HANG_S)
            counted = map(json.loads, map(Path.read_text, stats.glob("*.json")))
            sent += [each["links"]["packet"]["tx_frames"] for each in counted]
        assert record.exit_status == 0
        whole = {
            each["node"]: each
            for each in map(json.loads, map(Path.read_text, stats.glob("*.json")))
        }
        return Run(
            directory / "run.pcap",
            {node: each["links"]["packet"] for node, each in whole.items()},
            whole,
        )
    finally:
        up.down(made.name)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return recorded_run(tmp_path_factory.mktemp("capture"))


@pytest.fixture(scope="module")
def keyed_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same with a cluster key, which lies beside the capture."""
    directory = tmp_path_factory.mktemp("keyed")
    return recorded_run(directory, BEOWIRE_KEY=str(key_file(directory / "key", "42")))


@pytest.fixture(scope="module")
def sealed_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same, encrypted."""
    directory = tmp_path_factory.mktemp("sealed")
    key = str(key_file(directory / "key", "42"))
    return recorded_run(directory, BEOWIRE_KEY=key, BEOWIRE_ENCRYPT="1")


def key_file(path: Path, byte: str) -> Path:
    path.write_text(f"{byte * 32}\n")
    path.chmod(0o600)
    return path


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


STATUS = ["beowire.hdr.type", "beowire.hdr.tag.status", "beowire.hello.auth.status"]
STATUS += ["beowire.hdr.hcrc.status", "_ws.expert.message", "beowire.challenge.auth.status"]
TAGGED = {str(C[f"BW_FRAME_{kind}"]) for kind in ("DATA", "ACK", "BYE")}
HELLO, CHALLENGE = (str(C[f"BW_FRAME_{kind}"]) for kind in ("HELLO", "CHALLENGE"))


def statuses(capture: Path, key: Path | None) -> tuple[Counter[str], Counter[str], int]:
    """Of tags, of HELLOs and CHALLENGEs, and how many frames have a problem. What has no tag has a
    checksum."""
    tags: Counter[str] = Counter()
    hellos: Counter[str] = Counter()
    problems = 0
    option = ["-o", f"beowire.key_file:{key}"] if key else []
    for (kind,), tag, hello, head, problem, challenge in columns(capture, STATUS, *option):
        auth = hello + challenge
        assert (len(tag), len(head)) == ((1, 0) if kind in TAGGED else (0, 1))
        assert (len(hello), len(challenge)) == (kind == HELLO, kind == CHALLENGE)
        assert head in ([], ["1"])
        tags.update(tag)
        hellos.update(auth)
        problems += bool(problem)
    return tags, hellos, problems


def test_tags_are_verified_with_the_key(keyed_run: Run) -> None:
    tags, hellos, problems = statuses(keyed_run.capture, keyed_run.capture.with_name("key"))
    assert set(tags) == set(hellos) == {"1"}
    assert tags["1"] > 10
    assert hellos["1"] >= 2
    assert problems == 0


def test_tags_are_no_damage_without_it(keyed_run: Run) -> None:
    tags, hellos, problems = statuses(keyed_run.capture, None)
    assert set(tags) == set(hellos) == {"2"}
    assert problems == 0


def test_what_is_sealed_is_opened_with_the_key(sealed_run: Run) -> None:
    """All that was sent, of every kind; without the key none of it is to be seen."""
    key = sealed_run.capture.with_name("key")
    wanted = ["beowire.sealed.tag.status", "beowire.part.kind", "beowire.part.plen"]
    wanted += ["_ws.expert.message", "beowire.part.crc"]
    seen: Counter[int] = Counter()
    for status, kinds, sizes, problem, checks in columns(
        sealed_run.capture, wanted, "-o", f"beowire.key_file:{key}"
    ):
        assert status in ([], ["1"])
        assert (problem, set(checks)) in (([], set()), ([], {"0x00000000"}))
        for kind, size in zip(kinds, sizes, strict=True):
            seen[int(kind)] += int(size)
    payload = seen[C["BW_PART_MESSAGE"]] + seen[C["BW_PART_BULK"]]
    assert payload == sum(each["tx_payload"] for each in sealed_run.counters.values())
    assert payload > 100_000
    for status, kinds, *_ in columns(sealed_run.capture, wanted):
        assert status in ([], ["2"])
        assert kinds == []


def test_nothing_is_genuine_by_another_key(keyed_run: Run, tmp_path: Path) -> None:
    tags, hellos, problems = statuses(keyed_run.capture, key_file(tmp_path / "key", "43"))
    assert set(tags) == set(hellos) == {"0"}
    assert problems == tags["0"] + hellos["0"]


def test_no_key_in_the_file_is_told(keyed_run: Run, tmp_path: Path) -> None:
    for file in (tmp_path / "none", key_file(tmp_path / "key", "00")):
        tags, hellos, problems = statuses(keyed_run.capture, file)
        assert set(tags) == set(hellos) == {"2"}
        assert problems == tags["2"] + hellos["2"] + unnamed(keyed_run.capture)


def unnamed(capture: Path) -> int:
    """Frames with neither a tag nor the authentication of HELLO and CHALLENGE."""
    kinds = [row[0][0] for row in columns(capture, STATUS[:1])]
    return sum(kind not in TAGGED | {HELLO, CHALLENGE} for kind in kinds)


def test_a_changed_bit_is_no_more_genuine(keyed_run: Run, tmp_path: Path) -> None:
    """Of the header or the acknowledgement of one frame with a tag, and of one HELLO."""
    key = keyed_run.capture.with_name("key")
    good, hellos, _ = statuses(keyed_run.capture, key)
    for wanted, offset in ((HELLO, 32 + 120), (str(C["BW_FRAME_DATA"]), 32 + 8)):
        changed = tmp_path / "changed.pcap"
        changed.write_bytes(flipped(keyed_run.capture.read_bytes(), int(wanted), offset))
        if wanted == HELLO:  # by the checksum as well, which comes first
            rows = list(columns(changed, STATUS, "-o", f"beowire.key_file:{key}"))
            assert sum(row[2] == ["0"] for row in rows) == 1
        else:
            tags, found, problems = statuses(changed, key)
            assert (tags["0"], tags["1"], problems) == (1, good["1"] - 1, 1)
            assert found == hellos


def flipped(capture: bytes, kind: int, offset: int) -> bytes:
    """The capture with a bit changed in its last frame of this type, behind the Ethernet header."""
    out = bytearray(capture)
    at, found = 24, 0
    while at < len(out):
        (size,) = struct.unpack_from("<I", out, at + 8)
        if out[at + 16 + 14 + 3] == kind:
            found = at + 16 + 14 + offset
        at += 16 + size
    assert found
    out[found] ^= 1
    return bytes(out)
