# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls on connections that move to Beowire and back return what they return over TCP."""

import pytest
import user_net
from sockets_net import HERE, THERE, Nodes, by_beowire, program

PORT = 7300
CONNECTED = f"""
import ctypes, errno, os, socket, sys, time
way = ctypes.CDLL(None).beowire_sockets_way
one = socket.create_connection(("{THERE}", {PORT}))
def echo(n):
    one.sendall(bytes(n))
    got = 0
    while got < n:
        got += len(one.recv(65536))
until = time.monotonic() + 60
while way(one.fileno()) != 3:
    assert time.monotonic() < until
    echo(10)
"""
"""A program that is connected to one that echoes, both ways by Beowire."""


def differ(nodes: Nodes, seed: int, steps: int) -> None:
    with nodes.server([program("differ"), "serve", str(PORT)], PORT, ends=True):
        nodes.run([program("differ"), "drive", THERE, str(PORT), str(seed), str(steps)])


@pytest.mark.parametrize("seed", range(1, 7))
def test_calls_return_what_they_do_over_tcp(nodes: Nodes, seed: int) -> None:
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    differ(nodes, seed, 200)
    told = nodes.counted()
    ours = [each for each in told["each"] if each["tx_beowire"] and each["rx_beowire"]]
    assert len(ours) >= 2, told
    assert sum(each["tx_beowire"] for each in ours) > 500_000, told
    assert told["switches"] >= 2
    assert told["lost"] == 0, told


def test_without_a_library_at_the_other_end_all_is_tcp(nodes: Nodes) -> None:
    words = [program("differ"), "serve", str(PORT)]
    drive = [program("differ"), "drive", THERE, str(PORT), "1", "50"]
    with nodes.server(words, PORT, library=True, ends=True):
        nodes.run(drive, library=False)
    told = nodes.counted()
    assert told["tx_bytes"] > 0
    assert told["tx_beowire"] == told["rx_beowire"] == 0, told


def test_a_short_connection_is_not_offered(nodes: Nodes) -> None:
    words = ["python3", "-m", "http.server", str(PORT), "--bind", THERE]
    with nodes.server(words, PORT) as server:
        nodes.run(["curl", "-sSf", f"http://{THERE}:{PORT}/", "-o", "/dev/null"])
        assert server.poll() is None
    told = nodes.counted()
    assert {each["why"] for each in told["each"]} == {"too short"}, told


def test_descriptors_of_the_library_cannot_be_closed(nodes: Nodes) -> None:
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    script = f"""
{CONNECTED}
mine = {{0, 1, 2, one.fileno()}}
def ours():
    listed = [int(each) for each in os.listdir("/proc/self/fd")]
    open_now = [each for each in listed if os.path.exists(f"/proc/self/fd/{{each}}")]
    return [each for each in open_now if each not in mine]
assert len(ours()) > 5, ours()
assert all(each >= 512 for each in ours()), ours()
for each in ours():
    try:
        os.close(each)
        sys.exit(f"{{each}} was closed")
    except OSError as error:
        assert error.errno == errno.EBADF, error
os.closerange(one.fileno() + 1, 100000)
for _ in range(1000):
    echo(50000)
assert way(one.fileno()) == 3
"""
    with nodes.server(["python3", "-c", ECHO, str(PORT), "1"], PORT, ends=True):
        nodes.run(["python3", "-c", script])
    by_beowire(nodes.counted(), 2 * 1_000_000)


ECHO = """
import socket, sys
with socket.create_server(("", int(sys.argv[1]))) as listener:
    for _ in range(int(sys.argv[2])):
        with listener.accept()[0] as one:
            while got := one.recv(65536):
                one.sendall(got)
"""


@pytest.mark.parametrize("seed", [11, 12])
def test_calls_return_the_same_while_connections_change(nodes: Nodes, seed: int) -> None:
    nodes.variables |= {"BEOWIRE_SOCKETS_AFTER": "0", "BEOWIRE_SOCKETS_COMPARE": "always"}
    differ(nodes, seed, 200)
    told = nodes.counted()
    assert told["switches"] >= 2
    assert told["lost"] == 0, told


