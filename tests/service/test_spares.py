# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sockets that beowired keeps ready, so that first contact waits for no grace period."""

import time
from pathlib import Path

import user_net
from served import Service, attack, served

PATIENCE_S = 60
DEFAULT = 8 << 20
OPEN = """
e = Endpoint(ring=int(sys.argv[2]))
told([e.answer.kind, os.fstat(e.socket.fileno()).st_ino, e.answer.blocks * e.answer.block_bytes])
"""
MTU = f"e = Endpoint(ring={DEFAULT})\ntold([e.answer.mtu, os.fstat(e.socket.fileno()).st_ino])"


def ready(service: Service) -> set[int]:
    """The inodes of packet sockets that the service has bound to nothing."""
    found = set()
    for each in Path(f"/proc/{service.process.pid}/task").glob("*/net/packet"):
        for line in each.read_text().splitlines()[1:]:
            # sk, RefCnt, Type, Proto, Iface, R, Rmem, User, Inode
            words = line.split()
            if words[4] == "0":
                found.add(int(words[8]))
    return found


def await_ready(service: Service, *other_than: int) -> set[int]:
    """Until two are, none of which is one of these."""
    until = time.monotonic() + PATIENCE_S
    while len(found := ready(service)) != 2 or found & set(other_than):
        assert time.monotonic() < until, found
        time.sleep(0.01)
    return found


def opened(service: Service, ring: int = DEFAULT) -> int:
    """The inode of an endpoint's socket."""
    kind, inode, size = attack(service, f"import os\n{OPEN}", str(ring))
    assert kind == 3
    assert size == ring
    return int(inode)


def await_one(service: Service, *other_than: int) -> None:
    """Until an endpoint has one that was there before. Those that are being made cannot be told
    from those that are ready; whoever comes too early has one made for him."""
    until = time.monotonic() + PATIENCE_S
    while True:
        kept = await_ready(service, *other_than)
        if opened(service) in kept:
            return
        assert time.monotonic() < until, kept


def test_who_comes_gets_one_that_is_ready() -> None:
    """Others are made in its place."""
    with user_net.pair(mtu=1500) as nodes, served(nodes[0]) as service:
        for _ in range(3):
            await_one(service)


def test_a_ring_of_another_size_is_made() -> None:
    with user_net.pair(mtu=1500) as nodes, served(nodes[0]) as service:
        await_one(service)
        kept = await_ready(service)
        assert opened(service, 1 << 20) not in kept
        assert await_ready(service) == kept


def test_slots_fit_the_mtu_that_there_is_now() -> None:
    """Those of another MTU are closed, and nobody gets them."""
    with user_net.pair(mtu=1500) as nodes, served(nodes[0]) as service:
        kept = await_ready(service)
        for node in nodes:
            user_net.link_set(node, "eth0", "mtu 9000")
        until = time.monotonic() + PATIENCE_S
        mtu = 1500
        while mtu != 9000:
            assert time.monotonic() < until
            kept |= ready(service)
            mtu, inode = attack(service, f"import os\n{MTU}")
        assert inode not in kept
        await_one(service, *kept)
