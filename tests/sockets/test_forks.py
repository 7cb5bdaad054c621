# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""fork() while a thread of the library opens the endpoint, and while a closed connection ends."""

import threading
import time
from collections.abc import Callable

from sockets_net import SOON_S, THERE, Nodes
from stopped import go_on, stop

PORT = 7890
ECHO = f"""
import socket
with socket.create_server(("", {PORT})) as listener:
    first, one = listener.accept(), listener.accept()[0]
while got := one.recv(65536):
    one.sendall(got)
"""
# The endpoint is opened by a thread, from the first connection on: some of these are in the middle.
DURING_THE_OPENING = f"""
import ctypes, os, socket, stat, threading, time
way = ctypes.CDLL(None).beowire_sockets_way
first = socket.create_connection(("{THERE}", {PORT}))
for i in range(100):
    if not (child := os.fork()):
        # exit(), by which the library would speak for whatever it takes for its own
        ctypes.CDLL(None).exit(0) if i % 2 else os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
done = threading.Event()
def switch():
    one = socket.create_connection(("{THERE}", {PORT}))
    while way(one.fileno()) != 3:
        one.sendall(b"0")
        assert one.recv(1) == b"0"
    done.set()
threading.Thread(target=switch, daemon=True).start()
assert done.wait(60)
# The status board is the parent's: no child has taken its name away.
names = []
for fd in os.listdir("/proc/self/fd"):
    try:
        at = os.fstat(int(fd))
    except OSError:
        continue
    if stat.S_ISREG(at.st_mode) and at.st_dev == os.stat("/dev/shm").st_dev:
        names.append(at.st_nlink)
assert names and all(names), names
os._exit(0)
"""


# Of each connection the server tells the client when it has seen the end, over one that stays.
END = f"""
import socket
with socket.create_server(("", {PORT})) as listener:
    orders = listener.accept()[0]
    for _ in range(20):
        one = listener.accept()[0]
        while got := one.recv(65536):
            one.sendall(got)
        orders.sendall(b"e")
"""
CHILD_BESIDE_AN_END = f"""
import ctypes, os, signal, socket, time
way = ctypes.CDLL(None).beowire_sockets_way
orders = socket.create_connection(("{THERE}", {PORT}))
orders.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
orders.settimeout(60)
children = []
for _ in range(20):
    one = socket.create_connection(("{THERE}", {PORT}))
    until = time.monotonic() + 60
    while way(one.fileno()) != 3:
        assert time.monotonic() < until
        one.sendall(b"0")
        assert one.recv(1) == b"0"
    one.close()
    if not (child := os.fork()):
        signal.pause()
    children.append(child)
    assert orders.recv(1) == b"e"
for child in children:
    os.kill(child, signal.SIGKILL)
os._exit(0)
"""
FORKS_BESIDE_STOPPED = f"""
import ctypes, os, pathlib, socket, time
way = ctypes.CDLL(None).beowire_sockets_way
first = socket.create_connection(("{THERE}", {PORT}))
first.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
one = socket.create_connection(("{THERE}", {PORT}))
until = time.monotonic() + 180
def switch():
    while way(one.fileno()) != 3:
        assert time.monotonic() < until
        one.sendall(b"0")
        assert one.recv(1) == b"0"
def fork():
    began = time.monotonic()
    if not (child := os.fork()):
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return time.monotonic() - began
def step(done, next_):
    pathlib.Path(done).touch()
    while not os.path.exists(next_):
        assert time.monotonic() < until
        time.sleep(0.01)
switch()
step("switched", "stopped")
spans = [fork() for _ in range(5)]
step("forked", "continued")
one.sendall(b"after")
assert one.recv(5, socket.MSG_WAITALL) == b"after"
switch()
spans.append(fork())
print(*spans)
"""


def test_a_child_keeps_nothing_that_was_closed(nodes: Nodes) -> None:
    """The peer sees the end of a connection that the parent has closed, though it is still on its
    way back to TCP when a child is made."""
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    with nodes.server(["python3", "-c", END], PORT, ends=True):
        nodes.run(["python3", "-c", CHILD_BESIDE_AN_END])


def test_fork_while_the_endpoint_opens(nodes: Nodes) -> None:
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    with nodes.server(["python3", "-c", ECHO], PORT, ends=True):
        nodes.run(["python3", "-c", DURING_THE_OPENING])


def test_a_stopped_peer_is_waited_for_once(nodes: Nodes) -> None:
    """A server may be stopped for long; its clients go on forking, and lose nothing."""
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"

    def when(done: str, what: Callable[[], None], said: str) -> None:
        until = time.monotonic() + SOON_S
        while not (nodes.place / done).exists() and time.monotonic() < until:
            time.sleep(0.01)
        what()
        (nodes.place / said).touch()

    def stop_and_continue() -> None:
        when("switched", lambda: stop(server.pid), "stopped")
        when("forked", lambda: go_on(server.pid), "continued")

    with nodes.server(["python3", "-c", ECHO], PORT, ends=True) as server:
        other = threading.Thread(target=stop_and_continue)
        other.start()
        said = nodes.run(["python3", "-c", FORKS_BESIDE_STOPPED])
        other.join()
    first, *others, _ = map(float, said.split())
    # One that waits again would take as long; the others take what a busy machine makes of a fork.
    assert sum(others) < 0.9 * first, said
    # The children's copies, which never went back; the parent lost nothing, nor the last child.
    assert nodes.counted()["lost"] == 5
