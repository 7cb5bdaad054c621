# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which way the payload went, proved by two independent witnesses.

Beowire's endpoints count what they sent; the kernel counts what crossed each node's interface
and what of it was IP. A job over Beowire is believed only when the frames that are not IP (or
UDP, on that link) are Beowire's and TCP carried the launcher alone; a job over TCP, when no
endpoint of Beowire existed and the IP bytes account for the payload; a job over an MPI's own shared
memory, when no endpoint existed and IP carried the launcher alone. Within a node the kernel counts
nothing: there the endpoints' counters of link `local` are the witness.

The kernel's counters are those of a node, not of a job: where other jobs ran on the same lab, what
they count beyond the job's own is no evidence against it, and no verdict is given if it would be.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from beowire.errors import BeowireError
from beowire.lab.counters import NodeCounters
from beowire.run import mpi
from beowire.run.launch import Job

# What an MPI launcher sends over TCP for each node, for wiring up and for forwarding output;
# measured for Open MPI's and MPICH's launchers, with room. What each rank adds, module mpi knows.
LAUNCHER_NODE_BYTES = 100_000

# Frames beside the job: ARP, IPv6 neighbour discovery.
HOUSEKEEPING_NODE_BYTES = 16_384

_MESSAGE_COUNTS = (
    "tx_messages",
    "rx_messages",
    "tx_pulls",
    "rx_pulls",
    "tx_copies",
    "rx_early",
    "udp_tx_rows",
    "udp_tx_row_frames",
    "udp_rx_rows",
    "duplex_payload",
    "duplex_messages",
    "keyed",
    "encrypted",
)

_UDP_IP_HEADER_BYTES = 28
_UDP_FRAME_HEAD_BYTES = 14 + _UDP_IP_HEADER_BYTES
_RAW_FRAME_OVERHEAD_BYTES = 32


@dataclass(frozen=True)
class Endpoint:
    """The counters that one endpoint of Beowire wrote when it closed."""

    node: str
    pid: int
    links: dict[str, dict[str, int]]
    retransmits: int
    drops: dict[str, int]
    tx_messages: int = 0
    """To other nodes; rx_messages from them."""
    rx_messages: int = 0
    tx_pulls: int = 0
    """Long messages that this endpoint asked for; rx_pulls those that it was asked for."""
    rx_pulls: int = 0
    tx_copies: int = 0
    """Long messages that were sent out of a copy."""
    rx_early: int = 0
    """Long messages that were fetched before their receive was posted."""
    udp_tx_rows: int = 0
    """Rows of several frames that the kernel took as one datagram and cut."""
    udp_tx_row_frames: int = 0
    """The frames in these rows."""
    udp_rx_rows: int = 0
    """Datagrams that the kernel delivered joined."""
    duplex_payload: int = 0
    """Bytes received from other nodes while as many were under way to them."""
    duplex_messages: int = 0
    keyed: int = 0
    """1 if only who has the cluster's key could speak with it."""
    encrypted: int = 0
    """1 if nobody else could read what it said to other nodes."""

    def sum(self, counter: str, *links: str) -> int:
        return sum(self.links.get(link, {}).get(counter, 0) for link in links)


@dataclass(frozen=True)
class JobRecord:
    """How a job ended and what was counted while it ran."""

    job: Job
    command: str
    exit_status: int
    timed_out: bool
    interrupted_by: int
    """The signal that came for the command while the job ran; 0: none."""
    elapsed_ns: int
    nodes: dict[str, NodeCounters] = field(default_factory=dict)
    endpoints: list[Endpoint] = field(default_factory=list)
    exclusive: bool = True
    """The nodes' counters hold this job's traffic alone, and that of `others`; false on real
    hosts."""
    others: int = 0
    """How many other jobs ran on the same lab meanwhile, whose traffic was counted too."""
    unheard: list[str] = field(default_factory=list)
    """Hosts of which nothing is known, as they did not answer when the job had ended."""

    def sum(self, counter: str, *links: str) -> int:
        """A counter of all endpoints over the given links."""
        return sum(endpoint.sum(counter, *links) for endpoint in self.endpoints)

    @property
    def payload_bytes(self) -> int:
        """Payload that Beowire received from other nodes."""
        return self.sum("rx_payload", "packet", "udp", "kernel")

    @property
    def retransmits(self) -> int:
        return sum(endpoint.retransmits for endpoint in self.endpoints)

    @property
    def raw_bytes(self) -> int:
        """Bytes that crossed the interfaces in frames that are not IP."""
        return sum(node.raw_bytes for node in self.nodes.values())

    @property
    def udp_octets(self) -> int:
        """IP bytes of the udp link, headers included. IP counts one header of a row: it is cut
        beneath."""
        joined = sum(each.udp_tx_row_frames - each.udp_tx_rows for each in self.endpoints)
        datagrams = self.sum("tx_frames", "udp") - joined
        return self.sum("tx_bytes", "udp") + _UDP_IP_HEADER_BYTES * datagrams

    @property
    def tcp_octets(self) -> int:
        """IP bytes that are not the udp link's: the launcher's and, over TCP, the payload. 0 where
        nobody counted them."""
        if not self.nodes:
            return 0
        return sum(node.ip_out_octets for node in self.nodes.values()) - self.udp_octets

    def as_json(self) -> dict[str, Any]:
        return {
            "command": self.command,
            "transport": self.job.transport,
            "exit_status": self.exit_status,
            "timed_out": self.timed_out,
            "elapsed_ns": self.elapsed_ns,
            "endpoints": len(self.endpoints),
            "beowire_payload_bytes": self.payload_bytes,
            "beowire_kernel_bytes": self.sum("tx_bytes", "kernel"),
            "beowire_packet_bytes": self.sum("tx_bytes", "packet"),
            "beowire_udp_bytes": self.sum("tx_bytes", "udp"),
            "beowire_local_bytes": self.sum("tx_payload", "local"),
            "retransmits": self.retransmits,
            "interface_raw_bytes": self.raw_bytes,
            "tcp_bytes": self.tcp_octets,
            "other_jobs": self.others,
            "unheard": self.unheard,
        }


