# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""fork() while a thread of the library opens the endpoint."""

from sockets_net import THERE, Nodes

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
import ctypes, os, socket, threading, time
way = ctypes.CDLL(None).beowire_sockets_way
first = socket.create_connection(("{THERE}", {PORT}))
for _ in range(100):
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)
done = threading.Event()
def switch():
    one = socket.create_connection(("{THERE}", {PORT}))
    while way(one.fileno()) != 3:
        one.sendall(b"0")
        assert one.recv(1) == b"0"
    done.set()
threading.Thread(target=switch, daemon=True).start()
os._exit(not done.wait(60))
"""


def test_fork_while_the_endpoint_opens(nodes: Nodes) -> None:
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"
    with nodes.server(["python3", "-c", ECHO], PORT, ends=True):
        nodes.run(["python3", "-c", DURING_THE_OPENING])
