# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs of the distribution, unmodified: what they do is right, and went by Beowire."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from sockets_net import THERE, Nodes, Talk, by_beowire

PORT = 7400


@pytest.fixture(autouse=True)
def soon(nodes: Nodes) -> None:
    """Short tests: connections are offered at once."""
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"


def needs(*programs: str) -> None:
    """Skips a test whose programs are not installed."""
    for name in programs:
        if shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin") is None:
            pytest.skip(f"{name} is missing")


def test_iperf3(nodes: Nodes) -> None:
    """It sends what we give it until that goes by Beowire, and then some more. The end of it may be
    left out, as the server takes no more once the client has nothing left."""
    needs("iperf3")
    server = ["iperf3", "-s", "-1", "-p", str(PORT), "-F", "came"]
    sends = ["iperf3", "-c", THERE, "-p", str(PORT), "-t", "300", "-F", "/dev/stdin", "-l", "4K"]
    sent = bytearray()
    with nodes.server(server, PORT, ends=True), nodes.talking(sends) as talk:

        def give(pages: int) -> None:  # iperf3 reads whole blocks alone
            block = os.urandom(4096 * pages)
            sent.extend(block)
            talk.input.write(block)
            talk.input.flush()

        nodes.await_switch(talk.child, lambda: give(5), nodes.there)
        for _ in range(20):
            give(256)
        talk.rest()
    came = (nodes.place / "came").read_bytes()
    assert came == sent[: len(came)]
    assert len(came) > 18 << 20
    by_beowire(nodes.counted(), 18 << 20)


def test_redis(nodes: Nodes) -> None:
    needs("redis-server", "redis-cli", "redis-benchmark")
    words = ["redis-server", "--port", str(PORT), "--protected-mode", "no", "--save", ""]
    value = "0123456789" * 20000
    ask = ["redis-cli", "-h", THERE, "-p", str(PORT)]
    with nodes.server(words, PORT):
        load = ["redis-benchmark", "-h", THERE, "-p", str(PORT), "-c", "8", "-n", "4000", "-q"]
        nodes.run([*load, "-t", "set,get", "-d", "2000"])
        assert nodes.run([*ask, "-x", "set", "long"], text=value) == "OK\n"
        with nodes.talking(ask) as talk:
            nodes.await_switch(talk.child, lambda: talk.ask("echo " + 1000 * "x"))
            for number in range(40):
                assert talk.ask("get long").decode() == value + "\n"
                if number == 20:
                    assert talk.ask("bgsave").startswith(b"Background saving")
    told = nodes.counted()
    assert told["rx_beowire"] >= 40 * len(value), told
    assert told["lost"] == 0, told


def test_memcached(nodes: Nodes) -> None:
    needs("memcached")
    words = ["memcached", "-u", "root", "-p", str(PORT), "-U", "0", "-t", "2", "-l", "0.0.0.0"]
    script = f"""
import ctypes, socket, time
way = ctypes.CDLL(None).beowire_sockets_way
ones = [socket.create_connection(("{THERE}", {PORT})) for _ in range(4)]
files = [one.makefile("rb") for one in ones]
until = time.monotonic() + 60
while not all(way(one.fileno()) == 3 for one in ones):
    assert time.monotonic() < until
    for one, file in zip(ones, files):
        one.sendall(b"version\\r\\n")
        assert file.readline().startswith(b"VERSION")
value = bytes(range(256)) * 100
for i in range(200):
    for k, one in enumerate(ones):
        one.sendall(b"set k%d 0 0 %d\\r\\n" % (k, len(value)) + value + b"\\r\\n")
    for k, (one, file) in enumerate(zip(ones, files)):
        assert file.readline() == b"STORED\\r\\n"
        one.sendall(b"get k%d\\r\\n" % k)
        file.readline()
        assert file.read(len(value)) == value
        assert file.readline() + file.readline() == b"\\r\\nEND\\r\\n"
"""
    with nodes.server(words, PORT):
        nodes.run(["python3", "-c", script])
    by_beowire(nodes.counted(), 2 * 4 * 200 * 25_000)


