# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The second implementation with the cluster's key, and encrypting: docs/wire-protocol.md, Keys."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from conversation import (
    ACK_NOW,
    Pair,
    check_refusal,
    echo,
    gathered,
    offered,
    pull,
    refused,
    strangers_with,
)
from keyed import seal, unseal
from second import HEAD, WAIT_S, C, Second
from wire_frames import Frame

__all__ = ["echo"]

KEY = bytes(range(32))


@pytest.fixture
def keyed(echo: Path, tmp_path: Path) -> Iterator[Pair]:
    """Two with the cluster's key, which have not met."""
    file = tmp_path / "key"
    file.touch(0o600)
    file.write_text(KEY.hex() + "\n")
    with strangers_with(echo, KEY, BEOWIRE_KEY=str(file)) as pair:
        yield pair


@pytest.fixture
def sealed(echo: Path, tmp_path: Path) -> Iterator[Pair]:
    """The same, both of which encrypt."""
    file = tmp_path / "key"
    file.touch(0o600)
    file.write_text(KEY.hex() + "\n")
    more = {"BEOWIRE_KEY": str(file), "BEOWIRE_ENCRYPT": "1"}
    with strangers_with(echo, KEY, True, **more) as pair:
        yield pair


def test_with_a_key(keyed: Pair) -> None:
    """First contact, messages of one and of several frames both ways, and farewell."""
    second = keyed.second
    answer = second.meet()
    assert answer.body["random"] != 0
    keyed.send(keyed.message(second.data(), b"keyed"))
    assert second.part("MESSAGE").payload == b"keyed"
    data = bytes(range(200))
    for start, end in ((150, 200), (0, 150)):
        frame = second.data()
        keyed.send(keyed.message(frame, data[start:end], id=1, offset=start, total=len(data)))
    assert second.part("MESSAGE").payload == data
    second.acknowledge()
    keyed.send(second.frame("BYE"))
    assert keyed.said() == "down -108"


def test_with_a_key_others_have_no_effect(keyed: Pair) -> None:
    """What was not made with it, though all else is right."""
    second = keyed.second
    second.meet()
    keyed.send(keyed.message(second.data(), b"first"))
    second.part("MESSAGE")
    keys, second.tag_here = second.tag_here, b""
    keyed.send(keyed.message(second.data(pn=2), b"forged", id=1), second.frame("BYE"))
    values = {"echo_type": C["BW_FRAME_DATA"], "echo_engine": second.engine}
    values |= {"echo_token": second.token, "echo_conn": second.conn}
    keyed.send(second.frame("REFUSE", token=0, conn=0).add("refuse", why=1, **values))
    second.tag_here = keys
    keyed.send(keyed.message(second.data(pn=2), b"right", id=1))
    assert second.part("MESSAGE").payload == b"right"


def echoed(second: Second, number: int, total: int) -> bytes:
    """The message of this number; those before it may come again, as this side is slow."""
    data = bytearray(total)
    missing = set(range(total))
    for frame in second.frames(WAIT_S):
        for part in frame.parts:
            if (part.kind, part.values["id"]) == ("MESSAGE", number):
                start, end = part.values["offset"], part.values["offset"] + len(part.payload)
                assert part.values["crc"] == 0
                data[start:end] = part.payload
                missing -= set(range(start, end))
        if not missing:
            return bytes(data)
    raise AssertionError(f"{len(missing)} bytes of {total} did not come")


def test_with_encryption(sealed: Pair) -> None:
    """The same, messages in pieces, and what is fetched from either side."""
    second = sealed.second
    second.meet()
    sealed.send(sealed.message(second.data(), b"sealed"))
    assert echoed(second, 0, 6) == b"sealed"
    data = bytes(range(200))
    for start, end in ((150, 200), (0, 150)):
        frame = second.data()
        sealed.send(sealed.message(frame, data[start:end], id=1, offset=start, total=len(data)))
    assert echoed(second, 1, len(data)) == data
    long = bytes(7 * at & 0xFF for at in range(20_000))
    for start in range(0, len(long), 1000):
        frame = second.data(flags=ACK_NOW)
        piece = long[start : start + 1000]
        sealed.send(sealed.message(frame, piece, id=2, offset=start, total=len(long)))
    assert echoed(second, 2, len(long)) == long
    key = offered(sealed, 10_000, id=3)
    frame = second.data()
    sealed.send(pull(frame, id=0, tag=key, imm=9, total=10_000, status=C["BW_PULL_FINAL"]))
    assert gathered(second, "BULK", 10_000)[0] == bytes(at * 7 & 0xFF for at in range(10_000))
    assert sealed.said() == "sent 0"
    second.acknowledge()
    sealed.send(second.frame("BYE"))
    assert sealed.said() == "down -108"


