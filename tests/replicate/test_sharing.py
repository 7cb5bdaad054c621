# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes of a node share copies through the keeper, and believe nothing that it says."""

import fcntl
import os
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from beowire.replicate import command, keeper
from keeping import serving
from replicated import SOON_S, of, run, subject, waiting


def inodes(pid: int) -> dict[str, int]:
    """Of the copies that a process executes."""
    return {
        each.name: each.inode
        for each in of(pid)
        if each.name.startswith("/memfd:beowire-node") and "x" in each.rights
    }


def test_two_processes_execute_the_same_memory() -> None:
    with serving() as (_, path):
        words = command.line([subject(), "wait"], "small", BEOWIRE_REPLICATE_KEEPER=str(path))
        with waiting(words) as one, waiting(words) as other:
            first, second = inodes(one.pid), inodes(other.pid)
    same = [name for name in first if re.search("subject|libc", name)]
    assert len(same) == 2
    assert all(first[name] == second[name] for name in same)


def test_without_a_keeper_each_has_its_own() -> None:
    words = command.line([subject(), "wait"], "small", BEOWIRE_REPLICATE_KEEPER="/nowhere")
    with waiting(words) as one, waiting(words) as other:
        first, second = inodes(one.pid), inodes(other.pid)
    assert first
    assert not set(first.values()) & set(second.values())


def sealed(size: int, text: bytes = b"\xcc") -> int:
    made = os.memfd_create("lie", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(made, size)
    os.pwrite(made, text * 64, 0x1000)
    fcntl.fcntl(made, fcntl.F_ADD_SEALS, keeper.SEALED)
    return made


def lies(said: bytes) -> list[int]:
    """A copy of the right size, sealed, with other bytes in it. (The size is the name's second.)"""
    return [sealed(int(said.split()[1]))]


def of_no_size(_: bytes) -> list[int]:
    return [sealed(0x2000)]


def not_sealed(said: bytes) -> list[int]:
    made = os.memfd_create("open", os.MFD_CLOEXEC)
    os.ftruncate(made, int(said.split()[1]))
    return [made]


def a_pipe(_: bytes) -> list[int]:
    return list(os.pipe())[:1]


def nothing(_: bytes) -> list[int]:
    return []


@pytest.mark.parametrize("gives", [lies, of_no_size, not_sealed, a_pipe, nothing])
def test_a_keeper_that_lies_changes_nothing(
    tmp_path: Path, gives: Callable[[bytes], list[int]]
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(tmp_path / "keeper"))
        listener.listen()
        listener.settimeout(SOON_S)

        def lie() -> None:
            caller, _ = listener.accept()
            with caller:
                while said := caller.recv(keeper.NAME_MAX):
                    passed = gives(said)
                    socket.send_fds(caller, [b"Y"], passed)
                    for each in passed:
                        os.close(each)

        thread = threading.Thread(target=lie)
        thread.start()
        done = run([subject(), "5"], BEOWIRE_REPLICATE_KEEPER=str(tmp_path / "keeper"))
        thread.join()
    assert done.returncode == 5, done.stderr
    assert done.stdout.startswith("4 ")
