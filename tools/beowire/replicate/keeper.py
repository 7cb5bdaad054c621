# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Keeps the copies of a command's processes, so that those of one node share them.

A request is one packet: G (get) or P (put, with a descriptor) and the copy's name; the answer is Y
with the copy that is kept by that name, or N. Only processes of the same user are served, and only
copies that nobody can change any more are kept.
"""

import contextlib
import fcntl
import os
import selectors
import socket
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

SEALED = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
COPIES_MAX = 512
CALLERS_MAX = 256
NAME_MAX = 8192


class Keeper:
    """The copies by name. `socket` is where processes ask for them."""

    def __init__(self, path: Path) -> None:
        self.copies: dict[bytes, int] = {}
        self.asked = 0
        self.given = 0
        self._selector = selectors.DefaultSelector()
        self._callers = 0
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.setblocking(False)
        self._listener.bind(str(path))
        self._listener.listen(CALLERS_MAX)
        self._selector.register(self._listener, selectors.EVENT_READ)

    def serve(self, child: int) -> None:
        """Until the process ends, of which this is a descriptor."""
        self._selector.register(child, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fd == child:
                    return
                if key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket):
                    self._answer(key.fileobj)

    def close(self) -> None:
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        for each in self.copies.values():
            os.close(each)
        self.copies.clear()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            caller, _ = self._listener.accept()
            told = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            if struct.unpack("3i", told)[1] != os.geteuid() or self._callers >= CALLERS_MAX:
                caller.close()
                return
            caller.setblocking(False)
            self._callers += 1
            self._selector.register(caller, selectors.EVENT_READ)

    def _answer(self, caller: socket.socket) -> None:
        try:
            said, passed, flags, _ = socket.recv_fds(caller, NAME_MAX, 1)
        except OSError:
            said, passed, flags = b"", [], 0
        for each in passed:
            os.set_inheritable(each, False)
        whole = not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC)
        if said and whole:
            if said[:1] == b"P" and passed:
                self._keep(said[1:], passed.pop())
            self._give(caller, self.copies.get(said[1:]))
        for each in passed:
            os.close(each)
        if not said or not whole:
            self._selector.unregister(caller)
            self._callers -= 1
            caller.close()

    def _keep(self, name: bytes, copy: int) -> None:
        """The first one of a name stays."""
        if name in self.copies or len(self.copies) >= COPIES_MAX or not sealed(copy):
            os.close(copy)
            return
        self.copies[name] = copy

    def _give(self, caller: socket.socket, copy: int | None) -> None:
        self.asked += 1
        with contextlib.suppress(OSError):
            if copy is None:
                caller.send(b"N")
                return
            socket.send_fds(caller, [b"Y"], [copy])
            self.given += 1


def sealed(copy: int) -> bool:
    """Is it memory that nobody can change any more?"""
    try:
        return fcntl.fcntl(copy, fcntl.F_GET_SEALS) & SEALED == SEALED
    except OSError:
        return False


@contextlib.contextmanager
def keeping() -> Iterator[tuple[Keeper, Path]]:
    """A keeper and the path of its socket, in a directory of this user's alone."""
    with tempfile.TemporaryDirectory(prefix="beowire-replicate-") as directory:
        path = Path(directory) / "keeper"
        keeper = Keeper(path)
        try:
            yield keeper, path
        finally:
            keeper.close()
