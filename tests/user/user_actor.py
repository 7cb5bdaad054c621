# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The actors of these tests: endpoints in processes of their own, told what to do line by line."""

import contextlib
import json
import os
import queue
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from beowire import places

PATIENCE_S = 240.0
"""How long an event may take before a test fails; far beyond what it does take."""

NOW, LATER = 1, 0  # results of bw_send()
SYNC, EAGER, ACKED = 1, 2, 4  # its flags; what tells its end (ACKED) is never copied

Event = dict[str, Any]


class Actor:
    """One process with one endpoint."""

    def __init__(
        self, node: str | None, host: str, *, words: Sequence[str] = (), **variables: str
    ) -> None:
        """`words`: a command that becomes the actor, in place of the one that was built."""
        command = [*words] or [str(places.product("tests/user/actor"))]
        if node is not None:
            named = ["unshare", "--uts", "sh", "-c", f'hostname {host}; exec "$0" "$@"']
            command = ["ip", "netns", "exec", node, *named, *command]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BEOWIRE_")}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment, **variables},
        )
        self.seen: list[Event] = []
        self.complaints = ""
        self._events: queue.Queue[Event | None] = queue.Queue()
        self._threads = [
            threading.Thread(target=self._listen, daemon=True),
            threading.Thread(target=self._collect, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._events.put(json.loads(line))
        self._events.put(None)

    def _collect(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.complaints += line

    @property
    def pid(self) -> int:
        """The process itself: ip, unshare and sh have replaced themselves by it."""
        return self.process.pid

    def tell(self, line: str) -> None:
        """Gives a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def expect(self, event: str, **match: object) -> Event:
        """The next event of this kind with these fields, now or later; each is found once."""
        for index, past in enumerate(self.seen):
            if _is(past, event, match):
                return self.seen.pop(index)
        while True:
            try:
                fresh = self._events.get(timeout=PATIENCE_S)
            except queue.Empty:
                raise AssertionError(f"no {event} {match} came; {self._story()}") from None
            if fresh is None:
                raise AssertionError(f"ended without {event} {match}; {self._story()}")
            if _is(fresh, event, match):
                return fresh
            self.seen.append(fresh)

    def has_said(self, event: str, **match: object) -> bool:
        """Has this event come by now? It stays to be expected. The actor must be able to answer."""
        self.stats()
        return any(_is(past, event, match) for past in self.seen)

    def ask(self, line: str, event: str, **match: object) -> Event:
        """Gives a command and waits for its answer."""
        self.tell(line)
        return self.expect(event, **match)

    def _story(self) -> str:
        return f"status {self.process.poll()}, seen {self.seen[-10:]}, said {self.complaints!r}"

    def open(self, options: str = "") -> str:
        """Opens the endpoint: its address, in hexadecimal digits."""
        opened = self.ask(f"open {options}".strip(), "open")
        assert opened["result"] == 0, opened
        return str(opened["addr"])

    def open_failure(self) -> Event:
        """Tries to open the endpoint, which must fail."""
        opened = self.ask("open", "open")
        assert opened["result"] < 0, opened
        return opened

    def find(self, addr: str) -> int:
        """The number of the peer with this address."""
        found = self.ask(f"peer {addr}", "peer")
        assert found["result"] == 0, found
        return int(found["peer"])

    def send(self, peer: int, tag: int, length: int, flags: int = 0, op: int = 0) -> int:
        """Sends a message: bw_send()'s result."""
        line = f"send {peer} 1 {tag} {length} {flags} {op}"
        return int(self.ask(line, "send", op=op)["result"])

    def stats(self) -> Event:
        """The endpoint's counters."""
        answer: Event = self.ask("stats", "stats")["stats"]
        return answer

    def describe(self, peer: int) -> str:
        """What messages to people call a peer."""
        return str(self.ask(f"describe {peer}", "describe")["text"])

    def link(self, peer: int) -> str:
        """The link in use towards a peer."""
        return self.describe(peer).rsplit(", ", 1)[1]

    def leave(self) -> int:
        """Ends the process in good order: its exit status."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        status = self.process.wait(PATIENCE_S)
        for thread in self._threads:
            thread.join(PATIENCE_S)
        return status

    def remove(self) -> None:
        """Ends the process in any way."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)


def _is(event: Event, kind: str, match: dict[str, object]) -> bool:
    return event["event"] == kind and all(event.get(key) == match[key] for key in match)


@dataclass
class Couple:
    """Two actors that know each other."""

    a: Actor
    b: Actor
    to_b: int
    to_a: int


@contextlib.contextmanager
def actor(node: str | None, host: str = "host", **variables: str) -> Iterator[Actor]:
    """An actor that is gone afterwards."""
    made = Actor(node, host, **variables)
    try:
        yield made
    finally:
        made.remove()


@contextlib.contextmanager
def couple(nodes: tuple[str, str], options: str = "", **variables: str) -> Iterator[Couple]:
    """Two actors with open endpoints on two nodes, who have been introduced."""
    with (
        actor(nodes[0], "alpha", **variables) as a,
        actor(nodes[1], "beta", **variables) as b,
    ):
        addr_a, addr_b = a.open(options), b.open(options)
        yield Couple(a, b, a.find(addr_b), b.find(addr_a))
