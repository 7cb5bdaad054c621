# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which way the payload went, judged by counters written by hand: each doubt alone is enough."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.lab.counters import NodeCounters
from beowire.run import path
from beowire.run.launch import Job
from beowire.run.path import Endpoint, JobRecord

PAYLOAD, LOCAL = 10_000_000, 2_000_000
FRAMES = 1200
CARRIED = PAYLOAD + 48 * FRAMES


def counted(raw: int = 0, ip: int = 5000, packets: int = 50, loopback: int = 0) -> NodeCounters:
    """What a node sent: so many bytes in frames that are not IP, in IP packets, and of these over
    the loopback interface."""
    return NodeCounters(
        tx_bytes=raw + ip + 14 * packets - loopback,
        rx_bytes=0,
        tx_frames=0,
        rx_frames=0,
        ip_out_octets=ip,
        ip_in_octets=0,
        ip_out_packets=packets,
        tcp_out_segments=0,
        tcp_retransmitted_segments=0,
        loopback_bytes=loopback,
    )


def endpoint(node: str, sent: dict[str, int], received: dict[str, int]) -> Endpoint:
    local = {"tx_payload": LOCAL, "rx_payload": LOCAL}
    return Endpoint(node, 1, {"packet": sent | received, "local": local}, 0, {})


SENDER = endpoint("node1", {"tx_bytes": CARRIED, "tx_frames": FRAMES}, {})
RECEIVER = endpoint("node2", {}, {"rx_payload": PAYLOAD})
RECORD = JobRecord(
    job=Job(["program"], 2, "beowire"),
    command="mpirun program",
    exit_status=0,
    timed_out=False,
    interrupted_by=0,
    elapsed_ns=1,
    nodes={"node1": counted(CARRIED), "node2": counted()},
    endpoints=[SENDER, RECEIVER],
)


def test_what_is_not_ip_is_raw() -> None:
    assert counted(700).raw_bytes == 700
    assert counted(700, ip=90_000, packets=90, loopback=20_000).raw_bytes == 700
    assert counted(0).raw_bytes == 0


def test_ip_counts_one_header_of_a_row() -> None:
    """100 frames, of which 90 left in 3 rows: 13 datagrams."""
    counts = {"udp": {"tx_bytes": 100_000, "tx_frames": 100}}
    sender = Endpoint("node1", 1, counts, 0, {}, udp_tx_rows=3, udp_tx_row_frames=90)
    assert replace(RECORD, endpoints=[sender]).udp_octets == 100_000 + 13 * 28


def test_a_job_is_believed_whose_counters_agree() -> None:
    path.prove(RECORD, PAYLOAD, 2 * LOCAL)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (
            replace(RECORD, job=replace(RECORD.job, ranks=3)),
            "2 endpoints of Beowire left counters, for 3 ranks",
        ),
        (
            replace(RECORD, endpoints=[SENDER, endpoint("node2", {}, {"rx_payload": PAYLOAD - 1})]),
            "Beowire carried 9,999,999 bytes of the 10,000,000",
        ),
        (
            replace(
                RECORD,
                endpoints=[
                    SENDER,
                    replace(
                        RECEIVER,
                        links={
                            **RECEIVER.links,
                            "local": {"tx_payload": LOCAL, "rx_payload": LOCAL - 1},
                        },
                    ),
                ],
            ),
            "`local` carried 3,999,999 bytes of the 4,000,000",
        ),
        # Frames that no interface saw, and frames that nobody counted.
        (replace(RECORD, nodes={"node1": counted(CARRIED // 2), "node2": counted()}), "raw frames"),
        (replace(RECORD, nodes={"node1": counted(CARRIED * 2), "node2": counted()}), "raw frames"),
        (
            replace(RECORD, nodes={"node1": counted(CARRIED, ip=PAYLOAD), "node2": counted()}),
            "TCP carried 10,005,000 bytes, more than",
        ),
    ],
    ids=["ranks", "payload", "local", "frames-missing", "frames-more", "tcp"],
)
def test_each_doubt_is_told(record: JobRecord, said: str) -> None:
    with pytest.raises(BeowireError) as refused:
        path.prove(record, PAYLOAD, 2 * LOCAL)
    told = refused.value.what
    assert told.startswith("The job did not go over beowire as asked: ")
    assert said in told
    assert ";" not in told  # nothing else


def test_nothing_is_proved_where_a_host_did_not_answer() -> None:
    """Its endpoints' counters are missing as well, and tell nothing of the program."""
    left = replace(RECORD, endpoints=[SENDER], nodes={"node1": counted(CARRIED)})
    assert path.unmet(left) != ""
    lost = replace(left, unheard=["node2"])
    assert path.unmet(lost) == ""
    for job in (lost.job, replace(lost.job, transport="tcp")):
        with pytest.raises(BeowireError, match="cannot be judged: what was counted on node2 is"):
            path.prove(replace(lost, job=job, endpoints=[]))


def test_of_other_jobs_only_what_they_may_have_sent_is_no_evidence() -> None:
    nodes = {"node1": counted(CARRIED, ip=PAYLOAD), "node2": counted()}
    with pytest.raises(BeowireError, match="cannot be judged: another job ran on this lab"):
        path.prove(replace(RECORD, nodes=nodes, others=1), PAYLOAD)
    with pytest.raises(BeowireError, match="did not go over beowire as asked: Beowire carried"):
        path.prove(replace(RECORD, others=1), PAYLOAD + 1)
    more = {"node1": counted(2 * CARRIED), "node2": counted()}
    path.prove(replace(RECORD, nodes=more, others=1), PAYLOAD)


_SILENT = {"tx_bytes": 0, "tx_frames": 0}


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (replace(RECORD, endpoints=[]), "none of the 2 ranks used Beowire"),
        (replace(RECORD, endpoints=[SENDER]), "1 of the 2 ranks used Beowire"),
        (
            replace(RECORD, endpoints=2 * [endpoint("node1", _SILENT, {})]),
            "no rank sent another one anything",
        ),
        (RECORD, ""),
        (replace(RECORD, endpoints=[], exit_status=1), ""),
        (replace(RECORD, endpoints=[], job=Job(["program"], 2, "tcp")), ""),
        (replace(RECORD, endpoints=[SENDER], job=Job(["program"], 1, "beowire")), ""),
    ],
)
def test_ranks_that_may_have_run_alone_are_told(record: JobRecord, said: str) -> None:
    assert path.unmet(record) == said


