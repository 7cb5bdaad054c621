# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The reader of boards: what they say, and that no bytes whatever do it harm."""

import json
import re
import struct
from pathlib import Path
from typing import Any

import board_bytes
import pytest
from beowire.status import layout
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[3]
WHOLE = board_bytes.board([board_bytes.peer(srtt_ns=5, status=-110, way=1, link=3)])
_PLAIN = re.compile(r"[\x20-\x7e]*")


def taken_apart(data: bytes) -> dict[str, Any]:
    head = layout.head(data)
    begin = head.sheets[layout.current(data)]
    found = data[begin : begin + head.numbers["sheet_bytes"]]
    return {"head": vars(head), "sheet": layout.sheet(head, found, 10)}


def texts(told: Any) -> list[str]:
    if isinstance(told, str):
        return [told]
    if isinstance(told, dict):
        return [text for pair in told.items() for each in pair for text in texts(each)]
    if isinstance(told, list | tuple):
        return [text for each in told for text in texts(each)]
    return []


def assert_harmless(data: bytes) -> None:
    """It is refused, or what it says is short, plain, and fit for JSON."""
    try:
        told = taken_apart(data)
    except layout.DamagedError:
        return
    assert len(told["sheet"]["peer"]) <= layout.PEERS_MAX
    assert len(told["sheet"]["wait"]) <= layout.WAITS_MAX
    assert all(_PLAIN.fullmatch(text) for text in texts(told))
    json.dumps(told, allow_nan=False)


def test_a_whole_board_says_what_was_written() -> None:
    told = taken_apart(WHOLE)
    assert told["head"]["host"] == "host"
    assert told["head"]["program"] == "program"
    assert told["head"]["interfaces"] == ["eth0"]
    assert told["sheet"]["drops"] == {"duplicate": 3}
    (peer,) = told["sheet"]["peer"]
    assert peer["host"] == "other"
    assert peer["link"] == "udp"
    assert peer["status"] == -110
    assert peer["srtt_ns"] == 5
    assert peer["heard_s"] is None
    assert told["sheet"]["wait"][0]["peer"] == "0000000000000abc/9/00000007"
    assert told["sheet"]["wait"][0]["kind"] == "receive"
    assert told["sheet"]["wait"][0]["since_s"] == pytest.approx(9e-9)


@pytest.mark.parametrize(
    ("since", "proven", "missing"),
    [(0, 5, None), (2_000, 5_000, 4.0), (5_000, 2_000, 4.0), (5_000, 0, 4.0), (9_500, 0, 0.0)],
)
def test_answers_are_missing_as_of_the_sheet(since: int, proven: int, missing: float) -> None:
    """It was written at 9,000 ms, and is read much later."""
    ms = 1_000_000
    peer = board_bytes.peer(waiting_since=since * ms, proven=proven * ms)
    data = board_bytes.sheet([peer], at=9_000 * ms)
    (told,) = layout.sheet(layout.head(WHOLE), data, 60_000 * ms)["peer"]
    assert told["unanswered_s"] == missing


@given(st.binary(max_size=6000))
def test_any_bytes(data: bytes) -> None:
    assert_harmless(data)
    assert_harmless(layout.MAGIC + data)


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=40))
def test_any_change(changes: list[tuple[int, int]]) -> None:
    data = bytearray(WHOLE)
    for at, value in changes:
        data[at] = value
    assert_harmless(bytes(data))


@given(st.integers(0, 20), st.sampled_from([0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF]))
def test_extreme_numbers_in_the_head(place: int, value: int) -> None:
    data = bytearray(WHOLE)
    struct.pack_into("<I", data, len(layout.MAGIC) + 4 * place, value)
    assert_harmless(bytes(data))


@given(st.integers(0, len(WHOLE)))
def test_any_length(length: int) -> None:
    assert_harmless(WHOLE[:length])


def test_more_peers_than_there_is_room_for() -> None:
    sheet = bytearray(board_bytes.sheet())
    struct.pack_into("<II", sheet, board_bytes.COUNTS_AT, 0xFFFF_FFFF, 0xFFFF_FFFF)
    head = layout.head(WHOLE)
    told = layout.sheet(head, bytes(sheet), 10)
    assert len(told["peer"]) == board_bytes.PEERS
    assert len(told["wait"]) == board_bytes.WAITS


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"sheet_bytes": 100},
        {"sheet_bytes": 1 << 30},
        {"peer_bytes": 8},
        {"wait_bytes": 0},
        {"peers_max": 1 << 20},
        {"head_bytes": 8},
    ],
)
def test_sizes_that_contradict_one_another(changes: dict[str, int]) -> None:
    with pytest.raises(layout.DamagedError):
        layout.head(board_bytes.board([], **changes))


def test_no_command_reaches_the_terminal() -> None:
    data = bytearray(WHOLE)
    at = data.index(b"program")
    data[at : at + 7] = b"\x1b[2J\x07\x9b!"
    assert taken_apart(bytes(data))["head"]["program"] == "?[2J??!"


def _array(name: str) -> int:
    header = (ROOT / "hosts" / "user" / "board.h").read_text()
    found = re.search(rf"#define {name}\s+(\d+)", header)
    assert found
    return int(found[1])


def test_the_sizes_are_those_of_the_library() -> None:
    header = (ROOT / "hosts" / "user" / "board.h").read_text()
    sizes = [int(each) for each in re.findall(r"== (\d+),\s*\"layout of the board\"", header)]
    assert sizes == [layout.PEER_BYTES, layout.WAIT_BYTES, layout.HEAD_BYTES]
    assert _array("BW_BOARD_VERSION") == layout.VERSION
    assert _array("BW_BOARD_PEERS") <= layout.PEERS_MAX
    assert _array("BW_BOARD_WAITS") <= layout.WAITS_MAX
