# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Beowire is lost in the middle of a transfer, TCP is not: each byte comes, and once."""

import subprocess
import time
from pathlib import Path

import pytest
import user_net
from sockets_net import HERE, THERE, Nodes

PORT = 7600

SERVER = f"""
import ctypes, hashlib, os, socket, sys, time
way = ctypes.CDLL(None).beowire_sockets_way
sums = [hashlib.sha256(), hashlib.sha256()]
with socket.create_server(("", {PORT})) as listener:
    one = listener.accept()[0]
    while got := one.recv(65536):
        sums[0].update(got)
        reply = got[::-1]
        sums[1].update(reply)
        one.sendall(reply)
open("server", "w").write(" ".join(each.hexdigest() for each in sums))
"""
CLIENT = f"""
import ctypes, hashlib, os, random, socket, sys, time
way = ctypes.CDLL(None).beowire_sockets_way
one = socket.create_connection(("{THERE}", {PORT}))
sums = [hashlib.sha256(), hashlib.sha256()]
def trade(n):
    sent = random.randbytes(n)
    sums[0].update(sent)
    one.sendall(sent)
    while n:
        got = one.recv(65536)
        assert got
        sums[1].update(got)
        n -= len(got)
until = time.monotonic() + 60
while way(one.fileno()) != 3:
    assert time.monotonic() < until
    trade(1000)
trade(200000)
open("switched", "w").close()
while way(one.fileno()) == 3:
    assert time.monotonic() < until + 60
    trade(random.randrange(1, 300000))
for _ in range(50):
    trade(random.randrange(1, 300000))
open("lost", "w").close()
while way(one.fileno()) != 3 and not os.path.exists("enough"):
    trade(random.randrange(1, 300000))
for _ in range(50):
    trade(random.randrange(1, 300000))
one.shutdown(socket.SHUT_WR)
assert one.recv(1) == b""
open("client", "w").write(" ".join(each.hexdigest() for each in sums))
"""


def _await(file: Path, client: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + 90
    while not file.exists():
        assert client.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("again", [False, True])
def test_transfer_survives_the_loss_of_beowire(tmp_path: Path, again: bool) -> None:
    """If its interface is up again, the connection goes by Beowire again."""
    if refusal := user_net.refusal():
        pytest.skip(refusal)
    with user_net.network() as net:
        one, two = net.node("a"), net.node("b")
        net.veth(one, two, ("eth0", "eth0"))
        net.veth(one, two, ("eth1", "eth1"))
        user_net.address(one, "eth0", int(HERE.rpartition(".")[2]))
        user_net.address(two, "eth0", int(THERE.rpartition(".")[2]))
        nodes = Nodes(one, two, tmp_path)
        nodes.variables |= {
            "BEOWIRE_SOCKETS_AFTER": "0",
            "BEOWIRE_LINKS": "packet",
            "BEOWIRE_INTERFACE": "eth1",
            "BEOWIRE_DEAD_TIMEOUT": "6",  # longer than who lives stands still on a busy machine
        }
        with nodes.server(["python3", "-c", SERVER], PORT, ends=True):
            line = nodes.words(one, ["python3", "-c", CLIENT])
            with subprocess.Popen(line, cwd=tmp_path) as client:
                _await(tmp_path / "switched", client)
                user_net.link_set(one, "eth1", "down")
                _await(tmp_path / "lost", client)
                if again:
                    user_net.link_set(one, "eth1", "up")
                else:
                    (tmp_path / "enough").touch()
                assert client.wait(120) == 0
    assert (tmp_path / "client").read_text() == (tmp_path / "server").read_text()
    told = nodes.counted()
    assert told["lost"] == 0, told
    assert told["tx_beowire"] > 200_000, told
    why = "Beowire" if again else "Beowire was lost"
    assert {each["why"] for each in told["each"]} == {why}, told
    assert told["switches"] == (4 if again else 2), told
