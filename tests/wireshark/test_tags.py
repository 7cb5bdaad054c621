# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the dissector verifies with a cluster key, in conversations made here by
docs/wire-protocol.md, section 14: tags, and who authenticated HELLO and REFUSE.

test_capture.py has the same of what programs said; here is what those rarely or never say.
"""

import hmac
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from keyed import expand, packet_nonce, seal
from test_crypto import siphash
from tshark import Packet, decode
from wire_frames import Frame, header, raw, write_pcap
from wire_layout import wire_layout

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed: apt-get install tshark"
)

C = wire_layout().constants
KEY = bytes(range(32))


PRK = hmac.digest(b"beowire 2", KEY, "sha256")
HELLO_KEY, REFUSE_KEY = expand(PRK, b"hello", 32), expand(PRK, b"refuse", 16)
CHALLENGE_KEY = expand(PRK, b"challenge", 16)


@dataclass(frozen=True)
class Side:
    engine: int
    node: int
    inc: int
    conn: int
    token: int
    random: int
    encrypts: bool = False

    def text(self) -> bytes:
        sizes = [(self.node, 8), (self.random, 8), (self.inc, 4), (self.conn, 4)]
        sizes += [(self.token, 4), (self.engine, 4)]
        return b"".join(value.to_bytes(size, "little") for value, size in sizes)

    def tag_key(self, other: "Side") -> bytes:
        """Of what this side sends to another."""
        return expand(PRK, b"frames\0\0" + self.text() + other.text(), 48)[:16]

    def frame(self, other: "Side", kind: str, **values: int) -> Frame:
        defaults = {"src_engine": self.engine, "dst_engine": other.engine, "conn": other.conn}
        return header(kind, **(defaults | values))

    def hello(self, other: "Side", answer: bool = False) -> bytes:
        conn, flags = (other.conn, C["BW_HDR_ANSWER"]) if answer else (0, 0)
        frame = self.frame(other, "HELLO", token=0, conn=conn, flags=flags)
        frame.add(
            "hello",
            node=self.node,
            inc=self.inc,
            conn=self.conn,
            engine=self.engine,
            token=self.token,
            random=self.random,
            features=C["BW_FEATURE_ENCRYPT"] if self.encrypts else 0,
            version_min=2,
            version_max=2,
        )
        frame.set("hdr.len", len(frame.data) - 32).set("hdr.hcrc", 0)
        frame.data[-16:] = hmac.digest(HELLO_KEY, bytes(frame.data), "sha256")[:16]
        return bytes(frame.seal().data)

    def tagged(self, other: "Side", frame: Frame, token: int = 0, hcrc: int = 0) -> bytes:
        frame.set("hdr.len", len(frame.data) - 32).set("hdr.hcrc", hcrc).set("hdr.token", token)
        covered, start = b"", 0
        for at, size in frame.payloads:
            covered += bytes(frame.data[start:at])
            start = at + size
        tag = siphash(self.tag_key(other), covered + bytes(frame.data[start:]))
        frame.set("hdr.hcrc", int.from_bytes(tag[:4], "little"))
        return bytes(frame.set("hdr.token", int.from_bytes(tag[4:], "little")).data)

    def data(self, other: "Side", pn: int, credit: int = 0) -> bytes:
        frame = self.frame(other, "DATA", pn=pn % 2**32)
        frame.add("ackblk", ack=1, credit=credit % 2**32).part("MESSAGE", b"payload", total=7)
        return self.tagged(other, frame, pn >> 32, credit >> 32)

    def sealed(self, other: "Side", pn: int) -> bytes:
        """The same as data(), sealed."""
        frame = self.frame(other, "DATA", pn=pn % 2**32).add("ackblk", ack=1)
        frame.part("MESSAGE", b"payload", total=7, checksum=False)
        frame.data += bytes(16)
        frame.set("hdr.len", len(frame.data) - 32).set("hdr.hcrc", 0).set("hdr.token", pn >> 32)
        tag = siphash(self.tag_key(other), bytes(frame.data[:48]))
        frame.set("hdr.hcrc", int.from_bytes(tag[:4], "little"))
        frame.set("hdr.token", int.from_bytes(tag[4:], "little"))
        head, rest = bytes(frame.data[:48]), bytes(frame.data[48:-16])
        key = expand(PRK, b"frames\0\0" + self.text() + other.text(), 48)[16:]
        return head + seal(key, packet_nonce(0, pn), head, rest)

    def ack(self, other: "Side", ack: int, floor: int, credit: int, kind: str = "ACK") -> bytes:
        low = 2**32
        frame = self.frame(other, kind)
        frame.add("ackblk", ack=ack % low, floor=floor % low, credit=credit % low).add("ack")
        return self.tagged(other, frame, credit >> 32, ack >> 32 << 16 | floor >> 32)

    def bye(self, other: "Side") -> bytes:
        return self.tagged(other, self.frame(other, "BYE"))

    def refusal(self, other: "Side", echo: str, key: bytes) -> bytes:
        """Of a frame of the other side's."""
        conn = other.conn if echo == "HELLO" else self.conn
        frame = self.frame(other, "REFUSE", token=0, conn=0).add(
            "refuse",
            why=C["BW_REFUSAL_HANDLE"],
            echo_type=C[f"BW_FRAME_{echo}"],
            echo_engine=self.engine,
            echo_conn=conn,
        )
        frame.set("hdr.len", len(frame.data) - 32).set("hdr.hcrc", 0)
        frame.data[-8:] = siphash(key, bytes(frame.data))
        return bytes(frame.seal().data)

    def challenge(self, other: "Side", key: bytes) -> bytes:
        """Of the other side's HELLO."""
        frame = self.frame(other, "CHALLENGE", token=other.token)
        frame.add("challenge", cookie=2**64 - 5, nonce=7)
        frame.set("hdr.len", len(frame.data) - 32).set("hdr.hcrc", 0)
        frame.data[-8:] = siphash(key, bytes(frame.data))
        return bytes(frame.seal().data)


