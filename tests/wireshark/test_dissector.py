# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Wireshark dissector against frames whose every field is known.

Frames of each type are built from the compiler's layout of engine/wire.h; tshark must show each
member at its place with its value, name flags and problems, and leave foreign frames alone.
"""

import random
import shutil
from pathlib import Path

import pytest
from tshark import Packet, decode, summaries
from wire_frames import (
    ETHERNET_BYTES,
    UDP_HEADERS_BYTES,
    Field,
    Frame,
    header,
    raw,
    udp,
    write_pcap,
)
from wire_layout import wire_layout

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed: apt-get install tshark"
)

C = wire_layout().constants


def hello() -> Frame:
    return header("HELLO", token=0, conn=0, path=2, flags=C["BW_HDR_ANSWER"]).add(
        "hello",
        node=0x1122334455667788,
        features=C["BW_FEATURE_CHECKSUM"],
        inc=0xCAFEBABE,
        conn=77,
        version_min=1,
        version_max=3,
        engine=4,
        credit=65536,
        charge_min=2048,
        frame_max=9000,
        target_node=0x8877665544332211,
        target_inc=0xFFFFFFFF,
        name=b"node1.cluster",
    )


def ackblk(frame: Frame, **values: int) -> Frame:
    return frame.add("ackblk", **({"ack": 41, "floor": 17, "credit": 0xFFFFFFF0} | values))


def data() -> Frame:
    """All kinds of part in one frame, with payloads that need alignment and one that does not."""
    frame = header("DATA", pn=0xFFFFFFFE, path=1, flags=C["BW_HDR_ACK_NOW"])
    ackblk(frame, flags=C["BW_ACKBLK_PRESSURE"], marks=65535)
    frame.part(
        "MESSAGE",
        b"hello",
        code=127,
        id=2**63 + 5,
        offset=2**32,
        total=2**32 + 5,
        tag=2**64 - 1,
        imm=0x0102030405060708,
        dst_ep=9,
        src_ep=10,
    )
    frame.part(
        "PULL",
        id=3,
        offset=4096,
        total=10**9,
        tag=0x77,
        imm=0x88,
        dst_ep=C["BW_EP_CONTROL"],
        src_ep=C["BW_EP_CONTROL"],
        status=C["BW_PULL_FINAL"] | C["BW_PULL_HOST_KEY"],
    )
    frame.part("PULL_ERROR", id=4, tag=0x99, dst_ep=C["BW_EP_CONTROL"], status=-13)
    frame.part("BULK", bytes(range(64)), id=0x88, offset=2**40)
    return frame.part("PAD", bytes(31))


def ack(count: int = 3, kind: str = "ACK") -> Frame:
    frame = ackblk(header(kind, path=3)).add(
        "ack", delay_ns=123456, largest=41 + 10 * count, ranges=count
    )
    for number in range(count):
        frame.add("range", gap=2 + number, run=8 - number % 8)
    return frame


def refuse() -> Frame:
    return header("REFUSE", token=0).add(
        "refuse",
        why=C["BW_REFUSAL_INCARNATION"],
        version_min=1,
        version_max=2,
        echo_type=C["BW_FRAME_DATA"],
        echo_engine=4,
        echo_token=0xDEADBEEF,
        echo_conn=5,
        name=b"n" * 31,
    )


def challenge() -> Frame:
    return header("CHALLENGE").add("challenge", cookie=2**64 - 3, nonce=0xCAFE)


def bye() -> Frame:
    return header("BYE")


def last_bye() -> Frame:
    return ack(0, "BYE")


def dgram() -> Frame:
    frame = header("DGRAM", token=0, conn=0).add("dgram", dst_ep=1, src_ep=2, plen=100, crc=0)
    return frame.payload(bytes(100))


EVERY = {
    "hello": hello,
    "data": data,
    "ack": ack,
    "refuse": refuse,
    "challenge": challenge,
    "bye": bye,
    "last bye": last_bye,
    "dgram": dgram,
}


def show(tmp_path: Path, packets: list[bytes], *options: str, cut: int = 0xFFFF) -> list[Packet]:
    write_pcap(tmp_path / "frames.pcap", packets, cut)
    return decode(tmp_path / "frames.pcap", *options)


def one(tmp_path: Path, frame: Frame, *options: str) -> Packet:
    """The decoding of one sealed frame in a raw Ethernet frame."""
    (packet,) = show(tmp_path, [raw(bytes(frame.data))], *options)
    return packet


def expect_fields(packet: Packet, fields: list[Field], base: int) -> None:
    """The structures' members are shown, each at its place with its value, and no others."""
    members = {
        f"{structure.name}.{member.name}"
        for structure in wire_layout().structures.values()
        for member in structure.members
    }
    shown = {(item.name, item.at - base): item for item in packet.fields if item.name in members}
    assert shown.keys() == {(item.name, item.at) for item in fields}
    for item in fields:
        decoded = shown[item.name, item.at]
        assert decoded.size == item.size, item.name
        if isinstance(item.value, int):
            assert decoded.number() == item.value, item.name
            signed = item.value < 0
            assert bytes.fromhex(decoded.raw) == item.value.to_bytes(
                item.size, "little", signed=signed
            )
        else:
            assert bytes.fromhex(decoded.raw) == item.value, item.name


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("framing", ["raw", "raw of the paper", "udp"])
def test_every_field_is_shown(tmp_path: Path, kind: str, framing: str) -> None:
    frame = EVERY[kind]().seal()
    packet, base = {
        "raw": (raw(bytes(frame.data)), ETHERNET_BYTES),
        "raw of the paper": (raw(bytes(frame.data), C["BW_ETHERTYPE_PAPER"]), ETHERNET_BYTES),
        "udp": (udp(bytes(frame.data)), UDP_HEADERS_BYTES),
    }[framing]
    (decoded,) = show(tmp_path, [packet])
    assert decoded.protocols[-1] == "beowire"
    expect_fields(decoded, frame.fields, base)
    assert decoded.value("hdr.hcrc.status").show == "1"
    assert decoded.problems <= {"refused", "pull.error"}
    payloads = [(item.at - base, item.size) for item in decoded.values("payload")]
    assert payloads == [place for place in frame.payloads if place[1]]


