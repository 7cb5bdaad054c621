# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The wire between guests: passes each frame of a guest to all others, and may harm it on the way.

Every frame is a datagram on a unix socket. What befalls the n-th frame of a guest depends on the
seed, on the guest and on n alone.
"""

import contextlib
import heapq
import random
import select
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

_FRAME_MAX_BYTES = 65536
_QUEUE_MAX = 2000  # frames under way; more are dropped, as by a switch
_ETHERNET_BYTES = 14  # these stay whole: a switch passes no frame to where it was not sent


@dataclass(frozen=True)
class Faults:
    """What befalls frames: probabilities, a delay for all, and one more up to `jitter` each."""

    loss: float = 0.0
    corruption: float = 0.0
    duplication: float = 0.0
    delay_ns: int = 0
    jitter_ns: int = 0
    seed: int = 1


@dataclass
class Counts:
    """What the wire did, in frames."""

    passed: int = 0
    lost: int = 0
    corrupted: int = 0
    duplicated: int = 0
    overflowed: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{number} {name}" for name, number in vars(self).items())


@dataclass(order=True)
class _Flight:
    """A frame under way, due at this time."""

    due_ns: int
    order: int
    sender: int = field(compare=False)
    frame: bytes = field(compare=False)


def wire_end(wire: Path, number: int) -> Path:
    """The wire's socket for this guest, to which it sends."""
    return wire / f"wire.{number}"


def guest_end(wire: Path, number: int) -> Path:
    """This guest's socket, from which it receives."""
    return wire / f"guest.{number}"


class Wire:
    """A wire of that many guests, with sockets in a directory; it works while it is entered."""

    def __init__(self, directory: Path, guests: int, faults: Faults) -> None:
        self.counts = Counts()
        self._directory = directory
        self._faults = faults
        self._sockets: dict[int, socket.socket] = {}
        self._random = {
            number: random.Random(f"{faults.seed} {number}") for number in range(1, guests + 1)
        }
        self._flights: list[_Flight] = []
        self._order = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "Wire":
        for number in self._random:
            end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            end.bind(str(wire_end(self._directory, number)))
            end.setblocking(False)
            self._sockets[number] = end
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        for end in self._sockets.values():
            end.close()

    def _serve(self) -> None:
        by_end = {end: number for number, end in self._sockets.items()}
        while not self._stop.is_set():
            ready, _, _ = select.select(list(by_end), [], [], self._patience_s())
            for end in ready:
                with contextlib.suppress(BlockingIOError):
                    while len(self._flights) <= _QUEUE_MAX:
                        self._take(by_end[end], end.recv(_FRAME_MAX_BYTES))
                        self._deliver()
            self._deliver()

    def _patience_s(self) -> float:
        """How long to sleep: until the next frame is due, but never long, to notice the end."""
        if not self._flights:
            return 0.05
        return min(0.05, max(0.0, (self._flights[0].due_ns - time.monotonic_ns()) / 1e9))

    def _take(self, sender: int, frame: bytes) -> None:
        """Decides what becomes of a frame. The same numbers are drawn for each."""
        faults, drawn = self._faults, self._random[sender]
        lost, corrupted, duplicated = (drawn.random() for _ in range(3))
        place, bit, late = drawn.random(), drawn.randrange(8), drawn.random()
        if lost < faults.loss:
            self.counts.lost += 1
            return
        if corrupted < faults.corruption and len(frame) > _ETHERNET_BYTES:
            at = _ETHERNET_BYTES + int(place * (len(frame) - _ETHERNET_BYTES))
            frame = frame[:at] + bytes([frame[at] ^ 1 << bit]) + frame[at + 1 :]
            self.counts.corrupted += 1
        due_ns = time.monotonic_ns() + faults.delay_ns + int(late * faults.jitter_ns)
        copies = 1
        if duplicated < faults.duplication:
            self.counts.duplicated += 1
            copies = 2
        for _ in range(copies):
            self._order += 1
            heapq.heappush(self._flights, _Flight(due_ns, self._order, sender, frame))

    def _deliver(self) -> None:
        """Gives out all frames that are due."""
        while self._flights and self._flights[0].due_ns <= time.monotonic_ns():
            flight = heapq.heappop(self._flights)
            for number, end in self._sockets.items():
                if number != flight.sender:
                    self._give(end, number, flight.frame)

    def _give(self, end: socket.socket, number: int, frame: bytes) -> None:
        try:
            end.sendto(frame, str(guest_end(self._directory, number)))
            self.counts.passed += 1
        except BlockingIOError:  # it does not keep up
            self.counts.overflowed += 1
        except (ConnectionError, FileNotFoundError):
            pass  # it is not there yet, or has ended
