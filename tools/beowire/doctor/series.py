# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Measurements between two nodes that take turns: each round does all of them once.

Whatever disturbs the nodes in a round disturbs all of its measurements; so numbers are compared
round by round.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from beowire.doctor.draws import LEAST_ROUNDS
from beowire.doctor.pair import Pair, Server, client
from beowire.errors import BeowireError

Transport = Literal["tcp", "packet", "beowire"]
Wait = Literal["block", "spin"]
Mode = Literal["latency", "send", "receive", "rate", "bandwidth"]

TRANSPORTS: tuple[Transport, ...] = ("tcp", "packet", "beowire")
WAITS: tuple[Wait, ...] = ("block", "spin")
NAMES = {"tcp": "TCP", "packet": "bare frames", "beowire": "Beowire"}

_FIRST = 8
"""Messages by which is found how many fill a turn."""
_FIRST_SHORT = 1024
"""The same at the highest rate of short ones, where an answer must not matter."""
_FIRST_BYTES = 1 << 20
"""The same of bulk."""
_MOST = 20_000
_WINDOW_BYTES = 4 << 20
"""Under way before an answer is waited for: many times what a path holds."""
_WINDOW_MOST = 256
_RESTS = 3
"""Round trips that a message takes when its calls are timed: twice one is waited between them."""
_LIMIT_S = 30.0
"""For a turn. What does not end by then does not work: a bare frame that is lost, for one."""


@dataclass(frozen=True)
class Turn:
    """One run of the ping-pong: these transports in turn, one mode, one size."""

    mode: Mode
    wait: Wait
    size: int
    transports: tuple[Transport, ...] = ("tcp",)
    back: bool = False
    """From the peer to here."""
    buffer: int = 0
    """TCP's receive buffers, in bytes; 0: the kernel's choice."""
    window: int = 0
    """Messages before an answer, for rate and bandwidth; 0: as many as fill a long path."""

    @property
    def timed(self) -> bool:
        """Its numbers are times of single messages; else messages or bytes are counted."""
        return self.mode in ("latency", "send", "receive")

    def text(self) -> str:
        way = " to here" if self.back else ""
        return f"{self.mode} of {self.size:,} bytes{way}, {self.wait}"


@dataclass(frozen=True)
class Key:
    """What a series is of."""

    transport: Transport
    mode: Mode
    wait: Wait
    size: int
    back: bool = False
    buffer: int = 0


@dataclass
class Series:
    """Numbers by round: seconds for times, else messages or bytes in a second."""

    of: dict[Key, list[float]] = field(default_factory=dict)
    system_call_s: list[float] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    """What could not be measured, and why."""

    def get(
        self, transport: Transport, mode: Mode, wait: Wait, size: int, *, back: bool = False
    ) -> list[float]:
        """A series; empty where it could not be measured."""
        return self.of.get(Key(transport, mode, wait, size, back), [])

    def sizes(self, transport: Transport, mode: Mode, wait: Wait) -> list[int]:
        """The sizes that a mode was measured at, from here and with the kernel's buffers."""
        keys = (key for key in self.of if not key.back and not key.buffer)
        return sorted(
            key.size
            for key in keys
            if (key.transport, key.mode, key.wait) == (transport, mode, wait)
        )