def test_the_samples_have_every_member_of_the_header_file() -> None:
    sampled = {item.name for build in EVERY.values() for item in build().fields}
    declared = {
        f"{structure.name}.{member.name}"
        for structure in wire_layout().structures.values()
        for member in structure.members
    }
    assert sampled == declared


@pytest.mark.parametrize(
    ("prefix", "field"),
    [("BW_FRAME_", "hdr.type"), ("BW_PART_", "part.kind")],
)
def test_numbers_are_named_as_in_the_header_file(tmp_path: Path, prefix: str, field: str) -> None:
    names = {
        name.removeprefix(prefix): value
        for name, value in C.items()
        if name.startswith(prefix) and not name.endswith("_MTU")
    }
    frames = []
    for name in names:
        if field == "hdr.type":
            frames.append(header(name))
        else:
            frames.append(ackblk(header("DATA")).part(name))
    packets = show(tmp_path, [raw(bytes(frame.seal().data)) for frame in frames])
    for packet, (name, value) in zip(packets, names.items(), strict=True):
        assert packet.value(field).label.endswith(f": {name} ({value})")


def test_every_refusal_has_a_text(tmp_path: Path) -> None:
    reasons = [value for name, value in C.items() if name.startswith("BW_REFUSAL_")]
    frames = [refuse().set("refuse.why", why).seal() for why in reasons]
    for packet in show(tmp_path, [raw(bytes(frame.data)) for frame in frames]):
        assert "Unknown" not in packet.value("refuse.why").label
        assert "refused" in packet.problems


