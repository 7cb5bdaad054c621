# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Remarks of Beowire's are told once per job; all other text passes untouched and at once."""

import re
import tempfile

import pytest
from beowire.run.once import Once, told_once

TEXT = (
    b"beowire: node2 is gone\nother\nbeowire: node3 is gone\nbeowire: node2 is gone\n"
    b"other\nbeo\n\nit said beowire: node2 is gone\nbeowire: node3 is gone\nno end"
)
PASSED = (
    b"beowire: node2 is gone\nother\nbeowire: node3 is gone\n"
    b"other\nbeo\n\nit said beowire: node2 is gone\nno end"
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 9, 10, 50, 1000])
def test_in_pieces_of_any_size(size: int) -> None:
    once = Once()
    passed = b"".join(once.feed(TEXT[at : at + size]) for at in range(0, len(TEXT), size))
    assert passed + once.end() == PASSED


def test_other_text_is_not_held_back() -> None:
    once = Once()
    assert once.feed(b"50 %") == b"50 %"
    assert once.feed(b"\rbeowire: x\nbe") == b"\rbeowire: x\n"
    assert once.feed(b"t") == b"bet"
    assert once.end() == b""


def test_a_line_without_an_end_is_not_held_for_ever() -> None:
    once = Once()
    assert once.feed(b"beowire: " + bytes(5000)) == b"beowire: " + bytes(5000)
    assert once.feed(b"more") == b"more"


def test_a_remark_without_an_end_is_not_lost() -> None:
    once = Once()
    assert once.feed(b"beowire: node2") == b""
    assert once.end() == b"beowire: node2"


LOSS = (
    b"beowire: node1 (node 7e27c8bd3c66e55f) engine 42035 is gone (Connection timed out): "
    b"operations with it end with an error\n"
)


@pytest.mark.parametrize("size", [1, 7, 50, 1000])
def test_a_loss_behind_what_another_process_has_begun_was_told(size: int) -> None:
    text = b"rank 0: " + LOSS + b"MPI error 17\n"
    once = Once()
    passed = b"".join(once.feed(text[at : at + size]) for at in range(0, len(text), size))
    assert passed == text
    assert not once.lost
    assert once.feed(LOSS) == b""
    assert once.feed(LOSS.replace(b"node1", b"node2")) != b""


def test_a_loss_that_was_told_is_no_news_behind_what_another_process_has_begun() -> None:
    once = Once()
    assert once.feed(LOSS + b"rank 1: ") == LOSS + b"rank 1: "
    assert once.feed(LOSS[:30]) == b""
    assert once.feed(LOSS[30:] + b"rank 2: " + LOSS + b"MPI") == b"\nrank 2: \nMPI"
    assert once.feed(b" beowire: x") == b" "
    assert once.end() == b"beowire: x"


KEY = (
    "beowire: error: {} and {} do not have the same cluster key, so they do not talk to each other"
)
OPEN = "beowire: error: {} encrypts, and {} does not, so they do not talk to each other; fix: set"
VERSION = (
    "beowire: error: {} speaks versions 2 to 2 of the wire protocol and {} versions 3 to 4, so "
    "they do not talk to each other; fix: install the same Beowire on both"
)
STILL = (
    "beowire: {}: warning: this process stood still, or the clock jumped, by 1234 ms at least "
    "while it waited for {}; no peer is given up for that"
)


@pytest.mark.parametrize("words", [KEY, OPEN, VERSION, STILL])
def test_a_fault_that_several_nodes_see_is_told_once(words: str) -> None:
    """Each in words of its own, as it names itself."""
    lines = [words.format(*pair) for pair in (("a", "d"), ("b", "d"), ("a", "d"), ("c", "a peer"))]
    once = Once()
    passed = once.feed("".join(f"{line}\n" for line in lines).encode()) + once.end()
    first, rest = passed.decode().splitlines()
    assert first == lines[0]
    assert re.fullmatch(r"beowire: the same \([a-z ,]+\) of b and d, c and a peer", rest)


def test_faults_of_different_kinds_are_told() -> None:
    lines = [words.format("a", "b") for words in (KEY, OPEN, VERSION, STILL)]
    text = "".join(f"{line}\n" for line in lines).encode()
    once = Once()
    assert once.feed(text + text) + once.end() == text


def test_of_many_nodes_some_are_named() -> None:
    once = Once()
    for node in range(100):
        once.feed(f"{KEY.format(f'n{node}', 'd')}\n".encode())
    rest = once.end()
    assert rest.count(b" and d") == 16
    assert rest.endswith(b"n16 and d, and 83 more\n")


def test_what_is_told_at_the_end_begins_a_line() -> None:
    once = Once()
    once.feed(f"{KEY.format('a', 'd')}\n{KEY.format('b', 'd')}\n50 %".encode())
    assert once.end() == b"\nbeowire: the same (other keys) of b and d\n"


def test_what_is_written_to_the_descriptor_arrives() -> None:
    with tempfile.TemporaryFile() as file:
        with told_once(file) as told, open(told.descriptor, "wb", closefd=False) as stream:
            stream.write(TEXT)
        file.seek(0)
        assert file.read() == PASSED
