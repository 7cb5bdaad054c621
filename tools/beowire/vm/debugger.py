# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A guest's debugger: stops it at addresses, and has QEMU write down what it executes in between.

QEMU speaks the remote protocol of gdb ("Remote Serial Protocol" in gdb's manual) on a socket; its
packet qRcmd takes the commands of QEMU's monitor.
"""

import re
import socket
import time
from array import array
from pathlib import Path
from types import TracebackType

from beowire.errors import BeowireError

_START_LIMIT_S = 30.0
_ANSWER_LIMIT_S = 600.0
_EXECUTED = re.compile(r"^Trace \d+: 0x[0-9a-f]+ \[[0-9a-f]+/([0-9a-f]+)/")
_NOT_EXECUTED = re.compile(r"^Stopped execution of TB chain before 0x[0-9a-f]+ \[")


class Debugger:
    """The connection to a guest that was started stopped."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_ANSWER_LIMIT_S)
        self._read = b""
        until = time.monotonic() + _START_LIMIT_S
        while True:
            try:
                self._socket.connect(str(path))
                return
            except OSError as error:
                if time.monotonic() > until:
                    self._socket.close()
                    raise BeowireError(f"QEMU's debugger does not answer: {error}") from error
                time.sleep(0.05)

    def __enter__(self) -> "Debugger":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def run_to(self, address: int) -> bool:
        """Lets the guest run until it is about to execute this address; false: it ended before."""
        self._ask(f"Z0,{address:x},1")
        self._send("c")
        stopped = self._receive()
        if stopped.startswith("W"):
            return False
        if not stopped.startswith("T05"):
            raise BeowireError(f"The guest stopped where it should not ({stopped}).")
        self._ask(f"z0,{address:x},1")
        return True

    def executed(self, until: int, log: Path) -> "array[int]":
        """The address of each instruction that is executed before the one at `until`.

        `log` is a path where a file may be made for the time being.
        """
        self._monitor(f"logfile {log}")
        try:
            self._log_until(until)
            self._monitor("logfile /dev/null")
            return addresses(log)
        finally:
            log.unlink(missing_ok=True)

    def _log_until(self, address: int) -> None:
        self._monitor("singlestep on")  # each instruction by itself
        self._monitor("log exec,nochain")
        self.run_to(address)
        self._monitor("log none")
        self._monitor("singlestep off")

    def _monitor(self, command: str) -> None:
        self._send("qRcmd," + command.encode().hex())
        told = ""
        while (answer := self._receive()) != "OK":
            if not answer.startswith("O"):
                raise BeowireError(f"QEMU's monitor refuses {command!r}: {answer}")
            told += bytes.fromhex(answer[1:]).decode()
        if told.strip():
            raise BeowireError(f"QEMU's monitor refuses {command!r}: {told.strip()}")

    def _ask(self, packet: str) -> None:
        self._send(packet)
        if (answer := self._receive()) != "OK":
            raise BeowireError(f"QEMU's debugger refuses {packet!r}: {answer or 'unknown'}")

    def _send(self, packet: str) -> None:
        self._socket.sendall(f"${packet}#{sum(packet.encode()) & 255:02x}".encode())

    def _receive(self) -> str:
        """The next packet, which is acknowledged; "W" also when the guest ended without a word."""
        while (found := re.search(rb"\$([^#]*)#..", self._read)) is None:
            try:
                more = self._socket.recv(65536)
            except ConnectionResetError:
                more = b""
            if not more:
                return "W"
            self._read += more
        self._read = self._read[found.end() :]
        self._socket.sendall(b"+")
        return found[1].decode()


def addresses(log: Path) -> "array[int]":
    """The addresses in a log of QEMU's (-d exec), each instruction a line."""
    found = array("Q")
    with log.open(errors="replace") as lines:
        for line in lines:
            if executed := _EXECUTED.match(line):
                found.append(int(executed[1], 16))
            elif _NOT_EXECUTED.match(line):
                found.pop()
    return found
