# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that use io_uring, by which connections are used past the library."""

import subprocess
from pathlib import Path

import pytest
from beowire import places
from sockets_net import THERE, Nodes

PORT = 7960
ECHO = f"""
import socket, sys, threading
def echo(one):
    while got := one.recv(65536):
        one.sendall(got)
with socket.create_server(("", {PORT})) as listener:
    for _ in range(int(sys.argv[1])):
        threading.Thread(target=echo, args=listener.accept()[:1]).start()
"""
SETUP = """
import ctypes, errno, os, socket, time
library = ctypes.CDLL(None, use_errno=True)
library.beowire_sockets_why.restype = ctypes.c_char_p
def ring():
    # io_uring_setup(2)
    return library.syscall(ctypes.c_long(425), ctypes.c_long(8), ctypes.create_string_buffer(120))
def settled(one):
    why = library.beowire_sockets_why(one.fileno()).decode()
    return why.startswith("the program uses io_uring (BEOWIRE_SOCKETS_IO_URING=files")
def by_beowire(one):
    return library.beowire_sockets_way(one.fileno()) == 3
def by_tcp(one):
    return library.beowire_sockets_way(one.fileno()) == 0
def exchange(one, done):
    until = time.monotonic() + 60
    while not done(one):
        assert time.monotonic() < until, library.beowire_sockets_why(one.fileno())
        one.sendall(b"0" * 1000)
        assert one.recv(1000, socket.MSG_WAITALL) == b"0" * 1000
"""
CONNECT = f'one = socket.create_connection(("{THERE}", {PORT}))\n'


@pytest.fixture(autouse=True)
def soon(nodes: Nodes) -> None:
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"


def run(nodes: Nodes, script: str, connections: int = 1) -> None:
    """Runs this beside a server that echoes what each connection brings."""
    with nodes.server(["python3", "-c", ECHO, str(connections)], PORT, ends=True):
        nodes.run(["python3", "-c", SETUP + script])
    assert nodes.counted()["lost"] == 0


def test_connections_of_a_program_with_a_ring_stay_on_tcp(nodes: Nodes) -> None:
    run(nodes, f"assert ring() >= 0\n{CONNECT}exchange(one, settled)\nassert by_tcp(one)")


def test_rings_for_files_alone(nodes: Nodes) -> None:
    nodes.variables["BEOWIRE_SOCKETS_IO_URING"] = "files"
    run(nodes, f"assert ring() >= 0\n{CONNECT}exchange(one, by_beowire)")


def test_a_ring_that_comes_later_brings_them_back(nodes: Nodes) -> None:
    """The next connection finds it."""
    later = f"""
{CONNECT}
exchange(one, by_beowire)
first = one
assert ring() >= 0
{CONNECT}
exchange(one, settled)
exchange(first, by_tcp)
exchange(one, by_tcp)
assert settled(first)
"""
    run(nodes, later, 2)


def test_a_program_with_libuv_does_without(nodes: Nodes, tmp_path: Path) -> None:
    """It is told that there is no io_uring; other system calls are what they were."""
    source, uv = tmp_path / "uv.c", tmp_path / "uv.so"
    source.write_text("int uv_loop_init(void *loop) { return loop != 0; }\n")
    subprocess.run([places.program("cc", "gcc"), "-shared", "-o", uv, source], check=True)
    refused = f"""
ctypes.CDLL("{uv}", ctypes.RTLD_GLOBAL)
assert ring() == -1 and ctypes.get_errno() == errno.ENOSYS
assert library.syscall(39) == os.getpid()
{CONNECT}
exchange(one, by_beowire)
"""
    run(nodes, refused)


def test_a_library_with_libuv_in_it_does_without(nodes: Nodes, tmp_path: Path) -> None:
    """Of its own (RTLD_LOCAL), as Python loads its modules: nobody else sees what it exports, and a
    ring of somebody else's is one."""
    source, uv = tmp_path / "uv.c", tmp_path / "uv.so"
    source.write_text("""
#include <unistd.h>
#include <sys/syscall.h>
static char params[120];
int uv_loop_init(void *loop) { return loop != 0; }
long ring(void) { return syscall(SYS_io_uring_setup, 8, params); }
""")
    subprocess.run([places.program("cc", "gcc"), "-shared", "-fPIC", "-o", uv, source], check=True)
    refused = f"""
inside = ctypes.CDLL("{uv}", use_errno=True)
assert inside.ring() == -1 and ctypes.get_errno() == errno.ENOSYS
{CONNECT}
exchange(one, by_beowire)
assert ring() >= 0
"""
    run(nodes, refused)
