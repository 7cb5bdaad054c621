# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A connection goes back to TCP with bytes that TCP has no room for: none comes twice, none is left
out unnoticed, and who waits for room does not do so busily."""

import subprocess

import pytest
from sockets_net import THERE, Nodes

PORT = 7900

# Small buffers: what was not taken by Beowire does not fit into TCP. The server takes nothing
# before it is told to, but calls: the library answers.
ALL = 900_000
SERVER = f"""
import socket, time
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
listener.bind(("", {PORT}))
listener.listen()
one, orders = listener.accept()[0], listener.accept()[0]
orders.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
while one.recv(1) == b"0":
    one.sendall(b"0")
def told():
    try:
        return orders.recv(1, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return b""
stream = bytearray()
try:
    while not told():
        one.recv(1, socket.MSG_PEEK)
        time.sleep(0.001)
    while got := one.recv(65536):
        stream += got
except ConnectionResetError:
    stream = b"reset"
wanted = bytes(i * i % 251 for i in range({ALL}))
text = b"whole" if stream == wanted else stream if len(stream) < 10 else b"%d B" % len(stream)
orders.sendall(text)
"""
CLIENT = f"""
import ctypes, os, socket, sys, time
way = ctypes.CDLL(None).beowire_sockets_way
one = socket.socket()
one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
one.connect(("{THERE}", {PORT}))
orders = socket.create_connection(("{THERE}", {PORT}))
orders.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
until = time.monotonic() + 60
while way(one.fileno()) != 3:
    assert time.monotonic() < until
    one.sendall(b"0")
    assert one.recv(1) == b"0"
one.sendall(b"1")
one.sendall(bytes(i * i % 251 for i in range({ALL})))
assert way(one.fileno()) & 2
"""
FORK = """
child = os.fork()
if not child:
    orders.close()
    try:
        one.send(b"a child's")
    except OSError:
        os._exit(0)
    os._exit(1)
orders.sendall(b"1")
status = os.waitpid(child, 0)[1]
one.shutdown(socket.SHUT_WR)
text = orders.recv(100)
assert (text, status) == (b"whole", 0), (text, status)
"""


CLOSE_BESIDE_A_CHILD = """
child = os.fork()
if not child:
    orders.close()
    time.sleep(60)
    os._exit(1)
one.close()
orders.sendall(b"1")
time.sleep(3)
os.kill(child, 9)
os.waitpid(child, 0)
text = orders.recv(100)
assert text == b"whole", text
"""
CLOSE = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try:
    while True:
        os.open("/dev/null", os.O_RDONLY)
except OSError:
    one.close()
orders.sendall(b"1")
text = orders.recv(100)
assert text == b"reset", text
"""
SHUT = """
one.shutdown(socket.SHUT_WR)
mine = [
    f"/proc/self/task/{task}/schedstat" for task in os.listdir("/proc/self/task")
    if open(f"/proc/self/task/{task}/comm").read() == "beowire-sockets\\n"
]
def spent():
    return int(open(mine[0]).read().split()[0])
time.sleep(0.5)
began, at = spent(), time.monotonic_ns()
time.sleep(2)
busy = (spent() - began) / (time.monotonic_ns() - at)
orders.sendall(b"1")
text = orders.recv(100)
assert text == b"whole", text
assert busy < 0.1, busy
"""


# It takes nothing before the client's process has ended, or is another program, by which the second
# connection ends, and tells by a file what came.
SLOW_SERVER = (
    SERVER.replace("while not told():", "while not ended():")
    .replace("def told():", "def ended():")
    .replace(
        "return orders.recv(1, socket.MSG_DONTWAIT)",
        "return not orders.recv(1, socket.MSG_DONTWAIT)",
    )
    .replace('return b""', "return False")
    .replace("orders.sendall(text)", 'open("came", "wb").write(text)')
)
EXIT = "os.dup(orders.fileno()); sys.exit(0)"  # Python closes its objects before
KILLED = "one.close(); time.sleep(1); os.kill(os.getpid(), 9)"
EXEC = """
os.set_inheritable(one.fileno(), True)
behind = f"import os; os.write({one.fileno()}, b'behind a gap')"
os.execvp("python3", ["python3", "-c", behind])
"""
SPLICE = """
r, w = os.pipe()
os.write(w, b"X" * 1000)
splice = ctypes.CDLL(None, use_errno=True).splice
splice.argtypes = [ctypes.c_int, ctypes.c_void_p] * 2 + [ctypes.c_size_t, ctypes.c_uint]
one.setblocking(False)
assert splice(r, None, one.fileno(), None, 1000, 0) == -1
assert ctypes.get_errno() == 11 # EAGAIN: there is no room yet
one.setblocking(True)
orders.sendall(b"1")
assert splice(r, None, one.fileno(), None, 1000, 0) == 1000
one.shutdown(socket.SHUT_WR)
text = orders.recv(100)
assert text == b"901000 B", text
"""


def test_a_child_sends_nothing_of_its_parents(nodes: Nodes) -> None:
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    with nodes.server(["python3", "-c", SERVER], PORT, ends=True):
        nodes.run(["python3", "-c", CLIENT + FORK])


def test_a_close_beside_a_child_loses_nothing(nodes: Nodes) -> None:
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    with nodes.server(["python3", "-c", SERVER], PORT, ends=True):
        nodes.run(["python3", "-c", CLIENT + CLOSE_BESIDE_A_CHILD])
    assert nodes.counted()["lost"] == 0


def test_a_close_without_descriptors_left_is_no_good_end(nodes: Nodes) -> None:
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    with nodes.server(["python3", "-c", SERVER], PORT, ends=True):
        nodes.run(["python3", "-c", CLIENT + CLOSE])
    assert nodes.counted()["lost"] >= 1


def test_the_wait_for_room_in_tcp_is_not_busy(nodes: Nodes) -> None:
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    with nodes.server(["python3", "-c", SERVER], PORT, ends=True):
        nodes.run(["python3", "-c", CLIENT + SHUT])


@pytest.mark.parametrize("end", [EXIT, EXEC, KILLED], ids=["exit", "exec", "kill"])
def test_what_the_end_of_a_process_left_is_no_good_end(nodes: Nodes, end: str) -> None:
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    with nodes.server(["python3", "-c", SLOW_SERVER], PORT, ends=True):
        words = nodes.words(nodes.here, ["python3", "-c", CLIENT + end])
        subprocess.run(words, cwd=nodes.place, check=False, timeout=240)
    assert (nodes.place / "came").read_text() == "reset"


def test_a_splice_behind_what_is_left_keeps_the_order(nodes: Nodes) -> None:
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    with nodes.server(["python3", "-c", SERVER], PORT, ends=True):
        nodes.run(["python3", "-c", CLIENT + SPLICE])
