# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A TCP stream between two interfaces of a lab, and what comes in at an interface."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from beowire import namespaces, signals
from beowire.errors import BeowireError
from beowire.lab.lab import Lab
from beowire.topology.topology import End

_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_RWND_LIMITED = 176
"""Offset of tcpi_rwnd_limited, in microseconds, in struct tcp_info (Linux 4.10 and later)."""


@dataclass(frozen=True)
class Transfer:
    """What a transfer took."""

    seconds: float
    held_up_s: float
    """Of them those in which the sender had data and the receiver's window no room, as the kernel
    counts them."""


def rx_bytes(lab: Lab, end: End) -> int:
    """Bytes that have come in at the interface, Ethernet headers included."""

    def read() -> int:
        for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
            name, _, numbers = line.partition(":")
            if name.strip() == end.interface:
                return int(numbers.split()[0])
        raise BeowireError(f"Interface {end} is gone.", "Make the lab again.")

    return namespaces.within(lab.namespace_path(end.device), read)


def transfer(lab: Lab, sender: End, receiver: End, size: int, limit_s: float) -> Transfer:
    """What it takes until so many bytes have been sent and read, with the kernel's own buffers. It
    fails when they take longer than the limit."""
    took_s = held_up_s = 0.0
    stream, sink = _connected(lab, sender, receiver, 0)
    with stream, sink:
        began_s = time.monotonic()
        stream.settimeout(limit_s)
        sink.settimeout(limit_s)

        def pump() -> None:
            block = bytes(1 << 16)
            with contextlib.suppress(OSError):
                for sent in range(0, size, len(block)):
                    stream.sendall(block[: size - sent])

        thread = threading.Thread(target=pump)
        with signals.uninterrupted():
            thread.start()
        try:
            left = size
            while left and (piece := sink.recv(min(left, 1 << 20))):
                left -= len(piece)
                if time.monotonic() - began_s > limit_s:
                    break
            took_s = time.monotonic() - began_s
            # The kernel counts in ticks of its clock, 1 to 10 ms: of a short transfer too many.
            held_up_s = min(_held_up_s(stream), took_s)
        except TimeoutError:
            pass
        finally:
            for each in (sink, stream):
                with contextlib.suppress(OSError):  # the other one's end may have ended it
                    each.shutdown(socket.SHUT_RDWR)
            thread.join()
        if left:
            raise BeowireError(f"A transfer of {size:,} bytes did not end in {limit_s:.0f} s.")
        return Transfer(took_s, held_up_s)


def _held_up_s(stream: socket.socket) -> float:
    """How long the receiver's window has held up this sender."""
    told = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RWND_LIMITED + 8)
    if len(told) < _RWND_LIMITED + 8:
        raise BeowireError("This kernel does not tell what held up a TCP sender.")
    microseconds: int = struct.unpack_from("Q", told, _RWND_LIMITED)[0]
    return microseconds / 1e6


def _connected(
    lab: Lab, sender: End, receiver: End, buffer_bytes: int
) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection, the receiver's with this buffer, or what the kernel chooses."""
    address = lab.addresses[receiver.device][receiver.interface].partition("/")[0]
    listener = namespaces.within(
        lab.namespace_path(receiver.device), partial(socket.create_server, (address, 0))
    )
    with listener:
        if buffer_bytes:
            listener.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, buffer_bytes)
        connect = partial(socket.create_connection, listener.getsockname())
        stream = namespaces.within(lab.namespace_path(sender.device), connect)
        return stream, listener.accept()[0]


@contextlib.contextmanager
def running(
    lab: Lab, sender: End, receiver: End, *, control: str = "", buffer_bytes: int = 0
) -> Iterator[None]:
    """Sends as fast as it can until the end of the block, with this congestion control and these
    buffers, or those that the kernel chooses."""
    stream, sink = _connected(lab, sender, receiver, buffer_bytes)
    ending = threading.Event()

    def pump() -> None:
        block = bytes(1 << 16)
        with contextlib.suppress(OSError):
            while not ending.is_set():
                stream.send(block)

    def drain() -> None:
        with contextlib.suppress(OSError):
            while sink.recv(1 << 20):
                pass

    threads = [threading.Thread(target=each) for each in (drain, pump)]
    with stream, sink:
        if control:
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        if buffer_bytes:
            stream.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, buffer_bytes)
        stream.settimeout(0.2)
        with signals.uninterrupted():
            for each in threads:
                each.start()
        try:
            yield
        finally:
            ending.set()
            sink.shutdown(socket.SHUT_RDWR)
            for each in threads:
                each.join()