A = Side(engine=3, node=0x0A0B, inc=0xCAFE0001, conn=77, token=0xDEAD0001, random=2**64 - 2)
B = Side(engine=4, node=0x0C0D, inc=0xCAFE0002, conn=78, token=0xDEAD0002, random=12345)
AGAIN = Side(engine=3, node=0x0A0B, inc=0xCAFE0003, conn=77, token=5, random=6)
MET = [A.hello(B), B.hello(A, answer=True)]


@pytest.fixture
def key(tmp_path: Path) -> tuple[str, str]:
    file = tmp_path / "key"
    file.write_text(f"# of a test\n{KEY.hex()}\n")
    return ("-o", f"beowire.key_file:{file}")


def shown(tmp_path: Path, frames: list[bytes], *options: str) -> list[Packet]:
    write_pcap(tmp_path / "frames.pcap", [raw(frame) for frame in frames])
    return decode(tmp_path / "frames.pcap", *options)


def tags(packets: list[Packet]) -> list[str]:
    return [item.show for packet in packets for item in packet.values("hdr.tag.status")]


def test_both_directions(tmp_path: Path, key: tuple[str, str]) -> None:
    frames = [*MET, A.data(B, 1), B.data(A, 1), A.data(B, 2), A.bye(B), B.bye(A)]
    packets = shown(tmp_path, frames, *key)
    assert [each.value("hello.auth.status").show for each in packets[:2]] == ["1", "1"]
    assert tags(packets) == ["1"] * 5
    assert not any(packet.problems for packet in packets)
    packets = shown(tmp_path, frames)
    assert tags(packets) == ["2"] * 5
    assert not any(packet.problems for packet in packets)
    assert "not checked" in packets[2].value("hdr.hcrc").label


def test_the_other_directions_key_is_wrong(tmp_path: Path, key: tuple[str, str]) -> None:
    frame = A.frame(B, "BYE")
    packets = shown(tmp_path, [*MET, B.tagged(A, frame)], *key)
    assert tags(packets) == ["0"]
    assert packets[2].problems == {"hdr.tag.bad"}


def test_packet_numbers_beyond_32_bits(tmp_path: Path, key: tuple[str, str]) -> None:
    numbers = [1, 2**32 - 1, 2**32, 2**32 + 1]
    packets = shown(tmp_path, [*MET, *(A.data(B, number) for number in numbers)], *key)
    assert tags(packets) == ["1"] * 4
    assert tags(shown(tmp_path, [*MET, A.data(B, 2**33)], *key)) == ["0"]


def test_what_is_acknowledged_beyond_32_bits(tmp_path: Path, key: tuple[str, str]) -> None:
    """The numbers of an ACK count on by themselves."""
    passed = 2**32 + 5
    rows = [(5, 5, 5), (5, 5, passed), (passed, 5, passed), (passed, passed, 2 * passed)]
    frames = [A.ack(B, *row) for row in rows]
    last = A.ack(B, 2 * passed, passed, 2 * passed, "BYE")
    assert tags(shown(tmp_path, [*MET, *frames, last, A.bye(B)], *key)) == ["1"] * 6
    # An old one.
    assert tags(shown(tmp_path, [*MET, *frames, frames[1]], *key)) == ["1"] * 4 + ["0"]


def test_credit_of_data_beyond_32_bits(tmp_path: Path, key: tuple[str, str]) -> None:
    rows = [(1, 5), (2, 2**32 - 1), (3, 2**32), (2**32, 2**32), (2**32 + 1, 2**33)]
    frames = [A.data(B, *row) for row in rows]
    assert tags(shown(tmp_path, [*MET, *frames], *key)) == ["1"] * 5
    late = A.data(B, 2**32 + 2, 5)  # kept back meanwhile
    assert tags(shown(tmp_path, [*MET, *frames, late], *key)) == ["1"] * 5 + ["0"]


