# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Keys and encryption over real links: what a tap sees, what arrives, who is not spoken with."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from beowire import namespaces
from beowire.run.once import Once
from user_actor import ACKED, LATER, NOW, actor, couple

_ETH_P_ALL = 3
TAG = 77
LONG = 1_000_000


def key_file(file: Path, start: str) -> dict[str, str]:
    """A key that begins so."""
    file.touch(0o600)
    file.write_text(start + "5a" * 29 + "\n")
    return {"BEOWIRE_KEY": str(file)}


@pytest.fixture
def keyed(tmp_path: Path) -> dict[str, str]:
    return key_file(tmp_path / "key", "c0ffee")


def payload(start: int, count: int) -> bytes:
    """Some bytes of what an actor sends as message TAG."""
    whole = range(start, start + count)
    return bytes((TAG * 31 + at * 7 + (at >> 8) * 13 + 5) & 0xFF for at in whole)


class Tap:
    """Keeps what passes an interface."""

    def __init__(self, node: str) -> None:
        self.frames: list[bytes] = []
        self._ending = False

        def listen() -> socket.socket:
            heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
            heard.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
            heard.bind(("eth0", 0))
            heard.settimeout(0.1)
            return heard

        self._socket = namespaces.within(namespaces.NETNS_DIR / node, listen)
        self._thread = threading.Thread(target=self._keep)
        self._thread.start()

    def _keep(self) -> None:
        """All that has come by its end, too: this thread may be behind."""
        while True:
            try:
                self.frames.append(self._socket.recv(1 << 17))
            except TimeoutError:
                if self._ending:
                    return

    def close(self) -> None:
        self._ending = True
        self._thread.join()
        self._socket.close()

    def betrays(self, wanted: list[bytes]) -> int:
        """In how many frames one of these is found."""
        return sum(any(each in frame for each in wanted) for frame in self.frames)


@contextlib.contextmanager
def tap(node: str) -> Iterator[Tap]:
    """A tap, complete at the end of the context."""
    made = Tap(node)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("link", ["packet", "udp", "packet,udp"])
def test_nothing_is_readable(link: str, nodes: tuple[str, str], keyed: dict[str, str]) -> None:
    """Messages of all kinds: short, of several frames, and fetched; both ways."""
    wanted = [payload(start, 8) for start in (0, 3, 1000, 20_000, 60_000, LONG // 2, LONG - 9)]
    for encrypt in ("1", "0"):
        settings = {"BEOWIRE_LINKS": link, "BEOWIRE_ENCRYPT": encrypt, **keyed}
        with tap(nodes[1]) as heard, couple(nodes, **settings) as two:
            for one, to, other in ((two.a, two.to_b, two.b), (two.b, two.to_a, two.a)):
                for length in (16, 3000, 60_000):
                    assert one.send(to, tag=TAG, length=length) == NOW
                    assert other.expect("message", tag=TAG)["ok"]
                assert one.send(to, tag=TAG, length=LONG, flags=ACKED, op=2) == LATER
                assert other.expect("pulled", tag=TAG)["ok"]
                assert one.expect("sent", op=2)["status"] == 0
            stats = [each.stats() for each in (two.a, two.b)]
        assert [each["encrypted"] for each in stats] == [int(encrypt)] * 2
        assert sum(each["drops"].get("seal", 0) for each in stats) == 0
        carried = sum(links["tx_payload"] for each in stats for links in each["links"].values())
        assert carried >= 2 * LONG
        assert sum(map(len, heard.frames)) > LONG  # what leaves past the qdisc is not shown
        assert (heard.betrays(wanted) > 4) == (encrypt == "0")


@pytest.mark.parametrize("link", ["packet", "udp"])
def test_who_does_not_encrypt_is_not_spoken_with(
    link: str, nodes: tuple[str, str], keyed: dict[str, str]
) -> None:
    """Each side is told, whoever begins, and who it is about."""
    for caller, called in (("1", "0"), ("0", "1")):
        one = {"BEOWIRE_LINKS": link, "BEOWIRE_ENCRYPT": caller, **keyed}
        other = {"BEOWIRE_LINKS": link, "BEOWIRE_ENCRYPT": called, **keyed}
        with actor(nodes[0], "alpha", **one) as a, actor(nodes[1], "beta", **other) as b:
            a.open()
            to = a.find(b.open())
            a.send(to, tag=1, length=8)
            assert a.expect("down", peer=to)["status"] == -91  # EPROTOTYPE
            names = ("alpha", "beta") if caller == "1" else ("beta", "alpha")
            a.leave()
            assert f"{names[0]} encrypts, and {names[1]} does not, so" in a.complaints
            assert b.stats()["rx_messages"] == 0


@pytest.mark.parametrize("link", ["packet", "udp"])
@pytest.mark.parametrize("other", ["another", "none"])
def test_who_has_another_key_is_not_spoken_with(
    link: str, other: str, nodes: tuple[str, str], keyed: dict[str, str], tmp_path: Path
) -> None:
    """Both sides call, and are told by one line, which `beowire run` passes on once."""
    their = key_file(tmp_path / "other", "decade") if other == "another" else {}
    one, two = {"BEOWIRE_LINKS": link, **keyed}, {"BEOWIRE_LINKS": link, **their}
    with actor(nodes[0], "alpha", **one) as a, actor(nodes[1], "beta", **two) as b:
        addr_a, addr_b = a.open(), b.open()
        to_a, to_b = b.find(addr_a), a.find(addr_b)
        a.send(to_b, tag=1, length=8)
        b.send(to_a, tag=2, length=8)
        assert a.expect("down", peer=to_b)["status"] == -129  # EKEYREJECTED
        assert b.expect("down", peer=to_a)["status"] == -129
        assert [each.stats()["rx_messages"] for each in (a, b)] == [0, 0]
        a.leave()
        b.leave()
    once = Once()
    passed = b"".join(once.feed(each.complaints.encode()) for each in (a, b))
    line = b"beowire: error: alpha and beta do not have the same cluster key, so they do not talk"
    assert [text for text in passed.splitlines() if b"cluster key" in text] == [
        text for text in passed.splitlines() if text.startswith(line)
    ]
    assert passed.count(line) == 1