FLAGS = {
    "hdr.flags.answer": ("BW_HDR_ANSWER", "hdr.flags", hello),
    "hdr.flags.ack_now": ("BW_HDR_ACK_NOW", "hdr.flags", data),
    "hello.features.checksum": ("BW_FEATURE_CHECKSUM", "hello.features", hello),
    "hello.features.stripe": ("BW_FEATURE_STRIPE", "hello.features", hello),
    "hello.features.long": ("BW_FEATURE_LONG", "hello.features", hello),
    "hello.features.encrypt": ("BW_FEATURE_ENCRYPT", "hello.features", hello),
    "ackblk.flags.pressure": ("BW_ACKBLK_PRESSURE", "ackblk.flags", ack),
    "ackblk.flags.no_ack": ("BW_ACKBLK_NO_ACK", "ackblk.flags", ack),
}


@pytest.mark.parametrize("flag", FLAGS)
def test_flags_have_names(tmp_path: Path, flag: str) -> None:
    constant, member, build = FLAGS[flag]
    on = one(tmp_path, build().set(member, C[constant]).seal())
    off = one(tmp_path, build().set(member, 0).seal())
    assert on.value(flag).number() == 1
    assert off.value(flag).number() == 0


@pytest.mark.parametrize(
    ("flag", "constant"),
    [("final", "BW_PULL_FINAL"), ("host_key", "BW_PULL_HOST_KEY")],
)
def test_a_pulls_flags_have_names(tmp_path: Path, flag: str, constant: str) -> None:
    frame = ackblk(header("DATA")).part("PULL", status=C[constant])
    flags = {
        name: one(tmp_path, frame.seal()).value(f"part_msg.status.{name}").number()
        for name in ("final", "host_key")
    }
    assert flags == {"final": 0, "host_key": 0} | {flag: 1}


@pytest.mark.parametrize(("status", "problems"), [(-2, {"pull.error"}), (0, set())])
def test_a_granted_pull_of_nothing_is_no_problem(
    tmp_path: Path, status: int, problems: set[str]
) -> None:
    frame = ackblk(header("DATA")).part("PULL_ERROR", status=status)
    assert one(tmp_path, frame.seal()).problems == problems


def test_every_flag_of_the_header_file_is_tested() -> None:
    prefixes = ("BW_HDR_", "BW_FEATURE_", "BW_ACKBLK_")
    declared = {name for name in C if name.startswith(prefixes)}
    assert declared == {constant for constant, _, _ in FLAGS.values()}


def test_ranges_are_shown_as_packet_numbers(tmp_path: Path) -> None:
    frame = ackblk(header("ACK"), ack=0xFFFFFFF0).add("ack", largest=1, ranges=2)
    frame.add("range", gap=5, run=2).add("range", gap=4, run=7).seal()
    packet = one(tmp_path, frame)
    first = [item.number() for item in packet.values("range.first")]
    last = [item.number() for item in packet.values("range.last")]
    assert first == [0xFFFFFFF6, 0xFFFFFFFC]
    assert last == [0xFFFFFFF7, 2]


def test_the_most_ranges_are_decoded(tmp_path: Path) -> None:
    frame = ack(C["BW_ACK_RANGES_MAX"]).seal()
    packet = one(tmp_path, frame)
    assert len(packet.values("range.run")) == C["BW_ACK_RANGES_MAX"]
    assert not packet.problems


def test_padding_of_ethernet_is_no_part_of_the_frame(tmp_path: Path) -> None:
    packet = one(tmp_path, bye().seal())
    padding = packet.value("padding")
    assert (padding.at, padding.size) == (ETHERNET_BYTES + 32, 60 - ETHERNET_BYTES - 32)
    assert not packet.problems


