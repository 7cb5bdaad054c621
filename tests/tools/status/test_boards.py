# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Boards found in directories that others may have prepared, kept by processes that may be gone."""

import contextlib
import fcntl
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import board_bytes
import pytest
from beowire import places
from beowire.status import boards, layout

NAME = "{}-0000000{}"
KEEP = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The directory of this user."""
    directory = tmp_path / f"beowire-{os.geteuid()}"
    directory.mkdir(mode=0o700)
    return directory


def write(directory: Path, data: bytes, number: int = 1) -> Path:
    file = directory / NAME.format(1, number)
    file.write_bytes(data)
    return file


@contextlib.contextmanager
def kept(file: Path) -> Iterator[int]:
    """A process that keeps the board; its number."""
    command = [sys.executable, "-c", KEEP, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == b"held\n"
        yield keeper.pid
        keeper.kill()


def test_a_board_that_is_kept_is_found(place: Path) -> None:
    file = write(place, board_bytes.board())
    with kept(file) as pid:
        (found,) = boards.find(place.parent)
        assert found.pid == pid
        assert found.uid == os.geteuid()
        assert found.head.program == "program"


def test_what_a_dead_process_left_is_removed_with_its_directory(place: Path) -> None:
    file = write(place, board_bytes.board())
    with kept(file):
        boards.find(place.parent)
        assert file.exists()
    assert boards.find(place.parent) == []
    assert not file.exists()
    assert not place.exists()


def test_damaged_ones_do_not_hide_others(place: Path) -> None:
    whole = write(place, board_bytes.board(), 1)
    damaged = write(place, b"nothing of the kind", 2)
    with kept(whole), kept(damaged):
        (found,) = boards.find(place.parent)
        assert found.head.program == "program"


def test_a_directory_that_others_can_enter_is_not_believed(place: Path) -> None:
    file = write(place, board_bytes.board())
    with kept(file):
        place.chmod(0o770)
        assert boards.find(place.parent) == []
        place.chmod(0o700)


def test_links_are_not_followed(place: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    file = write(elsewhere, board_bytes.board())
    (tmp_path / "beowire-7").symlink_to(elsewhere)
    (place / NAME.format(1, 3)).symlink_to(file)
    with kept(file):
        assert boards.find(tmp_path) == []


def test_what_is_no_file_is_left_alone(place: Path) -> None:
    os.mkfifo(place / NAME.format(1, 4))
    (place / "a-stranger").write_bytes(b"")
    assert boards.find(place.parent) == []
    assert {each.name for each in place.iterdir()} == {NAME.format(1, 4), "a-stranger"}


@pytest.mark.skipif(os.geteuid() != 0, reason="files of another user")
def test_files_of_others_are_not_believed(place: Path) -> None:
    file = write(place, board_bytes.board())
    os.chown(file, 1, 1)
    with kept(file):
        assert boards.find(place.parent) == []
        assert file.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="boards of another user")
def test_root_sees_those_of_all_users(tmp_path: Path) -> None:
    directory = tmp_path / "beowire-1"
    directory.mkdir(mode=0o700)
    file = write(directory, board_bytes.board())
    os.chown(file, 1, 1)
    os.chown(directory, 1, 1)
    with kept(file):
        (found,) = boards.find(tmp_path)
        assert found.uid == 1


def test_a_sheet_that_is_being_written_is_not_taken(place: Path) -> None:
    """A process that was stopped while it wrote left the other sheet whole; one that writes for
    ever is none of ours."""
    data = bytearray(board_bytes.board())
    second = layout.HEAD_BYTES + board_bytes.SHEET_BYTES
    struct.pack_into("<Q", data, second, 1)
    file = write(place, bytes(data))
    with kept(file):
        assert len(boards.find(place.parent)) == 1
        data[792] = 1  # the one that is to be read
        file.write_bytes(data)
        assert boards.find(place.parent) == []


def test_a_file_that_becomes_shorter_ends_nobody(place: Path) -> None:
    file = write(place, board_bytes.board())
    with kept(file):
        os.truncate(file, 900)
        assert boards.find(place.parent) == []


def test_the_holder_is_who_the_kernel_says(place: Path) -> None:
    file = write(place, board_bytes.board())
    descriptor = os.open(file, os.O_RDWR)
    try:
        assert boards.holder(descriptor) is None
        with kept(file) as pid:
            assert boards.holder(descriptor) == pid
        fcntl.lockf(descriptor, fcntl.LOCK_EX)
        assert boards.holder(descriptor) is None  # nobody is in his own way
    finally:
        os.close(descriptor)


@pytest.mark.usefixtures("own_shm")
@pytest.mark.skipif(os.geteuid() != 0, reason="a /dev/shm of the test's own")
def test_run_removes_those_of_processes_that_are_gone(tmp_path: Path) -> None:
    directory = boards.SHARED_MEMORY / f"beowire-{os.geteuid()}"
    directory.mkdir(mode=0o700)
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # still to be waited for
    for pid in (os.getpid(), ended.pid):
        (directory / NAME.format(pid, 1)).touch()
    mark = tmp_path / "began"
    mark.touch()
    command = ["sh", str(places.package_file("run/sweep.sh")), str(mark)]
    subprocess.run(command, check=True)
    assert [each.name for each in directory.iterdir()] == [NAME.format(os.getpid(), 1)]
    (directory / NAME.format(os.getpid(), 1)).unlink()
    subprocess.run(command, check=True)
    assert not directory.exists()
    ended.wait()
