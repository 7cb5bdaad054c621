# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Frames built by hand from the layout of engine/wire.h, each with the list of its fields.

A frame remembers where every member was put and what its value is, so that a test can demand
exactly that from a decoder. Checksums are computed here, independently of the engine's code.
"""

import struct
from dataclasses import dataclass, field
from pathlib import Path

from wire_layout import Layout, Member, Structure, wire_layout

MAC_A = bytes.fromhex("020000000001")
MAC_B = bytes.fromhex("020000000002")
ETHERNET_BYTES = 14
ETHERNET_MIN_BYTES = 60
UDP_HEADERS_BYTES = ETHERNET_BYTES + 20 + 8


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC_TABLE = _crc_table()


def crc32c(data: bytes, crc: int = 0) -> int:
    """CRC32C; `crc` continues an earlier result."""
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


@dataclass(frozen=True)
class Field:
    """A member of a structure in a frame; `at` counts from the start of the frame's header."""

    name: str
    at: int
    size: int
    value: int | bytes


@dataclass
class Frame:
    """A frame under construction: its bytes, its fields, and what its checksum leaves out."""

    layout: Layout = field(default_factory=wire_layout)
    data: bytearray = field(default_factory=bytearray)
    fields: list[Field] = field(default_factory=list)
    payloads: list[tuple[int, int]] = field(default_factory=list)
    """Position and length of each payload."""

    def add(self, shape_name: str, /, **values: int | bytes) -> "Frame":
        """Appends the structure of that name with these values, 0 elsewhere."""
        at = len(self.data)
        self.data += bytes(self.layout.structures[shape_name].size)
        return self.fill(at, shape_name, **values)

    def fill(self, at: int, shape_name: str, /, **values: int | bytes) -> "Frame":
        """Writes a structure over bytes that are there, as for one embedded in another."""
        shape = self.layout.structures[shape_name]
        unknown = values.keys() - {member.name for member in shape.members}
        if unknown:
            raise ValueError(f"{shape_name} has no {unknown}")
        for member in shape.members:
            self._put(shape, member, at, values.get(member.name, 0))
        return self

    def _put(self, shape: Structure, member: Member, at: int, value: int | bytes) -> None:
        if member.count:
            raw = (value if isinstance(value, bytes) else b"").ljust(member.count, b"\0")
            value = raw
        else:
            assert isinstance(value, int)
            raw = struct.pack("<" + member.format, value)
        start = at + member.offset
        self.data[start : start + member.size] = raw
        self.fields.append(Field(f"{shape.name}.{member.name}", start, member.size, value))

    def payload(self, data: bytes) -> "Frame":
        self.payloads.append((len(self.data), len(data)))
        self.data += data
        return self

    def align(self) -> "Frame":
        self.data += bytes(-len(self.data) % 8)
        return self

    def part(
        self,
        kind: str,
        data: bytes = b"",
        *,
        code: int = 0,
        checksum: bool = True,
        **values: int | bytes,
    ) -> "Frame":
        """Appends a part with its payload, aligned behind what is there."""
        self.align()
        at = len(self.data)
        self.add("part_bulk" if kind in ("BULK", "PAD") else "part_msg", **values)
        crc = crc32c(data) if checksum and kind in ("MESSAGE", "BULK") else 0
        number = self.layout.constants[f"BW_PART_{kind}"]
        self.fill(at, "part", kind=number, code=code, plen=len(data), crc=crc)
        return self.payload(data)

    def set(self, name: str, value: int) -> "Frame":
        """Changes the only field of that name."""
        (old,) = [item for item in self.fields if item.name == name]
        self.data[old.at : old.at + old.size] = value.to_bytes(old.size, "little")
        self.fields[self.fields.index(old)] = Field(name, old.at, old.size, value)
        return self

    def seal(self) -> "Frame":
        """Sets the body's length and the header checksum."""
        self.set("hdr.len", len(self.data) - self.layout.structures["hdr"].size)
        return self.set("hdr.hcrc", 0).set("hdr.hcrc", self.header_checksum())

    def header_checksum(self) -> int:
        """CRC32C of all but the payloads; the field itself must be 0."""
        return crc32c(self.fixed())

    def fixed(self) -> bytes:
        """All but the payloads."""
        pieces, start = [], 0
        for at, size in self.payloads:
            pieces.append(bytes(self.data[start:at]))
            start = at + size
        return b"".join(pieces) + bytes(self.data[start:])


def header(kind: str, **values: int) -> Frame:
    """A frame that consists of its header so far."""
    constants = wire_layout().constants
    defaults = {
        "magic": constants["BW_MAGIC"],
        "version": constants["BW_VERSION"],
        "type": constants[f"BW_FRAME_{kind}"],
        "cluster": 0x11223344,
        "dst_engine": 3,
        "src_engine": 4,
        "token": 0xA1B2C3D4,
        "conn": 0x01020304,
    }
    return Frame().add("hdr", **(defaults | values))


def raw(frame: bytes, ethertype: int = 0x88B5) -> bytes:
    """In an Ethernet frame, padded to the least length."""
    whole = MAC_B + MAC_A + struct.pack(">H", ethertype) + frame
    return whole.ljust(ETHERNET_MIN_BYTES, b"\0")


def udp(frame: bytes, source: int = 47100, destination: int = 47101) -> bytes:
    """In UDP over IPv4 over Ethernet; no padding, no UDP checksum."""
    datagram = struct.pack(">HHHH", source, destination, 8 + len(frame), 0) + frame
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(datagram), 1, 0, 64, 17, 0)
    addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    total = sum(struct.unpack(">10H", ip + addresses))
    total = (total & 0xFFFF) + (total >> 16)
    total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    packet = ip[:10] + struct.pack(">H", total) + addresses + datagram
    return MAC_B + MAC_A + struct.pack(">H", 0x0800) + packet


def write_pcap(path: Path, packets: list[bytes], captured_max: int = 0xFFFF) -> None:
    """A capture file; of each packet `captured_max` bytes were captured at most."""
    with open(path, "wb") as stream:
        stream.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0xFFFF, 1))
        for number, packet in enumerate(packets):
            kept = packet[:captured_max]
            stream.write(struct.pack("<IIII", 0, number, len(kept), len(packet)) + kept)
