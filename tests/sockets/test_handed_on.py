# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A connection that goes by Beowire is handed to another program, with bytes under way in both
directions: the new one finds the stream whole. Threads share one, too."""

import pytest
from sockets_net import THERE, Nodes, by_beowire

PORT = 7800
HALF, ALL = 100_000, 700_000

# After "0" bytes to be echoed, 1: the pattern comes; what is sent back is compared with it.
SERVER = f"""
import socket, sys
pattern = bytes(i * i % 251 for i in range({ALL}))
with socket.create_server(("", {PORT})) as listener:
    one = listener.accept()[0]
while (got := one.recv(1)) == b"0":
    one.sendall(got)
assert got == b"1"
one.sendall(pattern)
back = bytearray()
while got := one.recv(65536):
    back += got
assert back == pattern[:50000] + pattern[::-1], len(back)
"""
CLIENT = f"""
import array, ctypes, os, socket, subprocess, sys, time
way = ctypes.CDLL(None).beowire_sockets_way
one = socket.create_connection(("{THERE}", {PORT}))
until = time.monotonic() + 60
while way(one.fileno()) != 3:
    assert time.monotonic() < until
    one.sendall(b"0")
    assert one.recv(1) == b"0"
one.sendall(b"1")
first = one.recv({HALF}, socket.MSG_WAITALL)
assert first == bytes(i * i % 251 for i in range({HALF}))
assert way(one.fileno()) == 3
one.sendall(first[:50000])
"""
NEXT = f"""
import socket, sys
one = socket.socket(fileno=int(sys.argv[1]))
pattern = bytes(i * i % 251 for i in range({ALL}))
rest = bytearray()
while len(rest) < {ALL - HALF}:
    got = one.recv(65536)
    assert got
    rest += got
assert rest == pattern[{HALF}:]
one.sendall(pattern[::-1])
one.shutdown(socket.SHUT_WR)
assert one.recv(1) == b""
"""
EXEC = """
os.set_inheritable(one.fileno(), True)
os.execv(sys.executable, [sys.executable, "-c", NEXT, str(one.fileno())])
"""
CHILD = """
done = subprocess.run([sys.executable, "-c", NEXT, "0"], stdin=one)
sys.exit(done.returncode)
"""
FORK_EXEC = """
child = os.fork()
if not child:
    os.dup2(one.fileno(), 0)
    os.execv(sys.executable, [sys.executable, "-c", NEXT, "0"])
one.close()
sys.exit(os.waitpid(child, 0)[1] != 0)
"""
PASSED = """
TAKE = "import socket, sys\\nunix = socket.socket(fileno=0)\\n"
TAKE += "fd = socket.recv_fds(unix, 1, 1)[1][0]\\n"
ours, its = socket.socketpair()
env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
words = [sys.executable, "-c", TAKE + "sys.argv = ['', str(fd)]\\n" + NEXT]
child = subprocess.Popen(words, stdin=its, env=env)
socket.send_fds(ours, [b"x"], [one.fileno()])
one.close()
sys.exit(child.wait())
"""


@pytest.mark.parametrize(
    "how", [EXEC, CHILD, FORK_EXEC, PASSED], ids=["exec", "child", "fork", "rights"]
)
def test_the_next_program_finds_the_stream_whole(nodes: Nodes, how: str) -> None:
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    with nodes.server(["python3", "-c", SERVER], PORT, ends=True) as server:
        nodes.run(["python3", "-c", CLIENT + f"NEXT = {NEXT!r}\n" + how])
        assert server.wait(60) == 0
    told = nodes.counted()
    assert told["lost"] == 0, told
    assert told["returns"] >= 1, told


THREADS = f"""
import ctypes, hashlib, random, socket, threading, time
way = ctypes.CDLL(None).beowire_sockets_way
ones = [socket.create_connection(("{THERE}", {PORT})) for _ in range(4)]
for one in ones:
    until = time.monotonic() + 60
    while way(one.fileno()) != 3:
        assert time.monotonic() < until
        one.sendall(b"0")
        assert one.recv(1) == b"0"
failed = []
def write(one, seed):
    numbers = random.Random(seed)
    for _ in range(300):
        one.sendall(numbers.randbytes(10000))
    one.shutdown(socket.SHUT_WR)
def read(one, seed):
    numbers = random.Random(seed)
    wanted, got = hashlib.sha256(), hashlib.sha256()
    for _ in range(300):
        wanted.update(numbers.randbytes(10000))
    while some := one.recv(50000):
        got.update(some)
    if got.digest() != wanted.digest():
        failed.append(seed)
threads = [
    threading.Thread(target=what, args=(one, seed))
    for seed, one in enumerate(ones) for what in (write, read)
]
for each in threads:
    each.start()
for each in threads:
    each.join()
assert not failed
"""
THREADS_SERVER = f"""
import socket, threading
def echo(one):
    while got := one.recv(65536):
        one.sendall(got)
    one.close()
with socket.create_server(("", {PORT})) as listener:
    threads = [threading.Thread(target=echo, args=(listener.accept()[0],)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
"""


def test_threads_share_connections(nodes: Nodes) -> None:
    """One sends and one receives on each of four, all blocking."""
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    server = THREADS_SERVER.replace("target=echo, args=(listener.accept()[0],)", "target=begin")
    server = server.replace(
        "with socket",
        "def begin():\n    echo(listener.accept()[0])\nwith socket",
    )
    with nodes.server(["python3", "-c", server], PORT, ends=True):
        nodes.run(["python3", "-c", THREADS])
    # at the end of a direction TCP brings what was not taken: at most 1 MiB
    by_beowire(nodes.counted(), 2 * 4 * (3_000_000 - (1 << 20)))