def test_beowire_and_tcp_are_tried_in_turn(nodes: Nodes) -> None:
    """Both directions go to TCP and back again and again, and no byte is lost."""
    nodes.variables |= {"BEOWIRE_SOCKETS_AFTER": "0", "BEOWIRE_SOCKETS_COMPARE": "always"}
    script = f"""
{CONNECTED}
why = ctypes.CDLL(None).beowire_sockets_why
why.restype = ctypes.c_char_p
until = time.monotonic() + 60
seen, whys = [], set()
while len(seen) < 9 or not whys >= {{"Beowire", "TCP moves more while cores are short"}}:
    assert time.monotonic() < until, seen
    echo(50000)
    now = way(one.fileno())
    if now in (0, 3) and (seen[-1:] or [0]) != [now]:
        seen.append(now)
    whys.add(why(one.fileno()).decode())
print(seen[:9])
"""
    with nodes.server(["python3", "-c", ECHO, str(PORT), "1"], PORT, ends=True):
        assert nodes.run(["python3", "-c", script]).strip() == str([3, 0] * 4 + [3])
    by_beowire(nodes.counted(), 4_000)


def test_a_peer_that_is_killed_is_no_good_end(nodes: Nodes) -> None:
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    script = f"""
{CONNECTED}
one.sendall(b"kill")
try:
    while got := one.recv(65536):
        pass
except ConnectionResetError:
    sys.exit(0)
sys.exit("a good end")
"""
    killed = ECHO.replace(
        "one.sendall(got)",
        'os.kill(os.getpid(), 9) if got.endswith(b"kill") else one.sendall(got)',
    ).replace("import socket, sys", "import os, socket, sys")
    with nodes.server(["python3", "-c", killed, str(PORT), "1"], PORT, ends=True):
        nodes.run(["python3", "-c", script])


def test_addresses_are_those_of_the_nodes(nodes: Nodes) -> None:
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    script = f"""
import socket
one = socket.create_connection(("{THERE}", {PORT}))
for _ in range(100):
    one.sendall(bytes(1000))
    one.recv(1000, socket.MSG_WAITALL)
assert one.getpeername() == ("{THERE}", {PORT})
assert one.getsockname()[0] == "{HERE}"
"""
    with nodes.server(["python3", "-c", ECHO, str(PORT), "1"], PORT, ends=True):
        nodes.run(["python3", "-c", script])
    told = nodes.counted()
    assert {each["there"].split(":")[0] for each in told["each"]} == {HERE, THERE}, told


@pytest.fixture
def ipv6(nodes: Nodes) -> tuple[str, str]:
    """Addresses of the two."""
    names = ("fd00:77::1", "fd00:77::2")
    for node, name in zip((nodes.here, nodes.there), names, strict=True):
        if name not in user_net.ip(f"-n {node} -6 addr show dev eth0"):
            user_net.ip(f"-n {node} addr add {name}/64 dev eth0 nodad")
    return names


@pytest.mark.parametrize("mapped", [False, True])
def test_connections_by_ipv6(nodes: Nodes, ipv6: tuple[str, str], mapped: bool) -> None:
    """Of both, and of a client that uses IPv4 with a server that listens by IPv6."""
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    here, there = (HERE, THERE) if mapped else ipv6
    listens = 'create_server(("", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True)'
    server = ECHO.replace('create_server(("", int(sys.argv[1])))', listens)
    assert listens in server
    script = f"""
{CONNECTED.replace(THERE, there)}
assert one.getpeername()[:2] == ("{there}", {PORT})
assert one.getsockname()[0] == "{here}"
echo(300000)
"""
    with nodes.server(["python3", "-c", server, str(PORT), "1"], PORT, ends=True):
        nodes.run(["python3", "-c", script])
    told = nodes.counted()
    by_beowire(told, 300_000)
    assert {each["there"].rpartition(":")[0].strip("[]") for each in told["each"]} == {here, there}
