# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Boards found in directories that others may have prepared, kept by processes that may be gone."""

import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import board_bytes
import pytest
from beowire import places
from beowire.status import boards, cluster, job, layout, node

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


KEEP_OPEN_FILE = """
import fcntl, struct, sys
file = open(sys.argv[1], "r+b")
fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
print("held", flush=True)
sys.stdin.read()
"""


def write(directory: Path, data: bytes, number: int = 1) -> Path:
    file = directory / NAME.format(1, number)
    file.write_bytes(data)
    return file


@contextlib.contextmanager
def kept(file: Path, keep: str = KEEP) -> Iterator[int]:
    """A process that keeps the board; its number."""
    command = [sys.executable, "-c", keep, str(file)]
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


def test_a_lock_without_a_process_is_not_believed(place: Path) -> None:
    """Who takes one of the open file's could pass himself off as any process."""
    file = write(place, board_bytes.board(pid=os.getpid()))
    with kept(file, KEEP_OPEN_FILE):
        assert boards.find(place.parent) == []
        assert file.exists()


def test_a_process_of_another_namespace_is_nobody_here(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the board says of its process is not joined with a process of ours."""
    write(place, board_bytes.board(pid=os.getpid()))
    monkeypatch.setattr(boards, "holder", lambda _: 0)
    (found,) = boards.find(place.parent)
    told = node.endpoint(None, found)
    assert told["pid"] == 0
    process = {"slurm": "4711", "job": None, "rank": 0}
    processes = {"0": process, str(os.getpid()): process}
    state = cluster.joined({"": {"endpoints": [told], "processes": processes, "kernel": None}}, {})
    members = job.members(state, 4711, "nowhere")
    assert [each for each in members if each.endpoints] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="a directory of another user")
def test_a_directory_of_another_number_is_not_believed(tmp_path: Path) -> None:
    """Else one user has as many as he likes, and others' names."""
    directory = tmp_path / "beowire-2"
    directory.mkdir(mode=0o700)
    file = write(directory, board_bytes.board())
    for each in (file, directory):
        os.chown(each, 1, 1)
    with kept(file):
        assert boards.find(tmp_path) == []


def test_so_many_are_read_of_a_user(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second = place.with_name(place.name + ".1")
    second.mkdir(mode=0o700)
    monkeypatch.setattr(boards, "_FILES_MAX", 3)
    monkeypatch.setattr(boards, "holder", lambda _: 1)
    for directory in (place, second):
        for number in range(1, 3):
            write(directory, board_bytes.board(), number)
    assert len(boards.find(place.parent)) == 3


def test_names_that_are_no_boards_count(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else who looks goes through all of them in each of a user's directories."""
    second = place.with_name(place.name + ".1")
    second.mkdir(mode=0o700)
    monkeypatch.setattr(boards, "_FILES_MAX", 3)
    monkeypatch.setattr(boards, "holder", lambda _: 1)
    for number in range(3):
        (place / f"a-stranger-{number}").touch()
    write(second, board_bytes.board())
    assert boards.find(place.parent) == []
    (place / "a-stranger-0").unlink()
    assert len(boards.find(place.parent)) == 1


@pytest.mark.parametrize("name", ["beowire-0{}", "beowire-000{}.1"])
def test_a_user_has_one_number(name: str, place: Path) -> None:
    """Else he has as many directories as there are ways to write it."""
    again = place.rename(place.with_name(name.format(os.geteuid())))
    with kept(write(again, board_bytes.board())):
        assert boards.find(place.parent) == []


@pytest.mark.parametrize(
    ("bound", "most", "said"),
    [
        ("_FILES_MAX", 1, f"user {os.geteuid()} has more than 1 names where boards are"),
        ("_BOARDS_MAX", 1, "there are more than 1 boards"),
        ("_ENTRIES_MAX", 0, "{} has more than 0 names"),
    ],
    ids=["of a user", "of all", "of directories"],
)
def test_what_is_left_out_is_said_once(
    bound: str,
    most: int,
    said: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(boards, "holder", lambda _: 1)
    for number in range(2):
        write(place, board_bytes.board(), number)
    assert len(boards.find(place.parent)) == 2
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(boards, bound, most)
    boards._say_left_out.cache_clear()
    boards.find(place.parent)
    boards.find(place.parent)
    line = f"beowire: {said.format(place.parent)}: the others are left out\n"
    assert capsys.readouterr() == ("", line)


def test_damaged_ones_count(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "_BOARDS_MAX", 1)
    monkeypatch.setattr(boards, "holder", lambda _: 1)
    write(place, b"nothing of the kind", 1)
    write(place, board_bytes.board(), 2)
    second = place.with_name(place.name + ".1")
    second.mkdir(mode=0o700)
    write(second, board_bytes.board())
    assert boards.find(place.parent) == []


def test_so_many_are_read_of_all(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "_BOARDS_MAX", 2)
    monkeypatch.setattr(boards, "holder", lambda _: 1)
    for number in range(1, 5):
        write(place, board_bytes.board(), number)
    assert len(boards.find(place.parent)) == 2


def test_own_ones_are_found_among_any_number_of_names(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "_ENTRIES_MAX", 0)
    with kept(write(place, board_bytes.board())):
        assert len(boards.find(place.parent)) == 1


@pytest.mark.parametrize("more", [1, 1 << 30])
def test_a_file_that_is_longer_than_it_says_is_not_read(place: Path, more: int) -> None:
    file = write(place, board_bytes.board())
    os.truncate(file, file.stat().st_size + more)
    with kept(file):
        assert boards.find(place.parent) == []


def test_a_sheet_is_read_again_a_few_times(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes without end does not keep the reader."""
    sheet = bytearray(board_bytes.sheet())
    struct.pack_into("<Q", sheet, 0, 1)
    file = write(place, board_bytes.head() + bytes(sheet) * 2)
    sizes = []
    pread = os.pread

    def counted(file: int, size: int, offset: int) -> bytes:
        sizes.append(size)
        return pread(file, size, offset)

    monkeypatch.setattr(os, "pread", counted)
    with kept(file):
        assert boards.find(place.parent) == []
    assert sizes.count(board_bytes.SHEET_BYTES) <= 8


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


MAPPER = """
import ctypes, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
print(flush=True)
sys.stdin.readline()
ctypes.CDLL(None).mmap(None, ctypes.c_size_t(4096), 1, 1, file, ctypes.c_long(0))
os.close(file)
print(flush=True)
sys.stdin.readline()
"""


@pytest.mark.usefixtures("own_shm")
@pytest.mark.skipif(os.geteuid() != 0, reason="a /dev/shm of the test's own")
def test_what_is_mapped_between_two_looks_stays(tmp_path: Path) -> None:
    """A library opens its segment, maps it and closes it: here after the first of the sweep's two
    looks, whichever that is."""
    mark = tmp_path / "began"
    mark.touch()
    os.utime(mark, (0, 0))
    segment = boards.SHARED_MEMORY / "vader_segment.node1"
    segment.write_bytes(bytes(4096))
    (tmp_path / "first").mkdir()
    command = [sys.executable, "-c", MAPPER, str(segment)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as mapper:
        assert mapper.stdin is not None
        assert mapper.stdout is not None
        mapper.stdout.readline()
        for name in ("grep", "find"):
            real = shutil.which(name)
            script = tmp_path / name
            script.write_text(f'#!/bin/sh\n{real} "$@"\nstatus=$?\n' + AFTER_A_LOOK)
            script.chmod(0o755)
        fifos = {name: tmp_path / name for name in ("looked", "go")}
        for fifo in fifos.values():
            os.mkfifo(fifo)
        variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        variables["PLACE"] = str(tmp_path)
        sweep = ["sh", str(places.package_file("run/sweep.sh")), str(mark)]
        with subprocess.Popen(sweep, env=variables) as sweeping:
            fifos["looked"].read_text()
            mapper.stdin.write(b"\n")
            mapper.stdin.flush()
            mapper.stdout.readline()
            fifos["go"].write_text("\n")
            assert sweeping.wait() == 0
        assert segment.exists()
    segment.unlink()


AFTER_A_LOOK = """
case "$*" in *vader_segment.node1*)
	if [ "$1" != /dev/shm ] && rmdir "$PLACE/first" 2>/dev/null; then
		echo >"$PLACE/looked"
		read -r go <"$PLACE/go"
	fi
esac
exit $status
"""