def unmet(record: JobRecord) -> str:
    """What makes it look as if ranks had run without one another, such as those of a program of
    another MPI, of which each believes that it is alone and ends well; empty: nothing does."""
    ranks = record.job.ranks
    if record.job.transport != "beowire" or ranks == 1 or record.exit_status != 0:
        return ""
    if record.unheard:  # the counters of some ranks are missing for another reason
        return ""
    used = len(record.endpoints)
    if used < ranks:
        return f"{used or 'none'} of the {ranks} ranks used Beowire"
    if not record.sum("tx_frames", "packet", "udp", "kernel", "local"):
        return "no rank sent another one anything"
    return ""


def read_endpoints(directory: Path) -> list[Endpoint]:
    """The counters that the endpoints of a job left in BEOWIRE_STATS."""
    endpoints = []
    for path in sorted(directory.glob("*.json")):
        try:
            endpoints.append(_endpoint(json.loads(path.read_text())))
        except (ValueError, RecursionError) as error:
            raise BeowireError(
                f"{path.name!r} is no counters file of Beowire: {error!r}."
            ) from error
    return endpoints


def _endpoint(told: Any) -> Endpoint:
    """What a file tells, which a rank wrote: ValueError if it is anything else."""
    fields = _mapping("the file", told)
    links = _mapping("links", fields.get("links"))
    node = fields.get("node")
    if not isinstance(node, str):
        raise ValueError("node is no text")
    return Endpoint(
        node=node,
        pid=_count("pid", fields.get("pid")),
        links={link: _counts(link, counters) for link, counters in links.items()},
        retransmits=_count("retransmits", fields.get("retransmits")),
        drops=_counts("drops", fields.get("drops")),
        **{name: _count(name, fields.get(name, 0)) for name in _MESSAGE_COUNTS},
    )


def _mapping(name: str, told: Any) -> dict[str, Any]:
    if not isinstance(told, dict):
        raise ValueError(f"{name} is no object")
    return told


def _counts(name: str, told: Any) -> dict[str, int]:
    return {key: _count(key, count) for key, count in _mapping(name, told).items()}


def _count(name: str, told: Any) -> int:
    """A counter of 64 bits."""
    if type(told) is not int or not 0 <= told < 1 << 64:
        raise ValueError(f"{name} is no count")
    return told


