# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The keeper of copies gives only what nobody can change, the first of each name, within bounds."""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from beowire.replicate import keeper
from beowire.replicate.keeper import Keeper
from keeping import serving


@pytest.fixture
def served() -> Iterator[tuple[Keeper, Path]]:
    """A keeper that serves until the test ends."""
    with serving() as made:
        yield made


@contextlib.contextmanager
def caller(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        one.settimeout(60)
        one.connect(str(path))
        yield one


def copy(text: bytes, seals: int = keeper.SEALED) -> int:
    made = os.memfd_create("copy", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(made, text)
    if seals:
        fcntl.fcntl(made, fcntl.F_ADD_SEALS, seals)
    return made


def answer(one: socket.socket) -> bytes | None:
    """The contents of the copy that came, or None."""
    word, passed, _, _ = socket.recv_fds(one, 10, 4)
    assert word == (b"Y" if passed else b"N")
    for each in passed:
        text = os.pread(each, 100, 0)
        os.close(each)
        return text
    return None


def put(one: socket.socket, name: bytes, made: int) -> bytes | None:
    socket.send_fds(one, [b"P" + name], [made])
    os.close(made)
    return answer(one)


def get(one: socket.socket, name: bytes) -> bytes | None:
    one.send(b"G" + name)
    return answer(one)


def test_the_first_of_a_name_stays(served: tuple[Keeper, Path]) -> None:
    with caller(served[1]) as one, caller(served[1]) as other:
        assert get(one, b"a") is None
        assert put(one, b"a", copy(b"first")) == b"first"
        assert put(other, b"a", copy(b"second")) == b"first"
        assert get(other, b"a") == b"first"
        assert get(other, b"b") is None


@pytest.mark.parametrize("seals", [0, keeper.SEALED & ~fcntl.F_SEAL_WRITE])
def test_what_can_be_changed_is_not_kept(served: tuple[Keeper, Path], seals: int) -> None:
    with caller(served[1]) as one:
        assert put(one, b"a", copy(b"text", seals)) is None
        assert put(one, b"a", os.open("/dev/null", os.O_RDONLY)) is None
        assert put(one, b"a", copy(b"sealed")) == b"sealed"


def test_nonsense_ends_a_caller_at_most(served: tuple[Keeper, Path]) -> None:
    kept, path = served
    with caller(path) as one:
        for said in (b"P", b"Pa", b"X", b"\0" * 100):
            one.send(said)
            assert answer(one) is None
        one.send(b"G" + b"x" * keeper.NAME_MAX)
        assert one.recv(10) == b""
    with caller(path) as one:
        made = [copy(b"1"), copy(b"2")]
        socket.send_fds(one, [b"Pa"], made)
        for each in made:
            os.close(each)
        assert one.recv(10) == b""
    with caller(path) as one:
        assert get(one, b"a") is None
    assert not kept.copies


def test_names_and_callers_are_bounded(
    served: tuple[Keeper, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "COPIES_MAX", 2)
    monkeypatch.setattr(keeper, "CALLERS_MAX", 1)
    with caller(served[1]) as one:
        for name in (b"a", b"b"):
            assert put(one, name, copy(name)) == name
        assert put(one, b"c", copy(b"c")) is None
        with caller(served[1]) as other:
            assert other.recv(10) == b""


def open_files() -> set[tuple[int, int]]:
    """Device and number of what this process has open."""
    files = set()
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # that of the listing itself
            known = each.stat()
            files.add((known.st_dev, known.st_ino))
    return files


def test_descriptors_do_not_grow(served: tuple[Keeper, Path]) -> None:
    before = open_files()
    with caller(served[1]) as one:
        for _ in range(50):
            put(one, b"a", copy(b"a"))
            put(one, b"b", copy(b"b", 0))
        assert len(open_files() - before) == 3  # the two ends, and the copy
