# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Offers from strangers: who does not hold a connection gets no answer, and harms nothing."""

import pytest
import user_net
from sockets_net import HERE, THERE, Nodes
from test_sockets import ECHO

PORT = 7500
STRANGER = "10.77.0.9"

ASK = f"""
import os, socket, struct, sys, time
one = socket.create_connection(("{THERE}", {PORT}))
def echo():
    one.sendall(bytes(20000))
    got = 0
    while got < 20000:
        got += len(one.recv(65536))
echo()
port = one.getsockname()[1]
nonce = bytes(range(16))
def mapped(address):
    return bytes(10) + b"\\xff\\xff" + socket.inet_aton(address)
def offer(here="{HERE}", there="{THERE}", here_port=port, there_port={PORT}, kind=1):
    names = mapped(here) + mapped(there) + struct.pack("<HH", here_port, there_port)
    return b"BS\\x01" + bytes([kind]) + struct.pack("<I", 5) + names + nonce + bytes(16 + 56)
def ask(source, data):
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asking.bind((source, 0))
    asking.sendto(data, ("{THERE}", 47098))
    return asking
def answer(asking, seconds):
    asking.settimeout(seconds)
    try:
        return asking.recv(1000)
    except (TimeoutError, ConnectionRefusedError, BlockingIOError):
        return None
def good():
    until = time.monotonic() + 60
    while (got := answer(ask("{HERE}", offer()), 0.5)) is None:
        assert time.monotonic() < until
    return got
"""

GOOD = """
got = good()
assert len(got) == 132 and got[:4] == b"BS\\x01\\x02"
assert got[60:76] == nonce and got[44:60] != bytes(16)
assert got[8:24] == mapped(THERE) and got[24:40] == mapped(HERE)
# the same offer has the same answer, another one another
assert good()[44:60] == got[44:60]
nonce = bytes(range(1, 17))
assert good()[44:60] != got[44:60]
echo()
"""

BAD = f"""
good()
bad = [
    ask("{STRANGER}", offer()),
    ask("{STRANGER}", offer(here="{STRANGER}")),
    ask("{HERE}", offer(here_port=port ^ 1)),
    ask("{HERE}", offer(there_port={PORT} ^ 1)),
    ask("{HERE}", offer(kind=2)),
    ask("{HERE}", offer(kind=3)),
    ask("{HERE}", offer()[:-1]),
    ask("{HERE}", offer() + b"x"),
    ask("{HERE}", b""),
    *(ask("{STRANGER}", os.urandom(132)) for _ in range(50)),
]
# what was asked before it was handled before it
good()
assert [answer(each, 0) for each in bad] == [None] * len(bad)
echo()
"""


@pytest.mark.parametrize(("script", "refused"), [(GOOD, 0), (BAD, 56)], ids=["good", "bad"])
def test_who_holds_the_connection_is_answered_alone(
    nodes: Nodes, script: str, refused: int
) -> None:
    have = user_net.ip(f"-n {nodes.here} addr show dev eth0")
    if f"{STRANGER}/" not in have:
        user_net.address(nodes.here, "eth0", 9)
    with nodes.server(["python3", "-c", ECHO, str(PORT), "1"], PORT, ends=True):
        named = f"HERE, THERE = {HERE!r}, {THERE!r}\n"
        nodes.run(["python3", "-c", ASK + named + script], library=False)
    told = nodes.counted()
    assert told["tx_beowire"] == told["rx_beowire"] == 0, told
    assert told["lost"] == 0, told
    assert told["offers_refused"] == refused, told