def tcp_limit_bytes(record: JobRecord) -> int:
    """The most that TCP may carry beside Beowire: what the launcher sends. Real hosts send other
    things too; there TCP must carry clearly less than the payload, if there is much of it."""
    rank_bytes = mpi.find(record.job.mpi).launcher_rank_bytes
    launcher = LAUNCHER_NODE_BYTES * len(record.nodes) + rank_bytes * record.job.ranks
    return launcher if record.exclusive else max(launcher, record.payload_bytes // 2, 10**7)


def prove(record: JobRecord, payload_bytes: int = 0, local_bytes: int = 0) -> None:
    """Fails unless the job's payload went over the transport that was asked for.

    `payload_bytes` is what the program is known to have sent between nodes, `local_bytes` within
    nodes (lower bounds).
    """
    if record.unheard:
        raise BeowireError(
            f"Whether the job went over {record.job.transport} cannot be judged: what was counted "
            f"on {', '.join(record.unheard)} is not known.",
            "Run it again when all hosts answer.",
            code=4,
        )
    if record.job.transport == "beowire":
        faults = [*_beowire_faults(record, payload_bytes), *_local_faults(record, local_bytes)]
    elif record.job.transport == "tcp":
        faults = _tcp_faults(record, payload_bytes)
    else:
        faults = _memory_faults(record)
    certain = [fault.what for fault in faults if not (fault.shared and record.others)]
    if certain:
        raise BeowireError(
            f"The job did not go over {record.job.transport} as asked: {'; '.join(certain)}.",
            f"It was started by: {record.command}",
            code=4,
        )
    if faults:
        others = "another job" if record.others == 1 else f"{record.others} other jobs"
        raise BeowireError(
            f"Whether the job went over {record.job.transport} cannot be judged: {others} ran on "
            f"this lab meanwhile, and {'; '.join(fault.what for fault in faults)}.",
            "Run it again when nothing else runs on the lab, or on a lab of its own.",
            code=4,
        )


class Fault(NamedTuple):
    """What does not fit in with the transport that was asked for."""

    what: str
    shared: bool = False
    """More was counted than the job should have sent, by counters that other jobs share."""


def _beowire_faults(record: JobRecord, payload_bytes: int) -> list[Fault]:
    faults = []
    if len(record.endpoints) < record.job.ranks:
        faults.append(
            Fault(
                f"{len(record.endpoints)} endpoints of Beowire left counters, for "
                f"{record.job.ranks} ranks"
            )
        )
    if record.payload_bytes < payload_bytes:
        faults.append(
            Fault(
                f"Beowire carried {record.payload_bytes:,} bytes of the {payload_bytes:,} sent "
                "between nodes"
            )
        )
    faults += _launcher_faults(record)
    if record.nodes:
        faults += _raw_faults(record)
    return faults


def _launcher_faults(record: JobRecord) -> list[Fault]:
    """Whether TCP carried more than the launcher's messages."""
    if not record.nodes or record.tcp_octets <= tcp_limit_bytes(record):
        return []
    what = (
        f"TCP carried {record.tcp_octets:,} bytes, more than the {tcp_limit_bytes(record):,} "
        "that a launcher needs"
    )
    return [Fault(what, shared=True)]


def _local_faults(record: JobRecord, local_bytes: int) -> list[Fault]:
    """Whether link `local` carried what was sent within nodes."""
    carried = record.sum("rx_payload", "local")
    if carried >= local_bytes:
        return []
    what = (
        f"Beowire's link `local` carried {carried:,} bytes of the {local_bytes:,} sent within nodes"
    )
    return [Fault(what)]


def _memory_faults(record: JobRecord) -> list[Fault]:
    return [*_endpoint_faults(record), *_launcher_faults(record), *_housekeeping_faults(record)]


def _raw_faults(record: JobRecord) -> list[Fault]:
    """Whether the interfaces' raw frames are those that Beowire says it sent. Those of other jobs
    are no sign that this one took another way: too many are none then."""
    sent = record.sum("tx_bytes", "packet", "kernel")
    overhead = _RAW_FRAME_OVERHEAD_BYTES * record.sum("tx_frames", "packet", "kernel")
    # Of a row that is cut on its way each frame has a head, of which IP has counted one.
    overhead += _UDP_FRAME_HEAD_BYTES * record.sum("tx_frames", "udp")
    housekeeping = HOUSEKEEPING_NODE_BYTES * len(record.nodes)
    too_few = record.raw_bytes < sent - housekeeping
    alone = record.exclusive and not record.others
    too_many = alone and record.raw_bytes > sent + overhead + housekeeping
    if not too_few and not too_many:
        return []
    what = (
        f"{record.raw_bytes:,} bytes of raw frames crossed the interfaces, Beowire counts {sent:,}"
    )
    return [Fault(what)]


def _tcp_faults(record: JobRecord, payload_bytes: int) -> list[Fault]:
    faults = _endpoint_faults(record)
    if record.nodes and record.tcp_octets < payload_bytes:
        faults.append(
            Fault(
                f"IP carried {record.tcp_octets:,} bytes of the {payload_bytes:,} sent between "
                "nodes"
            )
        )
    return faults + _housekeeping_faults(record)


def _endpoint_faults(record: JobRecord) -> list[Fault]:
    """Whether Beowire was there at all, where it should not be."""
    if not record.endpoints:
        return []
    return [Fault(f"{len(record.endpoints)} endpoints of Beowire were open")]


def _housekeeping_faults(record: JobRecord) -> list[Fault]:
    """Whether raw frames carried more than what nodes say to each other unasked. Without an
    endpoint they are not the job's: so those of other jobs tell nothing."""
    housekeeping = HOUSEKEEPING_NODE_BYTES * len(record.nodes)
    if not record.exclusive or record.others or record.raw_bytes <= housekeeping:
        return []
    return [Fault(f"{record.raw_bytes:,} bytes crossed the interfaces in raw frames")]