class Measurer:
    """Holds the servers of a pair, and how many messages fill a turn."""

    def __init__(self, pair: Pair, turn_s: float) -> None:
        self.pair = pair
        self.turn_s = turn_s
        self._servers: dict[bool, Server] = {}
        self._counts: dict[Turn, int] = {}
        self.system_call_s = 0.0
        """What a system call took by the latest run."""

    def close(self) -> None:
        for server in self._servers.values():
            server.close()
        self._servers.clear()

    def usable(self, turns: Iterable[Turn], series: Series) -> list[Turn]:
        """The turns, without the transports that do not work between these two (told once)."""
        found = []
        broken: dict[tuple[Transport, bool], str] = {}
        for turn in turns:
            works = []
            for transport in turn.transports:
                if (transport, turn.back) in broken:
                    continue
                try:
                    self._count(turn, transport)
                except BeowireError as error:
                    if error.fix:  # not even the waiting side could be started
                        raise
                    way = f"from {self.pair.peer}" if turn.back else f"to {self.pair.peer}"
                    if transport == "tcp" and not turn.buffer:
                        raise BeowireError(
                            f"A ping-pong over TCP {way} failed: {error.what}",
                            "A firewall may be in the way: it takes two ports.",
                        ) from error
                    if not turn.buffer:
                        broken[transport, turn.back] = error.what
                    what = f"{NAMES[transport]} {way}"
                    if turn.buffer:
                        what += f", receive buffer of {turn.buffer:,} bytes"
                    series.troubles.append(f"{what}: {error.what}")
                else:
                    works.append(transport)
            if not turn.timed:  # each for as long, however slow others are
                found += [_alone(turn, each) for each in works]
            elif works:
                usable = replace(turn, transports=tuple(works))
                self._counts[usable] = min(self._counts[_alone(turn, each)] for each in works)
                found.append(usable)
        return found

    def _count(self, turn: Turn, transport: Transport) -> None:
        """Finds how many messages fill the turn."""
        alone = _alone(turn, transport)
        calls = turn.mode in ("send", "receive")
        tried = replace(alone, mode="latency") if calls else alone
        first = _first(turn)
        self._counts[tried] = self._counts[alone] = first
        key, value = next(iter(self.run(tried).items()))
        if calls:
            self.run(alone)
            each_s = 2 * value * _RESTS
        elif turn.mode == "latency":
            each_s = 2 * value
        else:
            each_s = (1 if turn.mode == "rate" else key.size) / value
        self._counts[alone] = max(first, min(int(self.turn_s / each_s), _MOST))

    def sorted_out(self, turn: Turn, series: Series) -> tuple[Turn, dict[Key, float]]:
        """Each transport of a turn that failed on its own, and the turn with those that work."""
        told: dict[Key, float] = {}
        works: list[Transport] = []
        for transport in turn.transports:
            try:
                told |= self.run(_alone(turn, transport))
                works.append(transport)
            except BeowireError as error:
                if transport == "tcp":
                    raise
                series.troubles.append(f"{NAMES[transport]}, {turn.text()}: {error.what}")
        left = replace(turn, transports=tuple(works))
        self._counts[left] = self._counts[turn]
        return left, told

    def run(self, turn: Turn) -> dict[Key, float]:
        """One turn's numbers."""
        count = self._counts[turn]
        window = min(turn.window or _window(turn.size), count)
        words = ["--transport", ",".join(turn.transports), "--mode", turn.mode]
        words += ["--wait", turn.wait, "--size", str(turn.size), "--rounds", "1"]
        words += ["--iterations", str(count), "--window", str(window)]
        if turn.buffer:
            words += ["--receive-buffer", str(turn.buffer)]
        report = self._report(not turn.back, words)
        scale = 1e-9 if turn.timed else 1.0
        self.system_call_s = float(report["system_call_ns"]) * 1e-9
        return {
            Key(each["transport"], turn.mode, turn.wait, turn.size, turn.back, turn.buffer): (
                float(each["rounds"][0]) * scale
            )
            for each in report["results"]
        }

    def _report(self, there: bool, words: list[str]) -> dict[str, Any]:
        if there not in self._servers:
            self._servers[there] = Server(self.pair, there=there)
        server = self._servers[there]
        try:
            return client(server, words, _LIMIT_S)
        except BeowireError:
            del self._servers[there]  # it may be waiting for what does not come
            server.close()
            raise


def _first(turn: Turn) -> int:
    if turn.mode == "rate":
        return _FIRST_SHORT
    if turn.mode == "bandwidth":
        return max(1, min(_FIRST, _FIRST_BYTES // turn.size))
    return _FIRST


def _alone(turn: Turn, transport: Transport) -> Turn:
    return replace(turn, transports=(transport,))


def _window(size: int) -> int:
    return max(1, min(_WINDOW_MOST, _WINDOW_BYTES // size))


@contextlib.contextmanager
def measuring(pair: Pair, turn_s: float) -> Iterator[Measurer]:
    """A measurer, whose servers are gone with the block."""
    made = Measurer(pair, turn_s)
    try:
        yield made
    finally:
        made.close()


def measure(
    measurer: Measurer, turns: Iterable[Turn], rounds: int, tell: Callable[[str], None]
) -> Series:
    """All turns, so many rounds. What does not work is left out and named; what stopped working
    after too few rounds for an interval is left out as a whole."""
    series = Series()
    tell(f"trying what works between this node and {measurer.pair.peer}")
    usable = measurer.usable(turns, series)
    for number in range(1, rounds + 1):
        for place, turn in enumerate(usable):
            if not turn.transports:
                continue
            tell(f"round {number} of {rounds}: {turn.text()}")
            try:
                told = measurer.run(turn)
            except BeowireError:
                usable[place], told = measurer.sorted_out(turn, series)
            for key, value in told.items():
                series.of.setdefault(key, []).append(value)
            series.system_call_s.append(measurer.system_call_s)
    series.of = {key: told for key, told in series.of.items() if len(told) >= LEAST_ROUNDS}
    return series
