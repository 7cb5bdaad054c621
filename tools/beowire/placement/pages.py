# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Pages of another process, asked for and moved by move_pages(2)."""

import ctypes
import errno
import os
import platform

from beowire.errors import BeowireError

BATCH = 4096
"""Pages of one call."""
_MOVE = 1 << 1  # MPOL_MF_MOVE of linux/mempolicy.h: not those that other processes map as well
_NUMBER = {"x86_64": 279, "aarch64": 239, "riscv64": 239}.get(platform.machine())


def gone(pid: int) -> BeowireError:
    return BeowireError(f"There is no process {pid}, or it has just ended.", "ps -e shows all.")


def where(pid: int, addresses: list[int]) -> list[int]:
    """The node of each page, or a negative errno: ENOENT where there is none."""
    return _call(pid, addresses, None)


def move(pid: int, addresses: list[int], node: int) -> list[int]:
    """Moves pages to a node; where each is then. Of a call that did not move all, the kernel tells
    nothing that holds for each, so it is asked again."""
    _call(pid, addresses, node)
    return where(pid, addresses)


def _call(pid: int, addresses: list[int], node: int | None) -> list[int]:
    count = len(addresses)
    if _NUMBER is None:
        raise BeowireError(f"How pages are moved on {platform.machine()} is not known here.")
    if count == 0:
        return []
    places = (ctypes.c_void_p * count)(*addresses)
    status = (ctypes.c_int * count)(*[-errno.EBUSY] * count)
    nodes = None if node is None else (ctypes.c_int * count)(*[node] * count)
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.syscall(
        ctypes.c_long(_NUMBER),
        ctypes.c_long(pid),
        ctypes.c_ulong(count),
        places,
        nodes,
        status,
        ctypes.c_long(_MOVE),
    )
    if done < 0:  # a positive number is that of pages that did not move, told one by one
        raise _refused(pid, node, ctypes.get_errno())
    return list(status)


def _refused(pid: int, node: int | None, error: int) -> BeowireError:
    if error in (errno.ESRCH, errno.EINVAL):  # the latter: it is ending, and has no memory
        return gone(pid)
    if error == errno.EACCES:
        return BeowireError(
            f"Process {pid} may have no memory of node {node} (its cpuset).",
            "See Mems_allowed_list in its /proc/PID/status.",
        )
    if error == errno.EPERM:
        return BeowireError(
            f"The kernel does not let this user move pages of process {pid}.",
            "Run this as its user, or as root; containers may forbid move_pages(2).",
        )
    return BeowireError(f"Pages of process {pid} cannot be moved: {os.strerror(error)}.")