def test_a_changed_header_byte_is_found(tmp_path: Path) -> None:
    """Every byte under the checksum, of every type; the magic makes a frame foreign instead."""
    for build in EVERY.values():
        frame = build().seal()
        payload = {at + n for at, size in frame.payloads for n in range(size)}
        places = [at for at in range(2, len(frame.data)) if at not in payload]
        packets = []
        for at in places:
            damaged = bytearray(frame.data)
            damaged[at] ^= 0x10
            packets.append(raw(bytes(damaged)))
        for at, packet in zip(places, show(tmp_path, packets), strict=True):
            assert "beowire" in packet.protocols
            assert packet.problems - {"refused", "pull.error", "reserved"}, (build.__name__, at)


def test_a_changed_payload_byte_is_found_when_asked_for(tmp_path: Path) -> None:
    frame = data().seal()
    (at, size) = frame.payloads[3]
    frame.data[at + size - 1] ^= 1
    option = ("-o", "beowire.payload:TRUE")
    unasked = one(tmp_path, frame)
    assert unasked.value("hdr.hcrc.status").show == "1"
    assert "part.crc.bad" not in unasked.problems
    asked = one(tmp_path, frame, *option)
    assert "part.crc.bad" in asked.problems
    assert [item.show for item in asked.values("part.crc.status")] == ["1", "2", "2", "0", "2"]
    frame.data[at + size - 1] ^= 1
    assert "part.crc.bad" not in one(tmp_path, frame, *option).problems


@pytest.mark.parametrize("kind", EVERY)
def test_frames_cut_short_are_marked(tmp_path: Path, kind: str) -> None:
    frame = EVERY[kind]().seal()
    ethernet = raw(b"")[:ETHERNET_BYTES]
    lengths = range(len(frame.data))
    cut = show(tmp_path, [ethernet + bytes(frame.data[:length]) for length in lengths])
    for length, packet in zip(lengths, cut, strict=True):
        if length < 2:
            assert "beowire" not in packet.protocols
        else:
            assert packet.problems & {"short", "length"}, length
            assert {item.show for item in packet.values("hdr.hcrc.status")} <= {"2"}


def test_a_capture_that_kept_the_heads_only_says_so(tmp_path: Path) -> None:
    frame = data().seal()
    whole = raw(bytes(frame.data))
    for kept in range(ETHERNET_BYTES + 32, len(whole), 16):
        (packet,) = show(tmp_path, [whole], cut=kept)
        assert "cut" in packet.problems, kept
        assert "short" not in packet.problems
        assert packet.value("hdr.hcrc.status").show == "2"


def test_foreign_frames_are_left_alone(tmp_path: Path) -> None:
    frame = bytes(data().seal().data)
    foreign = b"\xbe\x0a" + frame[2:]
    packets = [
        raw(foreign),
        raw(b""),
        udp(foreign),
        udp(frame, source=47099),
        udp(frame, destination=48000),
        udp(b"\x0a"),
    ]
    for packet in show(tmp_path, packets):
        assert "beowire" not in packet.protocols


def test_the_port_range_can_be_set(tmp_path: Path) -> None:
    packets = [udp(bytes(bye().seal().data), 5000, 5009)]
    options = ("-o", "beowire.port_low:5000", "-o", "beowire.port_high:5009")
    assert "beowire" not in show(tmp_path, packets)[0].protocols
    assert "beowire" in show(tmp_path, packets, *options)[0].protocols


def test_another_version_shows_header_and_hello_only(tmp_path: Path) -> None:
    other = one(tmp_path, hello().set("hdr.version", 3).seal())
    assert other.value("hello.version_max").number() == 3
    assert other.problems == {"version.other"}
    packet = one(tmp_path, data().set("hdr.version", 3).seal())
    assert "version.other" in packet.problems
    assert packet.value("undecoded").size == packet.value("hdr.len").number()
    assert not packet.values("part.kind")
    assert packet.value("hdr.hcrc.status").show == "2"


