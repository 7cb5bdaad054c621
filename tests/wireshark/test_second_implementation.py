# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The document is complete: an implementation written from it alone speaks with libbeowire.

Each test is a conversation over UDP on the loopback device between second.py and echo.c, a program
on libbeowire; it shows one section of docs/wire-protocol.md at work.
"""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from conversation import (
    ACK_NOW,
    ECHO,
    ENVELOPE,
    Pair,
    check_refusal,
    echo,
    gathered,
    offered,
    pull,
    refused,
    strangers_with,
)
from second import WAIT_S, C, Part
from wire_frames import crc32c

__all__ = ["echo"]


@pytest.fixture
def strangers(echo: Path) -> Iterator[Pair]:
    with strangers_with(echo) as pair:
        yield pair


@pytest.fixture
def pair(strangers: Pair) -> Pair:
    """The same after first contact, both confirmed."""
    strangers.second.meet()
    strangers.second.acknowledge()
    return strangers


@pytest.fixture
def known(pair: Pair) -> Pair:
    """The same after a message: now the program knows of its peer, and is told its end."""
    pair.send(pair.message(pair.second.data(), b"known"))
    pair.second.part("MESSAGE")
    pair.second.acknowledge()
    return pair


def test_first_contact(strangers: Pair) -> None:
    second = strangers.second
    answer = second.meet()
    assert answer.hdr["flags"] == C["BW_HDR_ANSWER"]
    assert (answer.hdr["token"], answer.hdr["conn"]) == (second.inc, second.conn)
    assert (answer.hdr["dst_engine"], answer.hdr["pn"]) == (second.engine, 0)
    assert answer.body["node"] == second.node_there
    assert answer.body["inc"] == second.inc_there
    assert answer.body["engine"] == second.engine_there
    assert answer.body["features"] & C["BW_FEATURE_CHECKSUM"]
    assert answer.body["credit"] * C["BW_CREDIT_UNIT"] >= 131072
    assert C["BW_FRAME_MIN_MTU"] <= answer.body["frame_max"] <= C["BW_FRAME_MAX_MTU"]
    assert answer.body["conn"] != 0
    assert answer.body["token"] != 0
    assert answer.name == os.uname().nodename[:32]


def test_a_stranger_is_challenged_and_not_kept(strangers: Pair) -> None:
    """Every HELLO of a stranger draws one frame, a shorter one, and nothing follows."""
    second = strangers.second
    for nonce in range(1, 6):
        second.send(second.hello(nonce=nonce))
        answer = second.wait(lambda _: True)
        assert (answer.kind, answer.body["nonce"]) == ("CHALLENGE", nonce)
        assert (answer.hdr["conn"], answer.hdr["token"]) == (second.conn, second.token)
        assert answer.body["cookie"] != 0
    assert list(second.frames(0.3)) == []
    second.send(second.hello(nonce=7, cookie=answer.body["cookie"] ^ 1))
    assert second.wait(lambda _: True).kind == "CHALLENGE"


def test_a_hello_is_answered_each_time(pair: Pair) -> None:
    pair.send(pair.second.hello())
    again = pair.second.wait(lambda each: each.kind == "HELLO")
    assert again.body["conn"] == pair.second.conn_there


def test_an_answer_is_not_answered(pair: Pair) -> None:
    second = pair.second
    frame = second.hello(flags=C["BW_HDR_ANSWER"])
    frame.set("hdr.conn", second.conn_there)
    pair.send(frame)
    answers = [each for each in second.frames(0.3) if each.hdr["flags"] & C["BW_HDR_ANSWER"]]
    assert [each for each in answers if each.kind == "HELLO"] == []


@pytest.mark.parametrize("size", [0, 1, 5, 64, 1000])
def test_a_message_is_echoed(pair: Pair, size: int) -> None:
    data = bytes(range(256)) * 4
    frame = pair.message(pair.second.data(), data[:size], tag=2**63 + 9, imm=77)
    pair.send(frame)
    part = pair.second.part("MESSAGE")
    assert part.payload == data[:size]
    values = part.values
    assert (values["id"], values["offset"], values["total"]) == (0, 0, size)
    assert (values["code"], values["tag"], values["imm"]) == (ECHO, 2**63 + 9, 77)
    assert (values["dst_ep"], values["src_ep"]) == (0, 0)
    assert (values["crc"] != 0) == (size != 0)


def test_several_parts_in_one_frame(pair: Pair) -> None:
    frame = pair.second.data()
    for number in range(5):
        pair.message(frame, b"x" * (number + 1), id=number)
    pair.send(frame)
    parts = pair.second.parts("MESSAGE", 5)
    assert [len(part.payload) for part in parts] == [1, 2, 3, 4, 5]


def test_order_is_that_of_the_numbers(pair: Pair) -> None:
    for number in (2, 0, 1):
        pair.send(pair.message(pair.second.data(), bytes([number]), id=number))
    parts = pair.second.parts("MESSAGE", 3)
    assert [part.payload for part in parts] == [b"\0", b"\1", b"\2"]


def test_segments_may_come_in_any_order_and_overlap(pair: Pair) -> None:
    data = bytes(range(200))
    for start, end in ((150, 200), (0, 60), (40, 160), (40, 160)):
        frame = pair.second.data()
        pair.send(pair.message(frame, data[start:end], offset=start, total=len(data)))
    assert pair.second.part("MESSAGE").payload == data


def test_what_comes_twice_is_delivered_once(pair: Pair) -> None:
    """A packet that comes again, and its message again in a new packet."""
    second = pair.second
    frame = pair.message(second.data(), b"once")
    pair.send(frame, frame, pair.message(second.data(), b"once"))
    pair.send(pair.message(second.data(), b"next", id=1))
    parts = second.parts("MESSAGE", 2)
    assert [part.payload for part in parts] == [b"once", b"next"]


def test_gaps_are_told_and_the_floor_ends_them(pair: Pair) -> None:
    second = pair.second
    for pn in (1, 2, 4, 5, 8):
        pair.send(second.data(pn=pn))
    told = second.wait(lambda each: each.kind == "ACK" and each.body["largest"] == 8)
    assert told.body["ack"] == 2
    assert told.ranges == [(1, 2), (2, 1)]
    assert told.hdr["path"] == 0
    frame = second.data(pn=9, flags=ACK_NOW).set("ackblk.floor", 7)
    pair.send(frame)
    told = second.wait(lambda each: "ack" in each.body and each.body["ack"] >= 6)
    assert (told.body["ack"], told.ranges) == (6, [(1, 2)])


def test_acknowledge_now(pair: Pair) -> None:
    pair.send(pair.second.data(flags=ACK_NOW))
    pair.second.wait(lambda each: each.body.get("ack") == 1)


def test_a_damaged_payload_is_not_acknowledged(pair: Pair) -> None:
    second = pair.second
    frame = pair.message(second.data(flags=ACK_NOW), b"damaged").seal()
    frame.data[-1] ^= 1
    second.socket.send(bytes(frame.data))
    pair.send(second.data(flags=ACK_NOW))
    told = second.wait(lambda each: each.kind == "ACK")
    assert told.body["flags"] & C["BW_ACKBLK_NO_ACK"] or told.body["ack"] == 0
    assert told.ranges == [(1, 1)]
    pair.send(pair.message(second.data(), b"damaged"))
    assert second.part("MESSAGE").payload == b"damaged"


def test_a_damaged_header_has_no_effect(pair: Pair) -> None:
    second = pair.second
    frame = pair.message(second.data(flags=ACK_NOW), b"x").seal()
    for at in (12, 20, 25, 33, 50, 60):
        damaged = bytearray(frame.data)
        damaged[at] ^= 4
        second.socket.send(bytes(damaged))
    for heard in second.frames(0.3):
        assert heard.kind in ("HELLO", "DATA")
        assert {part.kind for part in heard.parts} <= {"PAD"}
        assert heard.kind == "HELLO" or heard.body["flags"] & C["BW_ACKBLK_NO_ACK"]


def test_checksums_are_left_out_if_one_side_does_not_offer_them(strangers: Pair) -> None:
    second = strangers.second
    second.features = 0
    second.meet()
    frame = second.data().part("MESSAGE", b"plain", checksum=False, total=5, code=ECHO)
    strangers.send(frame)
    part = second.part("MESSAGE")
    assert (part.payload, part.values["crc"]) == (b"plain", 0)


def test_what_is_not_acknowledged_comes_again_under_a_new_number(pair: Pair) -> None:
    second = pair.second
    second.silent = True
    pair.send(pair.message(second.data(), b"again"))
    seen: list[tuple[int, Part]] = []
    for frame in second.frames(20.0):
        seen += [(frame.hdr["pn"], part) for part in frame.parts if part.kind == "MESSAGE"]
        if len(seen) == 3:
            break
    assert len({pn for pn, _ in seen}) == 3
    assert {(part.values["id"], part.payload) for _, part in seen} == {(0, b"again")}


def test_our_region_is_pulled(pair: Pair) -> None:
    """An envelope, the pull, the data in disorder and in overlapping pieces."""
    second = pair.second
    data = bytes(number * 31 & 0xFF for number in range(40000))
    envelope = (0xABCD).to_bytes(8, "little") + len(data).to_bytes(8, "little")
    pair.send(pair.message(second.data(), envelope, code=ECHO | ENVELOPE, tag=5, imm=6))
    asked = second.part("PULL").values
    assert (asked["tag"], asked["offset"], asked["total"]) == (0xABCD, 0, len(data))
    assert asked["status"] == C["BW_PULL_FINAL"]
    assert (asked["dst_ep"], asked["src_ep"]) == (C["BW_EP_CONTROL"], C["BW_EP_CONTROL"])
    for start, end in ((30000, 40000), (0, 20000), (10000, 31000)):
        pair.send(second.data().part("BULK", data[start:end], id=asked["imm"], offset=start))
    assert pair.said() == f"pulled 0 {len(data)}"
    assert gathered(second, "MESSAGE", len(data))[0] == data


def test_a_refused_pull_ends_with_its_error(pair: Pair) -> None:
    second = pair.second
    envelope = (1).to_bytes(8, "little") + (1000).to_bytes(8, "little")
    pair.send(pair.message(second.data(), envelope, code=ECHO | ENVELOPE))
    asked = second.part("PULL").values
    control = C["BW_EP_CONTROL"]
    frame = second.data().part(
        "PULL_ERROR", tag=asked["imm"], status=-13, dst_ep=control, src_ep=control
    )
    pair.send(frame)
    assert pair.said() == "pulled -13 0"


def test_their_region_is_pulled(pair: Pair) -> None:
    second = pair.second
    key = offered(pair, 100_000)
    pair.send(pull(second.data(), tag=key, imm=99, offset=10, total=5, status=0))
    part = second.part("BULK")
    assert (part.values["id"], part.values["offset"]) == (99, 0)
    assert part.payload == bytes(number * 7 & 0xFF for number in range(10, 15))
    frame = second.data()
    pair.send(pull(frame, id=1, tag=key, imm=100, total=100_000, status=C["BW_PULL_FINAL"]))
    whole, _ = gathered(second, "BULK", 100_000)
    assert whole == bytes(number * 7 & 0xFF for number in range(100_000))
    assert pair.said() == "sent 0"


def test_a_pull_of_nothing_releases_the_region(pair: Pair) -> None:
    key = offered(pair, 100_000)
    pair.send(pull(pair.second.data(), tag=key, imm=1, status=C["BW_PULL_FINAL"]))
    answer = pair.second.part("PULL_ERROR").values
    assert (answer["tag"], answer["total"], answer["status"]) == (1, 0, 0)
    assert pair.said() == "sent 0"


def test_a_pull_of_nothing_by_a_wrong_key_is_refused(pair: Pair) -> None:
    key = offered(pair, 100_000)
    pair.send(pull(pair.second.data(), tag=key + 1, imm=1, status=C["BW_PULL_FINAL"]))
    answer = pair.second.part("PULL_ERROR").values
    assert (answer["tag"], answer["total"]) == (1, 0)
    assert answer["status"] & 0xFFFFFFFF == 2**32 - 2
    pair.send(pull(pair.second.data(), id=1, tag=key, imm=2, status=C["BW_PULL_FINAL"]))
    assert pair.said() == "sent 0"


def test_control_messages_act_in_any_order_but_once(pair: Pair) -> None:
    key = offered(pair, 100_000)
    second = pair.second
    second_pull = pull(second.data(), id=1, tag=key, imm=11, offset=1, total=1)
    first_pull = pull(second.data(), id=0, tag=key, imm=10, offset=0, total=1)
    again = pull(second.data(), id=1, tag=key, imm=11, offset=1, total=1)
    pair.send(second_pull, first_pull, again)
    pair.send(pull(second.data(), id=2, tag=key, imm=12, offset=2, total=1))
    parts = second.parts("BULK", 3)
    assert sorted(part.values["id"] for part in parts) == [10, 11, 12]


@pytest.mark.parametrize(
    ("change", "error"),
    [({"tag": 12345}, -2), ({"offset": 100_000, "total": 1}, -22), ({"total": 2**64 - 1}, -22)],
)
def test_pulls_that_cannot_be_served(pair: Pair, change: dict[str, int], error: int) -> None:
    key = offered(pair, 100_000)
    pair.send(pull(pair.second.data(), **({"tag": key, "imm": 55, "total": 1} | change)))
    part = pair.second.part("PULL_ERROR")
    assert (part.values["tag"], part.values["status"]) == (55, error)
    assert part.values["dst_ep"] == C["BW_EP_CONTROL"]


def test_host_keys_are_the_hosts_business(pair: Pair) -> None:
    """This program allows no remote reads."""
    frame = pull(pair.second.data(), imm=7, total=8, status=C["BW_PULL_HOST_KEY"])
    pair.send(frame)
    assert pair.second.part("PULL_ERROR").values["status"] == -13


def test_charges_stay_below_the_limit(strangers: Pair) -> None:
    """With credit for one message the program sends no second one until it gets more."""
    second = strangers.second
    second.meet(credit=1024 // C["BW_CREDIT_UNIT"])
    for number in range(2):
        frame = strangers.message(second.data(), b"c" * 1000, id=number)
        second.send(frame.set("ackblk.credit", 1024 // C["BW_CREDIT_UNIT"]))
    second.silent = True
    seen = [part for frame in second.frames(0.5) for part in frame.parts if part.kind == "MESSAGE"]
    assert {part.values["id"] for part in seen} == {0}
    second.silent = False
    second.send(second.data())
    second.wait(lambda each: any(part.values["id"] == 1 for part in each.parts))


def test_the_frame_size_is_probed_before_it_is_used(pair: Pair) -> None:
    second = pair.second
    probe = second.wait(lambda each: any(part.kind == "PAD" for part in each.parts))
    assert [part.kind for part in probe.parts] == ["PAD"]
    longest = 32 + probe.hdr["len"]
    assert longest > 1280
    data = bytes(30000)
    for number in range(20):  # a probe may have been taken for lost and be tried again
        pair.send(pair.message(second.data(), data, id=number))
        if gathered(second, "MESSAGE", len(data))[1] > 1280:
            return
    raise AssertionError("long frames are acknowledged, but not used")


def test_a_dead_incarnation_is_refused(strangers: Pair) -> None:
    second = strangers.second
    answer = refused(second, second.hello().set("hdr.token", second.inc_there ^ 1))
    check_refusal(answer, second, "INCARNATION", "HELLO")
    echo = [answer.body[f"echo_{name}"] for name in ("token", "conn", "hello")]
    assert echo == [second.inc_there ^ 1, second.conn, second.token]


def test_an_unknown_handle_is_refused(pair: Pair) -> None:
    second = pair.second
    answer = refused(second, second.question().set("hdr.conn", second.conn_there + 1))
    check_refusal(answer, second, "HANDLE", "DATA")
    assert answer.body["echo_conn"] == second.conn_there + 1


def test_what_is_shorter_than_a_refusal_is_not_refused(pair: Pair) -> None:
    second = pair.second
    short = second.data(flags=ACK_NOW).set("hdr.token", second.token_there ^ 1)
    pair.send(short)
    assert [each for each in second.frames(0.3) if each.kind == "REFUSE"] == []


def test_another_token_is_refused(pair: Pair) -> None:
    second = pair.second
    answer = refused(second, second.question().set("hdr.token", second.token_there ^ 1))
    check_refusal(answer, second, "HANDLE", "DATA")
    assert answer.body["echo_token"] == second.token_there ^ 1


def test_frames_from_another_address_have_no_effect(pair: Pair) -> None:
    """Whoever has seen all that is needed, but is not where the peer is."""
    second = pair.second
    bye = bytes(second.frame("BYE").seal().data)
    refuse = second.frame("REFUSE", token=0, conn=0).add(
        "refuse",
        why=C["BW_REFUSAL_HANDLE"],
        echo_type=C["BW_FRAME_DATA"],
        echo_engine=second.engine,
        echo_token=second.token,
        echo_conn=second.conn,
    )
    data = pair.message(second.data(pn=1), b"theirs").seal().data
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as elsewhere:
        for frame in (data, bye, refuse.seal().data):
            elsewhere.sendto(bytes(frame), second.socket.getpeername())
    pair.send(pair.message(second.data(), b"ours"))
    assert second.part("MESSAGE").payload == b"ours"


def test_another_version_is_refused(strangers: Pair) -> None:
    second = strangers.second
    answer = refused(second, second.hello(version=1, version_min=1, version_max=1))
    check_refusal(answer, second, "VERSION", "HELLO")


def test_a_later_version_speaks_this_one(strangers: Pair) -> None:
    """It offers versions 2 and 3 and features that nobody knows here, and speaks version 2."""
    second = strangers.second
    answer = second.meet(version=3, version_max=3, features=2**40 | C["BW_FEATURE_CHECKSUM"])
    assert answer.hdr["version"] == C["BW_VERSION"]
    assert (answer.body["version_min"], answer.body["version_max"]) == (2, 2)
    second.acknowledge()
    strangers.send(strangers.message(second.data(), b"from a later version"))
    assert second.part("MESSAGE").payload == b"from a later version"
    second.acknowledge()
    strangers.send(second.frame("BYE"))
    assert strangers.said() == "down -108"


def test_a_later_version_alone_is_refused(strangers: Pair) -> None:
    second = strangers.second
    answer = refused(second, second.hello(version=3, version_min=3, version_max=4))
    check_refusal(answer, second, "VERSION", "HELLO")


def test_our_refusal_ends_the_peer(pair: Pair) -> None:
    """The program has sent us something; we say that we do not know it."""
    second = pair.second
    pair.send(pair.message(second.data(), b"x"))
    second.part("MESSAGE")
    values = {
        "echo_type": C["BW_FRAME_DATA"],
        "echo_engine": second.engine,
        "echo_token": second.token,
        "echo_conn": second.conn,
    }
    wrong = second.frame("REFUSE", token=0, conn=0)
    pair.send(wrong.add("refuse", why=1, **(values | {"echo_token": second.token ^ 1})))
    pair.send(pair.message(second.data(), b"y", id=1))
    assert second.part("MESSAGE").payload == b"y"
    right = second.frame("REFUSE", token=0, conn=0)
    pair.send(right.add("refuse", why=1, **values))
    assert pair.said() == "down -111"


def test_unconfirmed_the_latest_hello_counts(strangers: Pair) -> None:
    """It gets a handle that frames of the earlier conversation do not carry."""
    second = strangers.second
    first = second.meet().body
    second.conn += 1
    again = second.meet().body
    assert again["conn"] != first["conn"]
    assert again["token"] != first["token"]
    late = strangers.message(second.data(pn=1), b"late")
    late.set("hdr.conn", first["conn"]).set("hdr.token", first["token"])
    answer = refused(second, late)
    check_refusal(answer, second, "HANDLE", "DATA")
    strangers.send(strangers.message(second.data(pn=1), b"now"))
    assert second.part("MESSAGE").payload == b"now"


def test_unconfirmed_they_say_hello_again(strangers: Pair) -> None:
    second = strangers.second
    answer = second.meet()
    again = second.wait(lambda each: each.kind == "HELLO")
    assert again.hdr["flags"] == 0
    assert again.hdr["conn"] == second.conn
    assert again.body["conn"] == answer.body["conn"]


def test_a_confirmed_peer_is_asked_before_a_new_handle_counts(known: Pair) -> None:
    """We deny what was, and the old peer is down. libbeowire keeps a lost peer lost and takes
    leave of it when it comes again."""
    second = known.second
    second.silent = True
    old = second.conn
    second.conn += 1
    known.send(second.hello())
    second.wait(lambda each: each.asks)
    values = {"echo_engine": second.engine, "echo_token": second.token, "echo_conn": old}
    values["inc"] = second.inc
    answer = second.frame("REFUSE", token=0, conn=0)
    why, kind = C["BW_REFUSAL_HANDLE"], C["BW_FRAME_DATA"]
    known.send(answer.add("refuse", why=why, echo_type=kind, **values))
    assert known.said() == "down -104"
    known.send(second.hello())
    bye = second.wait(lambda each: each.kind == "BYE")
    assert bye.hdr["conn"] == second.conn


def test_a_new_incarnation_is_a_new_peer(known: Pair) -> None:
    """The old one is asked whether it lives; it is gone, and so its successor refuses."""
    second = known.second
    old, old_conn = second.token, second.conn
    second.inc, second.conn, second.pn = second.inc ^ 1, second.conn + 1, 0
    second.token ^= 1
    second.silent = True
    known.send(second.hello(nonce=5))
    question = None
    echo = b""
    for frame in second.frames(WAIT_S):
        if frame.kind == "HELLO":
            second.conn_there = frame.body["conn"]
            second.token_there = frame.body["token"]
            known.send(known.message(second.data(), b"afresh"))
        elif frame.kind == "CHALLENGE":
            second.cookie = frame.body["cookie"]
            known.send(second.hello(nonce=5))
        elif frame.hdr["token"] == old and frame.asks:
            question = frame
            values = {"echo_token": old, "echo_conn": old_conn, "echo_engine": second.engine}
            answer = second.frame("REFUSE", token=0, conn=0)
            known.send(answer.add("refuse", why=1, echo_type=C["BW_FRAME_DATA"], **values))
        elif frame.hdr["token"] != old and frame.parts and frame.parts[0].kind == "MESSAGE":
            echo = frame.parts[0].payload
        if question and echo:
            break
    assert question is not None
    assert question.hdr["flags"] & ACK_NOW
    assert echo == b"afresh"
    assert known.said() == "down -111"


def test_goodbye_from_us(known: Pair) -> None:
    known.send(known.second.frame("BYE"))
    assert known.said() == "down -108"


def test_goodbye_from_them(pair: Pair) -> None:
    """It says what they have received, beside the acknowledgement before."""
    second = pair.second
    pair.send(pair.message(second.data(), b"last words"))
    assert second.part("MESSAGE").payload == b"last words"
    assert pair.process.stdin is not None
    pair.process.stdin.close()
    bye = second.wait(lambda each: each.kind == "BYE")
    assert (bye.hdr["token"], bye.hdr["conn"]) == (second.token, second.conn)
    assert (bye.body["ack"], bye.body["largest"], bye.ranges) == (second.pn, second.pn, [])


def test_another_cluster_is_not_heard(strangers: Pair) -> None:
    second = strangers.second
    second.cluster ^= 1
    second.send(second.hello())
    assert not list(second.frames(0.3))


def test_bytes_behind_the_stated_length_are_ignored(pair: Pair) -> None:
    frame = pair.message(pair.second.data(), b"padded").seal()
    pair.second.socket.send(bytes(frame.data) + b"\xff" * 30)
    assert pair.second.part("MESSAGE").payload == b"padded"


def test_packet_numbers_are_taken_modulo_2_to_the_32(pair: Pair) -> None:
    """Numbers jump by less than 2^31 each, past the end of 32 bits."""
    second = pair.second
    for pn in (2**31 - 5, 2**32 - 8, 2**32 + 3):
        frame = second.data(pn=pn, flags=ACK_NOW).set("ackblk.floor", pn & 0xFFFFFFFF)
        pair.send(frame)
        second.wait(lambda each, pn=pn: each.body.get("ack") == pn & 0xFFFFFFFF)  # type: ignore[misc]


def test_checksum_of_the_document() -> None:
    assert crc32c(b"123456789") == 0xE3069283