def test_what_was_changed_under_way_is_not_there(sealed: Pair) -> None:
    """Every byte of a sealed frame behind its head, by who cannot seal: it is not acknowledged."""
    second = sealed.second
    second.meet()
    frame = sealed.message(second.data(flags=ACK_NOW), b"genuine")
    second.send(frame)
    second.part("MESSAGE")
    frame = sealed.message(second.data(flags=ACK_NOW), b"changed", id=1)
    whole = second.made(frame)
    for at in range(HEAD, len(whole)):
        second.socket.send(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
    assert not [each for each in second.frames(0.3) if each.body.get("ack") == 2]
    second.socket.send(whole)
    assert echoed(second, 1, 7) == b"changed"


@pytest.mark.parametrize("encrypts", [False, True])
def test_who_does_not_encrypt_is_refused(echo: Path, tmp_path: Path, encrypts: bool) -> None:
    """And who does, by who does not."""
    file = tmp_path / "key"
    file.touch(0o600)
    file.write_text(KEY.hex() + "\n")
    more = {"BEOWIRE_KEY": str(file), "BEOWIRE_ENCRYPT": "0" if encrypts else "1"}
    with strangers_with(echo, KEY, encrypts, **more) as pair:
        second = pair.second
        second.cookie = second.contact(second.hello(nonce=3)).body["cookie"]
        answer = refused(second, second.hello(nonce=3))
        check_refusal(answer, second, "ENCRYPT", "HELLO")
        assert answer.body["auth"] != 0


def test_numbers_of_rfc_8439() -> None:
    """2.8.2: the example of the AEAD."""
    plain = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
    plain += b"future, sunscreen would be it."
    head = bytes.fromhex("50515253c0c1c2c3c4c5c6c7")
    key, nonce = bytes(range(0x80, 0xA0)), bytes.fromhex("070000004041424344454647")
    sealed = seal(key, nonce, head, plain)
    assert sealed[:16].hex() == "d31a8d34648e60db7b86afbc53ef7ec2"
    assert sealed[-16:].hex() == "1ae10b594f09e26a7e902ecbd0600691"
    assert unseal(key, nonce, head, sealed) == plain


def test_with_a_key_challenges_need_it(keyed: Pair) -> None:
    """Another engine's cookie is shown if it was told by who has the key, and no other then."""
    second = keyed.second
    second.meet()

    def challenge(cookie: int) -> Frame:
        hello = second.wait(lambda each: each.kind == "HELLO" and each.hdr["flags"] == 0).body
        frame = second.frame("CHALLENGE", token=hello["token"], conn=hello["conn"])
        return frame.add("challenge", cookie=cookie, nonce=hello["nonce"])

    keyed.send(challenge(6))
    assert second.wait(lambda each: bool(each.body.get("cookie"))).body["cookie"] == 6
    keys, second.keys = second.keys, None
    keyed.send(challenge(5))
    second.keys = keys
    for _ in range(3):
        assert second.wait(lambda each: each.kind == "HELLO").body["cookie"] == 6


@pytest.mark.parametrize("key", [b"", bytes(32)])
def test_without_the_key_nobody_gets_in(echo: Path, tmp_path: Path, key: bytes) -> None:
    file = tmp_path / "key"
    file.touch(0o600)
    file.write_text(KEY.hex() + "\n")
    with strangers_with(echo, key, BEOWIRE_KEY=str(file)) as pair:
        second = pair.second
        challenge = second.contact(second.hello(nonce=3))
        second.cookie = challenge.body["cookie"]
        answer = refused(second, second.hello(nonce=3))
        check_refusal(answer, second, "KEY", "HELLO")
        auth = answer.body["auth"]
        assert auth != 0
        assert not [each for each in second.frames(0.3) if each.kind == "HELLO"]