def test_a_handle_that_comes_again(tmp_path: Path, key: tuple[str, str]) -> None:
    """The same engine's number and handle, of another incarnation."""
    again = [AGAIN.hello(B), B.hello(AGAIN, answer=True), AGAIN.data(B, 1), B.data(AGAIN, 1)]
    assert tags(shown(tmp_path, [*MET, B.data(A, 1), *again], *key)) == ["1"] * 3


def test_without_their_hellos_nothing_is_known(tmp_path: Path, key: tuple[str, str]) -> None:
    frames = [MET[0], B.data(A, 1)]
    assert tags(shown(tmp_path, frames, *key)) == ["2"]
    (packet,) = shown(tmp_path, [bytes(A.frame(B, "BYE").seal().data)], *key)
    assert packet.value("hdr.hcrc.status").show == "1"


C1, D1 = replace(A, encrypts=True), replace(B, encrypts=True)
SECRET = [C1.hello(D1), D1.hello(C1, answer=True)]


def test_what_is_sealed_is_opened(tmp_path: Path, key: tuple[str, str]) -> None:
    numbers = [1, 2**32 - 1, 2**32 + 1]
    frames = [*SECRET, *(C1.sealed(D1, number) for number in numbers), D1.bye(C1)]
    packets = shown(tmp_path, frames, *key)
    assert packets[0].value("hello.features.encrypt").number() == 1
    assert tags(packets) == ["1"] * 4
    for packet in packets[2:5]:
        assert packet.value("sealed.tag.status").show == "1"
        assert packet.value("part_msg.total").show == "7"
        assert bytes.fromhex(packet.value("payload").raw) == b"payload"
        assert not packet.problems


def test_without_the_key_it_stays_sealed(tmp_path: Path) -> None:
    packet = shown(tmp_path, [*SECRET, C1.sealed(D1, 1)])[2]
    assert packet.value("ackblk.ack").show == "1"
    assert packet.value("sealed.tag.status").show == "2"
    assert not packet.values("part.kind")
    assert not packet.problems
    assert b"payload" not in bytes.fromhex(packet.value("sealed").raw)


def test_what_is_sealed_was_changed(tmp_path: Path, key: tuple[str, str]) -> None:
    frame = bytearray(C1.sealed(D1, 1))
    for at in (48, len(frame) - 1):
        changed = bytes(frame[:at]) + bytes([frame[at] ^ 1]) + bytes(frame[at + 1 :])
        packet = shown(tmp_path, [*SECRET, changed], *key)[2]
        assert packet.value("hdr.tag.status").show == "1"
        assert packet.value("sealed.tag.status").show == "0"
        assert packet.problems == {"sealed.bad"}
    short = bytes(frame[:-20])
    packet = shown(tmp_path, [*SECRET, short], *key)[2]
    assert packet.problems == {"short"}


def test_refusals(tmp_path: Path, key: tuple[str, str]) -> None:
    frames = {
        B.refusal(A, "HELLO", REFUSE_KEY): "1",
        B.refusal(A, "DATA", REFUSE_KEY): "1",
        B.refusal(A, "DATA", B.tag_key(A)): "1",
        B.refusal(A, "DATA", A.tag_key(B)): "0",
        B.refusal(A, "HELLO", bytes(16)): "0",
    }
    packets = shown(tmp_path, [*MET, *frames], *key)[2:]
    assert [each.value("refuse.auth.status").show for each in packets] == list(frames.values())
    for packet, status in zip(packets, frames.values(), strict=True):
        assert packet.problems == {"refused"} | ({"auth.bad"} if status == "0" else set())
    packets = shown(tmp_path, [*MET, *frames])[2:]
    assert {each.value("refuse.auth.status").show for each in packets} == {"2"}


def test_challenges(tmp_path: Path, key: tuple[str, str]) -> None:
    frames = {B.challenge(A, CHALLENGE_KEY): "1", B.challenge(A, REFUSE_KEY): "0"}
    packets = shown(tmp_path, [*frames], *key)
    assert [each.value("challenge.auth.status").show for each in packets] == ["1", "0"]
    assert [packet.problems for packet in packets] == [set(), {"auth.bad"}]
    packets = shown(tmp_path, [*frames])
    assert {each.value("challenge.auth.status").show for each in packets} == {"2"}


def test_a_hello_of_another_key(tmp_path: Path, key: tuple[str, str]) -> None:
    frame = bytearray(MET[0])
    frame[-1] ^= 1
    layout = Frame().add("hdr").add("hello")
    layout.data[:] = frame
    (packet,) = shown(tmp_path, [bytes(layout.seal().data)], *key)
    assert packet.value("hello.auth.status").show == "0"
    assert packet.problems == {"auth.bad"}
