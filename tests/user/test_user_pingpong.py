# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What others may send to beowire-pingpong: frames of its EtherType, messages to its endpoint, and
lines on its control connection.

The tests are the client of a real server, whose order they know: what must not have counted is seen
by what the server says next, not by waiting for nothing.
"""

import contextlib
import select
import socket
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import user_net
from beowire import namespaces, places
from user_actor import PATIENCE_S, SYNC, Actor, actor

PINGPONG = str(places.product("programs/beowire-pingpong"))
PORT = 47099
ADDRESS = "10.77.0.1"
ETHERTYPE = 0x88B6
DATA, CREDIT = 0, 1
MTU = 9000
CHUNK = MTU - 2
"""Bytes of a message in a frame, as programs/pingpong/packet.c has it."""
HANDED = 8
OTHER = bytes.fromhex("02beeeeeee0c")
LATENCY = 0
LONG = 6 << 20
"""More than may be sent without credit, less than the ring of a server holds."""
CARD = "00" * 64
TOO_MUCH = "error the other side took more than was sent"


@dataclass
class Client:
    """The control connection to a server, and what it printed in the end."""

    connection: socket.socket
    process: subprocess.Popen[str]

    def __post_init__(self) -> None:
        self._lines = self.connection.makefile(encoding="ascii", errors="replace")

    def say(self, *lines: str) -> None:
        self.connection.sendall("".join(f"{line}\n" for line in lines).encode())

    def hear(self) -> str:
        return self._lines.readline().rstrip("\n")

    def open(self, transport: str, card: bytes) -> bytes:
        """Opens a transport: the server's card."""
        self.say(f"open {transport} 0 {card.ljust(64, bytes(1)).hex()} 0 0")
        word, _, text = self.hear().partition(" ")
        assert word == "card", text
        return bytes.fromhex(text)

    def answers(self) -> bool:
        """Has the server anything to say by now?"""
        return bool(select.select([self.connection], [], [], 0)[0])

    def complaints(self) -> str:
        """What the server, which has ended, said to people."""
        return self.process.communicate(timeout=PATIENCE_S)[1]


