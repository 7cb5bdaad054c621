# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A /dev/shm of the test's own, so that what lies there afterwards was left by nobody else."""

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from beowire import namespaces

_CLONE_NEWNS = 0x0002_0000
_MS_PRIVATE = 1 << 18
_SHM = b"/dev/shm"

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def own_shared_memory() -> Iterator[None]:
    """This thread, and the processes that it starts meanwhile, see an empty /dev/shm of their own.
    Nothing else about their mounts changes, and namespaces of labs are seen on both sides. Without
    root nothing can be mounted: then all share the machine's."""
    if os.geteuid() != 0:
        yield
        return
    namespaces.share_directory(namespaces.NETNS_DIR)
    here = Path.cwd()
    before = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY)
    try:
        _check(_libc.unshare(_CLONE_NEWNS))
        try:
            _check(_libc.mount(None, _SHM, None, ctypes.c_ulong(_MS_PRIVATE), None))
            _check(_libc.mount(b"tmpfs", _SHM, b"tmpfs", ctypes.c_ulong(0), None))
            yield
        finally:
            _check(_libc.setns(before, _CLONE_NEWNS))
            os.chdir(here)
    finally:
        os.close(before)