def broken_frames() -> dict[str, Frame]:
    """The problem that must be named -> a frame with a good checksum that has it."""
    too_long = ackblk(header("DATA")).part("MESSAGE", b"12345678", total=8)
    too_many = C["BW_ACK_RANGES_MAX"] + 1
    deep = ackblk(header("DATA")).part("MESSAGE", bytes(C["BW_HEAD_MAX"] - 159), total=865)
    return {
        "type.unknown": header("BYE", type=99),
        "part.kind.unknown": ackblk(header("DATA")).part("PULL").set("part.kind", 9),
        "part.place": deep.part("PULL"),
        "part.plen.long": too_long.set("part.plen", 9),
        "part_msg.segment": ackblk(header("DATA")).part("MESSAGE", b"1234", offset=5, total=8),
        "hdr.path.range": header("BYE", path=C["BW_PATHS_MAX"]),
        "range.zero": ackblk(header("ACK")).add("ack", ranges=1).add("range", gap=0, run=1),
        "ack.ranges.count": ack(too_many),
        "hdr.token.zero": header("BYE", token=0),
        "reserved": header("REFUSE", token=0).add("refuse", reserved0=1),
        "length": header("BYE").payload(b"12345678"),
    }


@pytest.mark.parametrize("problem", broken_frames())
def test_contradictions_are_named(tmp_path: Path, problem: str) -> None:
    assert problem in one(tmp_path, broken_frames()[problem].seal()).problems


def test_random_bytes_never_break_the_dissector(tmp_path: Path) -> None:
    """Random bodies behind good headers, good frames with some bytes changed, cut off or with some
    more, and random bytes behind the magic and a version."""
    source = random.Random(1)
    good = [hello(), data(), ack(), refuse(), challenge(), bye(), last_bye(), dgram()]
    kinds = ["HELLO", "DATA", "ACK", "REFUSE", "BYE", "DGRAM", "CHALLENGE"]
    packets = []
    for number in range(900):
        if number % 3 == 0:
            frame = header(source.choice(kinds))
            frame.payload(source.randbytes(source.randrange(300)))
            frame.set("hdr.len", source.randrange(300))
            content = bytes(frame.data)
        elif number % 3 == 1:
            changed = bytearray(source.choice(good).seal().data)
            for _ in range(source.randrange(4)):
                changed[source.randrange(4, len(changed))] = source.randrange(256)
            content = bytes(changed[: source.randrange(4, len(changed) + 1)])
            content += source.randbytes(source.choice([0, 0, 20]))
        else:
            magic = C["BW_MAGIC"].to_bytes(2, "little")
            version = source.choice([1, C["BW_VERSION"], C["BW_VERSION"], 3])
            content = magic + bytes([version]) + source.randbytes(source.randrange(300))
        packets.append(raw(content))
    decoded = show(tmp_path, packets)
    assert len(decoded) == len(packets)
    assert all("beowire" in packet.protocols for packet in decoded)


def test_summaries_say_what_a_frame_is_for(tmp_path: Path) -> None:
    frames = [hello(), data(), ack(), refuse(), bye(), last_bye(), dgram()]
    write_pcap(tmp_path / "s.pcap", [raw(bytes(frame.seal().data)) for frame in frames])
    lines = summaries(tmp_path / "s.pcap")
    assert [line.split("\t")[0] for line in lines] == ["Beowire"] * 7
    for line, words in zip(
        lines,
        [
            ["HELLO (answer)", "node1.cluster", "cafebabe"],
            ["DATA", "pn=4294967294", "MESSAGE", "PULL", "PULL_ERROR", "BULK", "PAD"],
            ["ACK", "ack=41", "+44-51"],
            ["REFUSE", "that incarnation is not alive here"],
            ["BYE"],
            ["BYE", "ack=41"],
            ["DGRAM", "100 bytes"],
        ],
        strict=True,
    ):
        assert all(word in line for word in words), line