def test_nginx_and_curl(nodes: Nodes) -> None:
    needs("nginx", "curl")
    content = os.urandom(30 << 20)
    nodes.place.chmod(0o755)
    (nodes.place / "file").write_bytes(content)
    (nodes.place / "nginx.conf").write_text(f"""
daemon off; worker_processes 2; pid {nodes.place}/pid; error_log {nodes.place}/log; user root;
events {{ worker_connections 64; }}
http {{
  access_log off; sendfile on; client_body_temp_path {nodes.place}; proxy_temp_path {nodes.place};
  fastcgi_temp_path {nodes.place}; uwsgi_temp_path {nodes.place}; scgi_temp_path {nodes.place};
  server {{ listen {PORT}; root {nodes.place}; }}
}}
""")
    config = ["-c", str(nodes.place / "nginx.conf"), "-e", str(nodes.place / "log")]
    url = f"http://{THERE}:{PORT}/file"
    with nodes.server(["/usr/sbin/nginx", *config], PORT):
        for _ in range(2):
            # Both by one connection, no faster than we take them.
            with nodes.talking(["curl", "-sSf", url, url]) as talk:
                got = bytearray()
                nodes.await_switch(talk.child, lambda got=got, talk=talk: took(talk, got))
                assert got + talk.rest() == content + content
    told = nodes.counted()
    assert told["rx_beowire"] >= 60 << 20, told
    assert told["lost"] == 0, told


def took(talk: Talk, into: bytearray) -> None:
    """A little of what a program says: all that it has to send is not gone before it switches."""
    into += talk.output.read(4096)


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


ASYNCIO_SERVER = f"""
import asyncio
async def serve(reader, writer):
    while got := await reader.read(65536):
        writer.write(got)
        await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", {PORT})
    await asyncio.Event().wait()
asyncio.run(main())
"""
ASYNCIO_CLIENT = f"""
import asyncio, ctypes, time
way = ctypes.CDLL(None).beowire_sockets_way
until = time.monotonic() + 60
async def echo(reader, writer, sent):
    writer.write(sent)
    await writer.drain()
    assert await reader.readexactly(len(sent)) == sent
async def one(k):
    reader, writer = await asyncio.open_connection("{THERE}", {PORT})
    while way(writer.get_extra_info("socket").fileno()) != 3:
        assert time.monotonic() < until
        await echo(reader, writer, b"small")
    for i in range(60):
        await echo(reader, writer, bytes([k]) * (1000 * i + 1))
    writer.write_eof()
    assert await reader.read() == b""
async def main():
    await asyncio.gather(*(one(k) for k in range(8)))
asyncio.run(main())
"""


def test_asyncio(nodes: Nodes) -> None:
    with nodes.server(["python3", "-c", ASYNCIO_SERVER], PORT):
        nodes.run(["python3", "-c", ASYNCIO_CLIENT])
    by_beowire(nodes.counted(), 8 * 1_700_000)


def test_a_server_that_forks(nodes: Nodes) -> None:
    """A daemon of rsync makes a child for each connection, which goes on alone."""
    needs("rsync")
    tree = nodes.place / "tree"
    for number in range(20):
        (tree / f"d{number % 4}").mkdir(parents=True, exist_ok=True)
        (tree / f"d{number % 4}" / f"f{number}").write_bytes(os.urandom(500_000 + number))
    config = nodes.place / "rsyncd.conf"
    config.write_text(f"use chroot = no\nuid = 0\ngid = 0\n[tree]\npath = {tree}\n")
    words = ["rsync", "--daemon", "--no-detach", f"--port={PORT}", f"--config={config}"]
    with nodes.server(words, PORT):
        nodes.run(["rsync", "-a", f"rsync://{THERE}:{PORT}/tree/", "copy/"])
    wanted = {file.relative_to(tree): digest(file) for file in tree.rglob("f*")}
    copy = nodes.place / "copy"
    assert {file.relative_to(copy): digest(file) for file in copy.rglob("f*")} == wanted
    told = nodes.counted()
    assert told["tx_bytes"] > 10_000_000
    assert told["lost"] == 0, told