@contextlib.contextmanager
def served(nodes: tuple[str, str], **variables: str) -> Iterator[Client]:
    """A server on the first node and a connection to it from the second one."""
    words = ["env", *(f"{name}={value}" for name, value in variables.items())]
    process = subprocess.Popen(
        ["ip", "netns", "exec", nodes[0], *words, PINGPONG, "--once"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        process.stderr.readline()
        with namespaces.within(
            namespaces.NETNS_DIR / nodes[1],
            lambda: socket.create_connection((ADDRESS, PORT), PATIENCE_S),
        ) as connection:
            yield Client(connection, process)
    finally:
        process.kill()
        process.communicate()


# ---- bare frames ----


@dataclass
class Wire:
    """A server that measures bare frames, and its partner's end of the cable."""

    client: Client
    raw: socket.socket
    ours: bytes
    theirs: bytes

    def frame(
        self,
        kind: int,
        body: bytes = b"",
        source: bytes | None = None,
        target: bytes | None = None,
    ) -> bytes:
        ether = (target or self.theirs) + (source or self.ours) + struct.pack("!H", ETHERTYPE)
        return ether + bytes([kind, 0]) + body

    def send(self, *frames: bytes) -> None:
        for each in frames:
            self.raw.send(each)

    def message(self, size: int) -> list[bytes]:
        """The frames of a message."""
        sizes = [min(CHUNK, size - at) for at in range(0, size, CHUNK)]
        return [self.frame(DATA, bytes(each)) for each in sizes]


@pytest.fixture
def wire(nodes: tuple[str, str]) -> Iterator[Wire]:
    macs = [
        bytes.fromhex(
            user_net.ip(f"netns exec {node} cat /sys/class/net/eth0/address")
            .strip()
            .replace(":", "")
        )
        for node in nodes
    ]

    def raw() -> socket.socket:
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        made.bind(("eth0", 0))
        return made

    with (
        served(nodes) as client,
        namespaces.within(namespaces.NETNS_DIR / nodes[1], raw) as end,
    ):
        assert client.open("packet", macs[1])[:6] == macs[0]
        yield Wire(client, end, macs[1], macs[0])


BAD = {
    "no head": lambda w: w.frame(DATA)[:14],
    "half a head": lambda w: w.frame(DATA)[:15],
    "a stranger's": lambda w: w.frame(DATA, bytes(60), source=OTHER),
    "to another one": lambda w: w.frame(DATA, bytes(60), target=OTHER),
    "of no known kind": lambda w: w.frame(77, bytes(60)),
    "a stranger's credit": lambda w: w.frame(CREDIT, source=OTHER),
}


@pytest.mark.parametrize("bad", BAD)
def test_frames_that_are_none_of_the_partners_do_not_count(wire: Wire, bad: str) -> None:
    """The server waits for a second message, when a credit that it cannot have tells it so."""
    wire.client.say(*["run packet 0 8 1 1"] * 3)
    wire.send(BAD[bad](wire), wire.frame(DATA, bytes(60)), wire.frame(CREDIT))
    assert [wire.client.hear() for _ in range(2)] == ["ready", "ready"]
    assert wire.client.hear().startswith(TOO_MUCH)


def test_a_frame_shorter_than_its_head_has_no_64_mib(wire: Wire) -> None:
    wire.client.say(f"run packet 0 {64 << 20} 1 1")
    wire.send(wire.frame(DATA)[:15], wire.frame(CREDIT))
    assert wire.client.hear() == "ready"
    assert wire.client.hear().startswith(TOO_MUCH)


def test_a_message_that_comes_before_the_credit_is_kept(wire: Wire) -> None:
    """The second one begins while the answer to the first one waits for credit."""
    first, *others = wire.message(LONG)
    wire.client.say(f"run packet 0 {LONG} 2 1", "run packet 0 8 1 1")
    assert wire.client.hear() == "ready"
    wire.send(first, *others)
    wire.send(first, wire.frame(CREDIT), wire.frame(CREDIT))
    wire.send(*others, *[wire.frame(CREDIT)] * 3)
    assert wire.client.hear() == "ready"


def test_messages_without_end_instead_of_a_credit(wire: Wire) -> None:
    wire.client.say(f"run packet 0 {LONG} 1 1")
    assert wire.client.hear() == "ready"
    wire.send(*wire.message(LONG))
    while not wire.client.answers():
        wire.send(*[wire.frame(DATA, bytes(60))] * 100)
    assert wire.client.hear() == "error the other side sends where it should receive"


def test_frames_go_to_one_station_only(nodes: tuple[str, str]) -> None:
    with served(nodes) as client:
        client.open("packet", b"\xff" * 6)
        assert client.hear() == "error the other side has no address of its own"


# ---- messages ----


@dataclass
class Meeting:
    """A server that measures libbeowire, its partner, and somebody else who has its address."""

    client: Client
    partner: Actor
    stranger: Actor
    to_server: int
    from_stranger: int

    def handed(self, who: Actor, length: int = 8) -> None:
        """Sends a message that the server has been called with."""
        peer = self.to_server if who is self.partner else self.from_stranger
        who.send(peer, 1, length, HANDED, op=5000)
        assert who.expect("sent", op=5000)["status"] == 0


@contextlib.contextmanager
def meeting(nodes: tuple[str, str], **variables: str) -> Iterator[Meeting]:
    """The variables are the partner's."""
    with (
        served(nodes) as client,
        actor(nodes[1], "partner", **variables) as partner,
        actor(nodes[1], "stranger") as stranger,
    ):
        server = client.open("beowire", bytes.fromhex(partner.open()))[:56].hex()
        stranger.open()
        yield Meeting(client, partner, stranger, partner.find(server), stranger.find(server))


def test_messages_of_strangers_do_not_count(nodes: tuple[str, str]) -> None:
    """The partner sends one, and is gone when the server waits for the second one."""
    with meeting(nodes) as met:
        met.handed(met.stranger)
        met.client.say(*["run beowire 0 8 1 1"] * 3)
        assert met.client.hear() == "ready"
        met.handed(met.partner)
        assert met.client.hear() == "ready"
        met.partner.leave()
        assert met.client.hear().startswith("error the other side is down")


def test_answers_go_to_the_partner(nodes: tuple[str, str]) -> None:
    with meeting(nodes) as met:
        met.handed(met.partner)
        met.handed(met.stranger)
        met.client.say("run beowire 0 8 1 1")
        while not any(each.has_said("message") for each in (met.partner, met.stranger)):
            pass
        assert met.partner.has_said("message")


def test_a_stranger_who_leaves_ends_nothing(nodes: tuple[str, str]) -> None:
    with meeting(nodes) as met:
        met.handed(met.stranger)
        met.stranger.leave()
        met.handed(met.partner)
        met.client.say("run beowire 0 8 1 1", "run beowire 0 8 1 1")
        assert [met.client.hear() for _ in range(2)] == ["ready", "ready"]
        met.handed(met.partner)
        met.partner.expect("message")
        met.partner.expect("message")


def test_a_stranger_need_not_keep_a_long_message(nodes: tuple[str, str]) -> None:
    with meeting(nodes) as met:
        met.stranger.send(met.from_stranger, 1, 1 << 20, SYNC)
        assert met.stranger.expect("sent")["status"] == 0


def test_more_long_messages_than_may_wait(nodes: tuple[str, str]) -> None:
    """The partner takes some back, to send others: it holds 4096 itself at most. The two short ones
    are what the first two receives take."""
    with meeting(nodes, BEOWIRE_EAGER_MAX="64") as met:
        for n in (4080, 20):
            assert met.partner.ask(f"burst {met.to_server} {n} 200", "burst")["sent"] == n
            met.handed(met.partner)
            for k in range(20):
                assert met.partner.ask(f"cancel {k}", "cancel")["result"] == 0
        met.client.say(*["run beowire 0 200 1 1"] * 4)
        assert [met.client.hear() for _ in range(3)] == ["ready"] * 3
        assert met.client.hear() == "error the other side sent more than 4096 long messages ahead"


# ---- lines ----

WRONG = {
    "a card of signed numbers": f"open tcp 0 {'-1' * 64} 0 0",
    "a buffer beyond all bounds": f"open tcp 0 {CARD} 4294967296 0",
    "no such mode": "run tcp 77 8 1 1",
    "a negative mode": "run tcp -1 8 1 1",
    "a window beyond all bounds": "run tcp 1 8 1 18446744073709551615",
    "messages without end": "run tcp 1 8 18446744073709551615 64",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_requests_out_of_bounds_are_refused(nodes: tuple[str, str], wrong: str) -> None:
    with served(nodes) as client:
        client.say(WRONG[wrong])
        assert client.hear() == "error bad request"


def test_a_line_is_not_two(nodes: tuple[str, str]) -> None:
    """The rest of a line that is too long is no request of its own."""
    with served(nodes) as client:
        client.say("run tcp 0 8 1 1".ljust(511) + "run tcp 0 8 1 1")
        assert client.hear() == "error the other side speaks another language"


def test_what_a_client_says_is_no_command_to_a_terminal(nodes: tuple[str, str]) -> None:
    with served(nodes) as client:
        client.say(f"open \x1b[2J\x9b 0 {CARD}")
        assert client.hear() == 'error no transport is called "?[2J??": beowire, tcp or packet'
        assert "\x1b" not in client.complaints()


@pytest.mark.parametrize("card", ["-1" * 64, "00" * 63 + "0", "00" * 65])
def test_a_server_whose_card_is_none(nodes: tuple[str, str], card: str) -> None:
    script = (
        f"import socket; s = socket.create_server(('', {PORT})); print(flush=True); "
        "s = s.accept()[0]; s.recv(512); "
        f"s.sendall(b'card {card}\\n'); s.recv(1)"
    )
    inside = ["ip", "netns", "exec"]
    server = subprocess.Popen([*inside, nodes[0], "python3", "-c", script], stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        done = subprocess.run(
            [*inside, nodes[1], PINGPONG, "-t", "tcp", ADDRESS],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    finally:
        server.kill()
        server.communicate()
    assert done.returncode == 1
    assert "speaks another language" in done.stderr