WRITTEN = {"node": "n", "pid": 1, "retransmits": 2, "drops": {}, "links": {"packet": {"a": 3}}}


def test_counters_are_read(tmp_path: Path) -> None:
    told = {**WRITTEN, "keyed": 1, "tx_messages": 7, "another": [], "drops": {"overrun": 4}}
    (tmp_path / "n-1.json").write_text(json.dumps(told))
    drops = {"overrun": 4}
    links = {"packet": {"a": 3}}
    assert path.read_endpoints(tmp_path) == [
        Endpoint("n", 1, links, 2, drops, tx_messages=7, keyed=1)
    ]


def told_of(directory: Path, text: str) -> str:
    """What is said of a file that holds this."""
    (directory / "x\x1b.json").write_text(text)
    with pytest.raises(BeowireError) as told:
        path.read_endpoints(directory)
    return str(told.value)


@pytest.mark.parametrize("depth", ["[", '{"links":'])
def test_counters_too_deep_are_none(tmp_path: Path, depth: str) -> None:
    assert "'x\\x1b.json' is no counters file" in told_of(tmp_path, depth * 100_000)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"node": 7}, "node is no text"),
        ({"pid": None}, "pid is no count"),
        ({"pid": "1"}, "pid is no count"),
        ({"pid": True}, "pid is no count"),
        ({"retransmits": -1}, "retransmits is no count"),
        ({"retransmits": 1 << 64}, "retransmits is no count"),
        ({"keyed": float("inf")}, "keyed is no count"),
        ({"links": 7}, "links is no object"),
        ({"links": {"packet": []}}, "packet is no object"),
        ({"links": {"packet": {"a": {}}}}, "a is no count"),
        ({"drops": None}, "drops is no object"),
        ({"drops": {"overrun": "4"}}, "overrun is no count"),
    ],
)
def test_fields_of_another_kind_are_none(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    """A rank may write anything there."""
    assert f"is no counters file of Beowire: ValueError('{said}')" in told_of(
        tmp_path, json.dumps({**WRITTEN, **change})
    )


@pytest.mark.parametrize("missing", sorted(WRITTEN))
def test_each_field_is_needed(tmp_path: Path, missing: str) -> None:
    fields = {name: value for name, value in WRITTEN.items() if name != missing}
    assert f"ValueError('{missing} is no " in told_of(tmp_path, json.dumps(fields))


def test_a_list_is_no_counters_file(tmp_path: Path) -> None:
    assert "ValueError('the file is no object')" in told_of(tmp_path, "[]")
