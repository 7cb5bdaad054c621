# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Network and host-name namespaces as labs make and enter them; their processes end for certain."""

import contextlib
import errno
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import beowire_cli
import pytest
from beowire import namespaces

needs_namespaces = pytest.mark.skipif(
    bool(beowire_cli.NO_NAMESPACES), reason=f"namespaces: {beowire_cli.NO_NAMESPACES}"
)
FOR_EVER = ["sleep", "1000000"]
LARGE = """
memory = bytearray(b"x") * (512 << 20)
print(flush=True)
import signal
signal.pause()
"""


@pytest.fixture
def network() -> Iterator[Path]:
    """A namespace with a host name of its own, pinned where `ip netns` finds it."""
    name = f"bwtest-{secrets.token_hex(4)}"
    path, host = namespaces.NETNS_DIR / name, namespaces.NETNS_DIR / f"{name}-uts"
    namespaces.create(path, host, "a-host")
    try:
        yield path
    finally:
        namespaces.kill(lambda: namespaces.processes([path]))
        namespaces.remove(path)
        namespaces.remove(host)


def host_of(network: Path) -> Path:
    """Where its host-name namespace is pinned."""
    return network.with_name(f"{network.name}-uts")


@contextlib.contextmanager
def living(network: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process in that namespace."""
    enter = ["nsenter", f"--net={network}", f"--uts={host_of(network)}", "--"]
    process = subprocess.Popen([*enter, *command], stdout=subprocess.PIPE)
    try:
        until = time.monotonic() + 60
        while namespaces.network_of(process.pid) != namespaces.inode(network):
            assert time.monotonic() < until
            time.sleep(0.005)
        yield process
    finally:
        process.kill()
        process.wait()


def interfaces() -> list[str]:
    return [name for _, name in socket.if_nameindex()]


@needs_namespaces
def test_a_new_one_has_nothing_and_a_name(network: Path) -> None:
    assert namespaces.within(network, interfaces) == ["lo"]
    enter = ["nsenter", f"--uts={host_of(network)}", "--", "hostname"]
    assert subprocess.check_output(enter, text=True) == "a-host\n"
    assert socket.gethostname() != "a-host"
    assert str(network.name) in subprocess.check_output(["ip", "netns"], text=True)


@needs_namespaces
def test_a_path_that_is_taken_stays_as_it_was(network: Path) -> None:
    before = namespaces.inode(network)
    with pytest.raises(FileExistsError):
        namespaces.create(network, None, "other")
    assert namespaces.inode(network) == before is not None


@needs_namespaces
def test_half_of_one_is_undone(network: Path) -> None:
    """The second path is taken: the first one is not left behind."""
    other = network.with_name(f"{network.name}-more")
    with pytest.raises(FileExistsError):
        namespaces.create(other, host_of(network), "other")
    assert not other.exists()
    assert namespaces.inode(network)


@needs_namespaces
def test_within_is_for_the_function_alone(network: Path) -> None:
    """Its result, or what it raises, comes out; who called stays where it is."""
    mine = namespaces.network_of(os.getpid())
    there = namespaces.within(network, lambda: Path("/proc/thread-self/ns/net").stat().st_ino)
    assert there == namespaces.inode(network) != mine
    assert Path("/proc/thread-self/ns/net").stat().st_ino == mine

    def fails() -> None:
        raise KeyError("there")

    with pytest.raises(KeyError, match="there"):
        namespaces.within(network, fails)
    with pytest.raises(OSError, match="setns") as error:
        namespaces.within(Path("/proc/self/status"), interfaces)
    assert error.value.errno == errno.EINVAL
    held = Path("/proc/self/fd").iterdir()
    assert not [fd for fd in held if os.path.realpath(fd) == str(network)]


@needs_namespaces
def test_one_that_is_removed_is_gone(network: Path) -> None:
    assert namespaces.inode(network)
    namespaces.remove(network)
    assert not network.exists()
    assert namespaces.inode(network) is None
    assert namespaces.processes([network]) == []
    namespaces.remove(network)
    mounts = Path("/proc/self/mountinfo").read_text()
    assert f"{network} " not in mounts


def test_a_file_that_is_no_namespace_has_no_processes(tmp_path: Path) -> None:
    """Whatever its inode is: it is of another file system."""
    file = tmp_path / "file"
    file.touch()
    assert namespaces.inode(file) is None
    assert namespaces.inode(tmp_path / "missing") is None
    assert namespaces.processes([file, tmp_path / "missing"]) == []


@needs_namespaces
def test_its_processes_are_found_and_no_others(network: Path) -> None:
    with living(network, *FOR_EVER) as one, living(network, *FOR_EVER) as two:
        assert sorted(namespaces.processes([network])) == sorted([one.pid, two.pid])
        assert one.pid in namespaces.other_processes()
        assert os.getpid() not in namespaces.other_processes()
    assert namespaces.processes([network]) == []
    assert namespaces.network_of(one.pid) is None


@needs_namespaces
def test_the_caller_is_none_of_its_processes(network: Path) -> None:
    """Also where it lives in that namespace: it would kill itself."""
    script = f"""
from pathlib import Path
from beowire import namespaces
print(namespaces.processes([Path({str(network)!r})]))
"""
    with living(network, *FOR_EVER) as one:
        enter = ["nsenter", f"--net={network}", "--", sys.executable, "-c", script]
        assert subprocess.check_output(enter, text=True) == f"[{one.pid}]\n"


@needs_namespaces
def test_killed_ones_have_ended(network: Path) -> None:
    """Those that ignore what can be ignored as well; afterwards none of them holds anything."""
    ignore = "trap '' TERM INT HUP; echo ready; while :; do sleep 1; done"
    with living(network, "sh", "-c", ignore) as one, living(network, *FOR_EVER) as two:
        assert one.stdout
        assert one.stdout.readline() == b"ready\n"
        assert namespaces.kill(lambda: namespaces.processes([network])) == []
        for each in (one, two):
            assert Path(f"/proc/{each.pid}/stat").read_text().rpartition(") ")[2][0] in "ZX"
            assert each.wait() == -signal.SIGKILL


def test_killed_processes_have_closed_their_files() -> None:
    """Nothing lists a process that gives its memory back, which takes a while; its files are still
    open then: what is left behind by a job cannot be told before they are closed."""
    with subprocess.Popen([sys.executable, "-c", LARGE], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"\n"
        listed = [[child.pid]]
        assert namespaces.kill(lambda: listed.pop() if listed else []) == []
        ended = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        assert ended is not None


def test_processes_that_outlive_the_patience_are_told() -> None:
    """In time, and after another look at them."""
    listed: list[int] = []

    def stubborn() -> list[int]:
        listed.append(2**22 + 1)  # the kernel has no such process
        return listed[-1:]

    began = time.monotonic()
    assert namespaces.kill(stubborn, patience_s=0.2) == [2**22 + 1]
    assert 0.2 <= time.monotonic() - began < 30
    assert len(listed) > 1


@needs_namespaces
def test_one_that_is_listed_late_is_killed(network: Path) -> None:
    """A process that is there when the first ones have gone: it is asked again until none is."""
    with living(network, *FOR_EVER) as one, living(network, *FOR_EVER) as two:
        lists = [[one.pid], [two.pid], []]
        assert namespaces.kill(lambda: lists.pop(0) if lists else []) == []
        assert one.wait() == two.wait() == -signal.SIGKILL
