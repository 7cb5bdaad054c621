# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Named network and host-name namespaces, by the system calls themselves.

A namespace lives as long as something refers to it; here that is a bind mount of its file
(ip-netns(8) does the same, so `ip netns` sees these too). A thread may enter a namespace on
its own, hence `within`: it runs a function in a short-lived thread inside the namespace.
"""

import contextlib
import ctypes
import errno
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from beowire import signals

T = TypeVar("T")

NETNS_DIR = Path("/run/netns")

_CLONE_NEWNS = 0x0002_0000
_CLONE_NEWUTS = 0x0400_0000
_CLONE_NEWNET = 0x4000_0000
_MS_BIND = 0x1000
_MS_REC = 0x4000
_MS_SHARED = 1 << 20
_MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _mount(source: str, target: str, flags: int) -> None:
    _check(
        _libc.mount(source.encode(), target.encode(), b"none", ctypes.c_ulong(flags), None),
        f"mount {target}",
    )


def share_directory(directory: Path) -> None:
    """Makes `directory` a shared mount, so that namespace files mounted in it are seen alike
    in every mount namespace (and so are their removals)."""
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    try:
        _mount("", str(directory), _MS_SHARED | _MS_REC)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        _mount(str(directory), str(directory), _MS_BIND | _MS_REC)
        _mount("", str(directory), _MS_SHARED | _MS_REC)


@signals.uninterrupted()
def create(network: Path, host: Path | None, host_name: str) -> None:
    """Creates a network namespace pinned at `network` and, where `host` is given, a host-name
    namespace pinned there. Both paths must be new. Undoes itself on failure."""
    share_directory(NETNS_DIR)
    flags = _CLONE_NEWNET | (_CLONE_NEWUTS if host else 0)
    ready_read, ready_write = os.pipe()
    leave_read, leave_write = os.pipe()
    child = os.fork()
    if child == 0:
        _hold_new_namespaces(flags, host_name, ready_write, leave_read, leave_write)
    os.close(ready_write)
    os.close(leave_read)
    pinned: list[Path] = []
    try:
        code = os.read(ready_read, 16)
        if code != b"0":
            number = int(code or b"5")
            raise OSError(number, f"unshare: {os.strerror(number)}")
        for kind, path in (("net", network), ("uts", host)):
            if path is not None:
                path.touch(mode=0o444, exist_ok=False)
                pinned.append(path)
                _mount(f"/proc/{child}/ns/{kind}", str(path), _MS_BIND)
    except BaseException:
        for path in pinned:
            remove(path)
        raise
    finally:
        os.close(ready_read)
        os.close(leave_write)
        os.waitpid(child, 0)


def _hold_new_namespaces(
    flags: int, host_name: str, ready_write: int, leave_read: int, leave_write: int
) -> None:
    """The child's part of `create`: makes the namespaces and holds them until they are pinned."""
    try:
        os.close(leave_write)
        answer = b"0"
        try:
            _check(_libc.unshare(flags), "unshare")
            if flags & _CLONE_NEWUTS:
                socket.sethostname(host_name)
        except OSError as error:
            answer = str(error.errno).encode()
        os.write(ready_write, answer)
        os.read(leave_read, 1)
    finally:
        os._exit(0)


def remove(path: Path) -> None:
    """Unpins the namespace at `path`; it dies with its last process. Absence is no error."""
    if not path.exists():
        return
    with contextlib.suppress(OSError):
        _check(_libc.umount2(str(path).encode(), _MNT_DETACH), "umount")
    path.unlink(missing_ok=True)


def within(network: Path, function: Callable[[], T]) -> T:
    """The result of `function`, called in the network namespace pinned at `network`.

    Sockets opened there stay in that namespace. In /proc use `thread-self`, not `self`.
    """
    result: list[T] = []
    failure: list[BaseException] = []

    def enter() -> None:
        try:
            descriptor = os.open(network, os.O_RDONLY)
            try:
                _check(_libc.setns(descriptor, _CLONE_NEWNET), f"setns {network}")
            finally:
                os.close(descriptor)
            result.append(function())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=enter)
    with signals.uninterrupted():
        thread.start()
        thread.join()
    if failure:
        raise failure[0]
    return result[0]


@signals.uninterrupted()
def refusal() -> str | None:
    """Why this process cannot make the nodes of a lab, or None when it can."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        answer = ""
        try:
            _check(_libc.unshare(_CLONE_NEWNET | _CLONE_NEWUTS | _CLONE_NEWNS), "namespaces")
            socket.sethostname("probe")
            try:
                socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
            except OSError as error:
                answer = f"raw packet sockets are refused ({error.strerror})"
        except OSError as error:
            answer = f"the kernel refuses namespaces ({error.strerror})"
        finally:
            os.write(write_end, answer.encode())
            os._exit(0)
    os.close(write_end)
    text = b""
    while chunk := os.read(read_end, 4096):
        text += chunk
    os.close(read_end)
    os.waitpid(child, 0)
    return text.decode() or None


def inode(path: Path) -> int | None:
    """The inode by which /proc names the namespace pinned at `path`; None when not pinned."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino if status.st_dev == Path("/proc/self/ns/net").stat().st_dev else None


def network_of(pid: int) -> int | None:
    """The inode of a process's network namespace; None when it does not run."""
    try:
        return int(str(Path(f"/proc/{pid}/ns/net").readlink())[len("net:[") : -1])
    except OSError:
        return None


def other_processes() -> list[int]:
    """All processes of the machine, this one excepted."""
    entries = (entry.name for entry in Path("/proc").iterdir())
    return [int(name) for name in entries if name.isdigit() and int(name) != os.getpid()]


def processes(networks: Iterable[Path]) -> list[int]:
    """The processes that live in any of these network namespaces, this one excepted."""
    wanted = {f"net:[{number}]" for path in networks if (number := inode(path)) is not None}
    if not wanted:
        return []
    found = []
    for pid in other_processes():
        with contextlib.suppress(OSError):
            if str(Path(f"/proc/{pid}/ns/net").readlink()) in wanted:
                found.append(pid)
    return found


def kill(pids: Callable[[], list[int]], patience_s: float = 60.0) -> list[int]:
    """Kills what `pids` lists until it lists nothing and all that were killed have closed their
    files: a process that is ending has no memory any more by which it could be listed, and closes
    them after that. Returns those that are still listed after `patience_s`."""
    deadline = time.monotonic() + patience_s
    ending: set[int] = set()
    while (living := pids()) or ending:
        for pid in living:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ending = {pid for pid in ending.union(living) if not _has_ended(pid)}
        if time.monotonic() >= deadline:
            break
        time.sleep(0.005)
    return living


def _has_ended(pid: int) -> bool:
    """Whether it is gone, or waits for nothing but to be asked for its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] in "ZX"
    except OSError:
        return True
