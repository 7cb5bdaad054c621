# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Serves the text for Prometheus by HTTP (RFC 9112), on a Unix socket or an address of loopback.

Whoever may connect may read what it tells, and nothing else: one path, no arguments, no body, an
answer a connection. Connections are counted, and have few seconds and bytes for a request.
"""

import asyncio
import contextlib
import ipaddress
import os
import signal
import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from beowire.errors import BeowireError

PATH = "/metrics"
CONNECTIONS = 32
"""At one time; more are closed at once."""
REQUEST_BYTES = 8192
REQUEST_S = 5.0
"""For the whole request, and again for the peer to take the answer."""
AGE_S = 1.0
"""What was told is told again for so long: a look takes time of the processor."""
_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MODE = 0o660


@contextlib.contextmanager
def listening(address: str) -> Iterator[socket.socket]:
    """A socket at the path of a Unix socket, from / on, or at an address of loopback, HOST:PORT."""
    if not address.startswith("/"):
        with _loopback(address) as listener:
            yield listener
        return
    path = Path(address)
    with socket.socket(socket.AF_UNIX) as listener:
        _bind(listener, path)
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


def _loopback(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    try:
        told = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
        number = int(port)
        usable = told.is_loopback and 0 <= number < 65536
    except ValueError:
        usable = False
    if not usable:
        raise BeowireError(
            f"--serve {address}: that is no address of this node alone.",
            "Give 127.0.0.1:PORT, [::1]:PORT, or the path of a Unix socket, from / on. For others "
            "to reach it, put a server in front that asks who they are.",
        )
    try:
        return socket.create_server(
            (str(told), number), family=socket.AF_INET6 if told.version == 6 else socket.AF_INET
        )
    except OSError as error:
        raise _unusable(address, error) from error


def _bind(listener: socket.socket, path: Path) -> None:
    """A socket that nobody answers at any more gives way; anything else stays."""
    try:
        if stat.S_ISSOCK(path.lstat().st_mode) and not _answers(path):
            path.unlink()
    except FileNotFoundError:
        pass
    old = os.umask(0o777 & ~_MODE)
    try:
        listener.bind(str(path))
        listener.listen(CONNECTIONS)
    except OSError as error:
        raise _unusable(str(path), error) from error
    finally:
        os.umask(old)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as caller:
        try:
            caller.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            pass
        return True


def _unusable(address: str, error: OSError) -> BeowireError:
    return BeowireError(f"--serve {address}: {error.strerror or error}.", "Name another address.")


class Server:
    """Answers with the text that `look` makes, which may take a while."""

    def __init__(self, look: Callable[[], str]) -> None:
        self._look = look
        self._lock = asyncio.Lock()
        self._text = b""
        self._told_at = float("-inf")
        self._open = 0

    async def serve(self, listener: socket.socket) -> None:
        """Until a signal ends it."""
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        listener.setblocking(False)
        unix = listener.family == socket.AF_UNIX
        start = asyncio.start_unix_server if unix else asyncio.start_server
        server = await start(self._connection, sock=listener, limit=REQUEST_BYTES)
        async with server:
            await ended.wait()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        writer.transport.set_write_buffer_limits(0)  # what is drained has been taken
        try:
            if self._open <= CONNECTIONS:
                async with asyncio.timeout(REQUEST_S):
                    request = await reader.readuntil(b"\r\n\r\n")
                writer.write(await self._answer(request))
                async with asyncio.timeout(REQUEST_S):
                    await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            writer.transport.abort()  # who asks badly, or takes nothing, is not answered
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, request: bytes) -> bytes:
        words = request.partition(b"\r\n")[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _response("400 Bad Request", b"")
        if words[0] != b"GET":
            return _response("405 Method Not Allowed", b"", "Allow: GET\r\n")
        if words[1] != PATH.encode():
            return _response("404 Not Found", b"")
        try:
            return _response("200 OK", await self._current())
        except BeowireError:
            return _response("503 Service Unavailable", b"")

    async def _current(self) -> bytes:
        """One look at a time, for all who ask meanwhile."""
        async with self._lock:
            if time.monotonic() - self._told_at > AGE_S:
                self._text = (await asyncio.to_thread(self._look)).encode()
                self._told_at = time.monotonic()
            return self._text


def _response(status: str, body: bytes, more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {_TYPE}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}{more}Connection: close\r\n\r\n".encode() + body
