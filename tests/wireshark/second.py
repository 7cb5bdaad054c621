# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A second implementation of the wire protocol, written from docs/wire-protocol.md alone.

It knows the formats from the layout of engine/wire.h and nothing of the engine's code. It speaks
over UDP, sends exactly what a test asks for, and shows what comes back as parsed frames.
"""

import contextlib
import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from keyed import Keys, mac, packet_nonce, seal, side, siphash, unseal
from wire_frames import Frame, crc32c
from wire_layout import wire_layout

C = wire_layout().constants
WAIT_S = 240.0
"""Longest wait for a frame that must come; nothing is measured by it."""

Values = dict[str, int]


@dataclass
class Part:
    kind: str
    values: Values
    payload: bytes


@dataclass
class Received:
    """A frame of the other side: `kind` is its type, `values` its members without their
    structure's name where that is plain (hdr.* come first)."""

    kind: str
    hdr: Values
    body: Values = field(default_factory=dict)
    ranges: list[tuple[int, int]] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    name: str = ""
    raw: bytes = b""

    @property
    def asks(self) -> bool:
        """A packet that asks whether its receiver lives."""
        return self.kind == "DATA" and all(part.kind == "PAD" for part in self.parts)


_KINDS = {value: name.removeprefix("BW_PART_") for name, value in C.items() if "_PART_" in name}
_TYPES = {
    value: name.removeprefix("BW_FRAME_")
    for name, value in C.items()
    if name.startswith("BW_FRAME_") and not name.endswith("_MTU")
}


def unpack(name: str, data: bytes, at: int) -> Values:
    """The integers of a structure."""
    return {
        member.name: struct.unpack_from("<" + member.format, data, at + member.offset)[0]
        for member in wire_layout().structures[name].members
        if not member.count
    }


def size(name: str) -> int:
    return wire_layout().structures[name].size


HEAD = 48
"""Bytes of a DATA frame that are shown."""


def opened(data: bytes, seal_key: bytes) -> bytes:
    """A sealed frame as it would be if it were not, but for its length."""
    hdr = unpack("hdr", data, 0)
    end = size("hdr") + hdr["len"]
    nonce = packet_nonce(hdr["path"], hdr["pn"])
    return data[:HEAD] + unseal(seal_key, nonce, data[:HEAD], data[HEAD:end])


def parse(data: bytes, tag_key: bytes = b"", seal_key: bytes = b"") -> Received:
    """A frame, checked as section 3 of the document says; in a conversation with a key by its
    tag, and if it is sealed by both."""
    hdr = unpack("hdr", data, 0)
    assert (hdr["magic"], hdr["version"]) == (C["BW_MAGIC"], C["BW_VERSION"])
    end = size("hdr") + hdr["len"]
    assert end <= len(data)
    sealed = seal_key and hdr["type"] == C["BW_FRAME_DATA"]
    if sealed:
        shown = data[:HEAD]
        data = opened(data, seal_key)
        end = len(data)
    frame = Received(_TYPES[hdr["type"]], hdr, raw=data[:end])
    at = size("hdr")
    covered = [data[:28] + bytes(4)]
    if frame.kind in ("HELLO", "REFUSE", "CHALLENGE"):
        shape = frame.kind.lower()
        frame.body = unpack(shape, data, at)
    if frame.kind in ("HELLO", "REFUSE"):
        names = [item for item in wire_layout().structures[shape].members if item.name == "name"]
        start = at + names[0].offset
        frame.name = data[start : start + names[0].size].rstrip(b"\0").decode()
    elif frame.kind == "ACK" or (frame.kind == "BYE" and hdr["len"]):
        frame.body = unpack("ackblk", data, at) | unpack("ack", data, at + size("ackblk"))
        first = at + size("ackblk") + size("ack")
        for number in range(frame.body["ranges"]):
            row = unpack("range", data, first + number * size("range"))
            frame.ranges.append((row["gap"], row["run"]))
    elif frame.kind == "DATA":
        frame.body = unpack("ackblk", data, at)
        at = _parts(frame, data, at, end, covered)
    covered.append(data[at:end])
    fixed = shown[:28] + bytes(4) + shown[32:] if sealed else b"".join(covered)
    if tag_key and frame.kind in ("DATA", "ACK", "BYE"):
        assert tag(tag_key, fixed) == (hdr["token"], hdr["hcrc"])
    else:
        assert crc32c(fixed) == hdr["hcrc"]
    return frame


def tag(key: bytes, fixed: bytes) -> tuple[int, int]:
    """What stands in `token` and `hcrc` (of packets with small numbers)."""
    value = siphash(key, fixed[:12] + bytes(4) + fixed[16:28] + bytes(4) + fixed[32:])
    return value >> 32, value & 0xFFFFFFFF


def _parts(frame: Received, data: bytes, at: int, end: int, covered: list[bytes]) -> int:
    """The parts; what the checksum covers but the rest, whose beginning is returned."""
    start = at
    at += size("ackblk")
    while at < end:
        part = unpack("part", data, at)
        kind = _KINDS[part["kind"]]
        shape = "part_bulk" if kind in ("BULK", "PAD") else "part_msg"
        behind = at + size(shape)
        payload = data[behind : behind + part["plen"]]
        assert len(payload) == part["plen"]
        if part["crc"]:
            assert crc32c(payload) == part["crc"]
        frame.parts.append(Part(kind, part | unpack(shape, data, at), payload))
        covered.append(data[start:behind])
        start = behind + part["plen"]
        at = -(-start // 8) * 8
    return start


def auth_of(key: bytes, frame: bytes) -> int:
    """`auth` of a CHALLENGE, its last 8 bytes."""
    return siphash(key, frame[:28] + bytes(4) + frame[32:-8] + bytes(8))


def hmac_of(keys: Keys, hello: bytes) -> bytes:
    """`auth` of a HELLO in which it and `hcrc` are 0."""
    return mac(keys.hello, hello)[:16]


class Second:
    """One engine of the second implementation, with one peer, whose 64-byte address it is given."""

    def __init__(self, address: bytes, key: bytes = b"", encrypts: bool = False) -> None:
        self.keys = Keys(key) if key else None
        self.random = random.getrandbits(64) if key else 0
        self.tag_here = self.tag_there = b""
        self.encrypts = encrypts
        self.seal_here = self.seal_there = b""
        # magic version links cluster node inc engine ethertype mac port ip ...
        fields = struct.unpack("<HBBIQIHH6sH16s", address[:48])
        self.cluster, self.node_there = fields[3], fields[4]
        self.inc_there, self.engine_there = fields[5], fields[6]
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.connect((socket.inet_ntoa(fields[10][:4]), fields[9]))
        self.node = random.getrandbits(63) | 1
        self.inc = random.getrandbits(31) | 1
        self.engine = random.randrange(1, 65535)
        self.conn = 4711
        self.conn_there = 0
        self.token = random.getrandbits(31) | 1
        self.token_there = 0
        self.cookie = 0
        self.path = 2
        self.pn = 0
        self.features = C["BW_FEATURE_CHECKSUM"] | (C["BW_FEATURE_ENCRYPT"] if encrypts else 0)
        self.received: set[int] = set()
        self.inbox: list[Received] = []
        self.given: set[tuple[str, int, int]] = set()
        """Kind, id and offset of the parts that parts() has returned."""
        self.silent = False
        """Acknowledge nothing by itself."""

    def close(self) -> None:
        self.socket.close()

    def frame(self, kind: str, **values: int) -> Frame:
        """A frame from here to there, with its header only."""
        defaults = {
            "magic": C["BW_MAGIC"],
            "version": C["BW_VERSION"],
            "type": C[f"BW_FRAME_{kind}"],
            "cluster": self.cluster,
            "dst_engine": self.engine_there,
            "src_engine": self.engine,
            "token": self.inc_there if kind == "HELLO" else self.token_there,
            "conn": self.conn_there,
            "path": self.path,
        }
        return Frame().add("hdr", **(defaults | values))

    def made(self, frame: Frame) -> bytes:
        """As it travels: with its checksum or tag, and sealed if frames are."""
        frame.seal()
        kind = _TYPES[frame.data[3]]
        if self.keys and kind == "HELLO":
            frame.set("hdr.hcrc", 0)
            auth = hmac_of(self.keys, bytes(frame.data))
            frame.data[size("hdr") + 112 : size("hdr") + 128] = auth
            frame.seal()
        elif self.keys and kind == "CHALLENGE":
            frame.set("challenge.auth", auth_of(self.keys.challenge, bytes(frame.data))).seal()
        elif self.tag_here and kind in ("DATA", "ACK", "BYE"):
            sealed = self.seal_here and kind == "DATA"
            if sealed:
                frame.data += bytes(16)
                frame.seal()
            fixed = bytes(frame.data[:HEAD]) if sealed else frame.fixed()
            token, hcrc = tag(self.tag_here, fixed)
            frame.set("hdr.token", token).set("hdr.hcrc", hcrc)
            if sealed:
                self.encipher(frame)
        return bytes(frame.data)

    def send(self, frame: Frame) -> None:
        data = self.made(frame)
        with contextlib.suppress(ConnectionRefusedError):  # from an earlier frame
            self.socket.send(data)

    def encipher(self, frame: Frame) -> None:
        """All behind the head, which is complete; the last 16 bytes become the tag."""
        hdr = unpack("hdr", bytes(frame.data), 0)
        head, rest = bytes(frame.data[:HEAD]), bytes(frame.data[HEAD:-16])
        nonce = packet_nonce(hdr["path"], hdr["pn"])
        frame.data[HEAD:] = seal(self.seal_here, nonce, head, rest)

    def hello(self, **values: int) -> Frame:
        hdr = {key: values.pop(key) for key in ("token", "version", "flags") if key in values}
        defaults = {
            "node": self.node,
            "inc": self.inc,
            "conn": self.conn,
            "features": self.features,
            "token": self.token,
            "version_min": C["BW_VERSION"],
            "version_max": C["BW_VERSION"],
            "engine": self.engine,
            "credit": (1 << 20) // C["BW_CREDIT_UNIT"],
            "frame_max": 65000,
            "target_node": self.node_there,
            "target_inc": self.inc_there,
            "cookie": self.cookie,
            "random": self.random,
        }
        return self.frame("HELLO", **({"conn": 0} | hdr)).add("hello", **(defaults | values))

    def contact(self, hello: Frame) -> Received:
        """What a HELLO brings."""
        self.send(hello)
        kinds = ("HELLO", "CHALLENGE")
        return self.wait(lambda each: each.kind in kinds and each.hdr["conn"] == self.conn)

    def meet(self, **values: int) -> Received:
        """First contact by this HELLO, said again if it is challenged; its answer."""
        nonce = random.getrandbits(31) | 1
        answer = self.contact(self.hello(**{"nonce": nonce} | values))
        if answer.kind == "CHALLENGE":
            assert answer.body["nonce"] == nonce
            assert answer.hdr["token"] == self.token
            auth = auth_of(self.keys.challenge, answer.raw) if self.keys else 0
            assert answer.body["auth"] == auth
            self.cookie = answer.body["cookie"]
            answer = self.contact(self.hello(**{"nonce": nonce} | values))
        assert answer.kind == "HELLO"
        self.conn_there = answer.body["conn"]
        self.token_there = answer.body["token"]
        if self.keys:
            here = side(unpack("hello", bytes(self.hello(**values).data), size("hdr")))
            there = side(answer.body)
            self.tag_here = self.keys.tag_key(here, there)
            self.tag_there = self.keys.tag_key(there, here)
        if self.keys and self.encrypts:
            assert answer.body["features"] & C["BW_FEATURE_ENCRYPT"]
            self.seal_here = self.keys.seal_key(here, there)
            self.seal_there = self.keys.seal_key(there, here)
        return answer

    def ackblk(self, frame: Frame) -> Frame:
        """What every DATA and ACK frame says of the opposite direction."""
        ack = 0
        while ack + 1 in self.received:
            ack += 1
        flags = 0 if self.received else C["BW_ACKBLK_NO_ACK"]
        credit = (64 << 20) // C["BW_CREDIT_UNIT"]
        return frame.add("ackblk", ack=ack, floor=1, credit=credit, flags=flags)

    def data(self, pn: int = 0, flags: int = 0) -> Frame:
        """A packet without parts; the next number unless one is given."""
        if not pn:
            self.pn += 1
            pn = self.pn
        frame = self.frame("DATA", pn=pn & 0xFFFFFFFF, flags=flags)
        return self.ackblk(frame)

    def question(self) -> Frame:
        """A packet that asks whether its receiver lives, long enough to be refused."""
        return self.data(flags=C["BW_HDR_ACK_NOW"]).part("PAD", bytes(24))

    def acknowledge(self) -> None:
        frame = self.ackblk(self.frame("ACK"))
        ack = next(item.value for item in frame.fields if item.name == "ackblk.ack")
        assert isinstance(ack, int)
        runs: list[tuple[int, int]] = []
        last = ack
        for number in sorted(each for each in self.received if each > ack):
            if runs and number == last + 1:
                runs[-1] = (runs[-1][0], runs[-1][1] + 1)
            else:
                runs.append((number - last - 1, 1))
            last = number
        frame.add("ack", largest=max(self.received, default=0), ranges=len(runs))
        for gap, run in runs:
            frame.add("range", gap=gap, run=run)
        self.send(frame)

    def listen(self, seconds: float) -> None:
        """Waits that long for a frame and keeps it for frames(); packets are acknowledged unless
        `silent`."""
        self.socket.settimeout(seconds)
        with contextlib.suppress(TimeoutError, ConnectionRefusedError):
            frame = parse(self.socket.recv(65536), self.tag_there, self.seal_there)
            if frame.kind == "DATA" and not self.silent:
                self.received.add(frame.hdr["pn"])
                self.acknowledge()
            self.inbox.append(frame)

    def frames(self, seconds: float) -> Iterator[Received]:
        """What arrives within that time, each frame once."""
        deadline = time.monotonic() + seconds
        while self.inbox or (left := deadline - time.monotonic()) > 0:
            if self.inbox:
                yield self.inbox.pop(0)
            else:
                self.listen(left)

    def wait(self, wanted: Callable[[Received], bool]) -> Received:
        """The first frame that is wanted; what comes before is passed over."""
        for frame in self.frames(WAIT_S):
            if wanted(frame):
                return frame
        raise AssertionError("the frame that had to come did not come")

    def parts(self, kind: str, count: int) -> list[Part]:
        """So many parts of a kind, each once: on a busy machine its acknowledgement is late, and
        the part is sent again."""
        found: list[Part] = []
        for frame in self.frames(WAIT_S):
            for part in frame.parts:
                name = (part.kind, part.values["id"], part.values["offset"])
                if part.kind == kind and name not in self.given:
                    self.given.add(name)
                    found.append(part)
            if len(found) >= count:
                return found
        raise AssertionError(f"{len(found)} parts {kind} came, not {count}")

    def part(self, kind: str) -> Part:
        return self.parts(kind, 1)[0]
