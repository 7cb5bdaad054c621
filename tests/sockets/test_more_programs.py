# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Run-time systems and servers that bring their own event loops and processes, unmodified."""

import hashlib
import json
import os
import pwd
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from beowire import places
from beowire.sockets import cli
from sockets_net import SOON_S, SWITCHED, THERE, Nodes

PORT = 7420
NOBODY = "nobody"


@pytest.fixture(autouse=True)
def soon(nodes: Nodes) -> None:
    """Short tests: connections are offered at once."""
    nodes.variables["BEOWIRE_SOCKETS_AFTER"] = "0"


def needs(program: str) -> str:
    """The path of a program; a test without its program is skipped."""
    found = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin")
    if found is None:
        pytest.skip(f"{program} is missing")
    return found


def moved(nodes: Nodes, least: int) -> None:
    """So many bytes left TCP at both ends together, and nothing was lost."""
    told = nodes.counted()
    assert told["tx_beowire"] + told["rx_beowire"] >= least, told
    assert told["lost"] == 0, told


@pytest.mark.parametrize("more", [[], ["--nonblocked"]], ids=["waiting", "spinning"])
def test_sockperf(nodes: Nodes, more: list[str]) -> None:
    """It numbers its messages, and counts those that are missing, doubled or out of order."""
    sockperf = needs("sockperf")
    to = ["--tcp", "-p", str(PORT), *more]
    ask = [sockperf, "ping-pong", "-i", THERE, *to, "-m", "1000", "-t", "3"]
    until = time.monotonic() + SOON_S
    with nodes.server([sockperf, "server", "-i", "0.0.0.0", *to], PORT):
        # Again, if it was over before its connection had switched.
        while True:
            said = nodes.run(ask)
            told = nodes.counted()
            assert told["lost"] == 0, told
            if told["rx_beowire"] >= 100_000:
                break
            assert time.monotonic() < until, told
    assert "dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0" in said


NODE_SERVER = f"""
require('net').createServer({{allowHalfOpen: true}}, s => s.pipe(s)).listen({PORT}, '0.0.0.0')
"""
NODE_CLIENT = f"""
const net = require('net'), crypto = require('crypto'), fs = require('fs')
let left = 4
for (let k = 0; k < 4; k++) {{
  const sent = crypto.createHash('sha256'), got = crypto.createHash('sha256')
  const socket = net.connect({PORT}, '{THERE}')
  let rounds = 60, waiting = 0
  const next = () => {{
    const early = !fs.existsSync('{SWITCHED}')
    if (!early && !rounds--) return socket.end()
    const bytes = crypto.randomBytes(1 + (early ? 500 : 2000 * rounds))
    waiting = bytes.length
    sent.update(bytes)
    socket.write(bytes)
  }}
  socket.on('connect', next)
  socket.on('data', bytes => {{
    got.update(bytes)
    waiting -= bytes.length
    if (!waiting) setTimeout(next, 5)
  }})
  socket.on('end', () => {{
    if (sent.digest('hex') !== got.digest('hex')) throw new Error('other bytes than were sent')
    if (!--left) console.log('the same')
  }})
}}
"""


def test_node(nodes: Nodes) -> None:
    """Its loop has one epoll instance for all, level- and edge-triggered."""
    node = needs("node")
    with nodes.server([node, "-e", NODE_SERVER], PORT):
        assert nodes.run_switched([node, "-e", NODE_CLIENT]) == "the same\n"
    # one of the four at least: 3.5 MB there and back
    moved(nodes, 2 * 3_500_000)


JAVA = """
import java.io.*; import java.net.*; import java.nio.*; import java.nio.channels.*;
import java.util.*;
public class Echo {
  public static void main(String[] a) throws Exception {
    if (a[0].equals("serve")) serve(Integer.parseInt(a[1]));
    else call(a[1], Integer.parseInt(a[2]));
  }
  static void serve(int port) throws Exception {
    Selector selector = Selector.open();
    ServerSocketChannel at = ServerSocketChannel.open();
    at.bind(new InetSocketAddress(port)); at.configureBlocking(false);
    at.register(selector, SelectionKey.OP_ACCEPT);
    ByteBuffer room = ByteBuffer.allocateDirect(65536);
    while (true) {
      selector.select();
      for (SelectionKey key : selector.selectedKeys()) {
        if (key.isAcceptable()) {
          SocketChannel one = at.accept(); one.configureBlocking(false);
          one.register(selector, SelectionKey.OP_READ);
        } else {
          SocketChannel one = (SocketChannel) key.channel();
          room.clear();
          if (one.read(room) < 0) { one.close(); continue; }
          room.flip();
          while (room.hasRemaining()) one.write(room);
        }
      }
      selector.selectedKeys().clear();
    }
  }
  static void call(String host, int port) throws Exception {
    try (Socket one = new Socket(host, port)) {
      one.setSoTimeout(60000);
      DataInputStream in = new DataInputStream(one.getInputStream());
      OutputStream out = one.getOutputStream();
      Random random = new Random(7);
      File switched = new File("SWITCHED");
      for (int i = 0; i < 200; i += switched.exists() ? 1 : 0) {
        byte[] sent = new byte[500 + 300 * i], got = new byte[sent.length];
        random.nextBytes(sent); out.write(sent); in.readFully(got);
        if (!Arrays.equals(sent, got)) throw new Error("other bytes than were sent");
        if (i == 0) Thread.sleep(1);
      }
      one.shutdownOutput();
      if (in.read() != -1) throw new Error("no end");
    }
    System.out.println("the same");
  }
}
""".replace("SWITCHED", SWITCHED)


def test_java(nodes: Nodes) -> None:
    """A selector's server, and a client with limits of time, which polls before it reads."""
    java = needs("java")
    file = nodes.place / "Echo.java"
    file.write_text(JAVA)
    words = [java, "-XX:TieredStopAtLevel=1", str(file)]
    with nodes.server([*words, "serve", str(PORT)], PORT):
        assert nodes.run_switched([*words, "call", THERE, str(PORT)]) == "the same\n"
    moved(nodes, 2 * 5_900_000)


POOL = f"""
import os, sys
from multiprocessing.managers import BaseManager
class Shared(BaseManager): pass
if sys.argv[1] == "serve":
    store = {{}}
    Shared.register("store", callable=lambda: store)
    Shared(("0.0.0.0", {PORT}), b"x").get_server().serve_forever()
Shared.register("store")
shared = Shared(("{THERE}", {PORT}), b"x")
shared.connect()
store = shared.store()
while not os.path.exists("{SWITCHED}"):
    store.update({{0: bytes(500)}})
    store.get(0)
for i in range(100):
    store.update({{i: bytes([i]) * 50000}})
for i in range(100):
    assert store.get(i) == bytes([i]) * 50000
print("the same")
"""


def test_multiprocessing(nodes: Nodes) -> None:
    """Threads of the server, and an object of another node used by its proxy."""
    with nodes.server(["python3", "-c", POOL, "serve"], PORT):
        assert nodes.run_switched(["python3", "-c", POOL, "use"]) == "the same\n"
    moved(nodes, 2 * 5_000_000)


def test_openssh_and_rsync(nodes: Nodes) -> None:
    """The server gives each connection to a program of its own, in a sandbox: it stays on TCP."""
    server, rsync, ssh = needs("sshd"), needs("rsync"), needs("ssh")
    place = nodes.place
    for name in ("host", "user"):
        nodes.run([needs("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", name])
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # the server's directory for its sandbox
    (place / "sshd_config").write_text(f"""
HostKey {place}/host
AuthorizedKeysFile {place}/user.pub
StrictModes no
PermitRootLogin yes
UsePAM no
PidFile none
""")
    tree = place / "tree"
    tree.mkdir()
    for number in range(8):
        (tree / f"f{number}").write_bytes(os.urandom(1_000_000 + number))
    options = (
        f"-p {PORT} -i {place}/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    )
    words = [server, "-D", "-e", "-f", str(place / "sshd_config"), "-p", str(PORT)]
    with nodes.server(words, PORT):
        nodes.run([rsync, "-a", "-e", f"{ssh} {options}", f"root@{THERE}:{tree}/", "copy/"])
    for number in range(8):
        assert (place / "copy" / f"f{number}").read_bytes() == (tree / f"f{number}").read_bytes()
    told = nodes.counted()
    assert told["rx_bytes"] > 8_000_000, told
    assert told["switched"] == told["lost"] == 0, told


@pytest.fixture
def of_nobody() -> Iterator[Path]:
    """A directory of a user who has nothing else, with a copy of the library that he can read."""
    with tempfile.TemporaryDirectory(prefix="beowire-pg-", dir="/var/tmp") as name:
        place = Path(name)
        shutil.copy(cli.preload()["LD_PRELOAD"], place / "library.so")
        shutil.chown(place, NOBODY)
        yield place
        shutil.rmtree(f"/dev/shm/beowire-{pwd.getpwnam(NOBODY).pw_uid}", ignore_errors=True)


def _await_readiness(told: Path) -> None:
    """A server of PostgreSQL listens before it takes orders; the last line here tells."""
    until = time.monotonic() + 60
    while told.read_text().split()[-1] != "ready":
        assert time.monotonic() < until, told.read_text()
        time.sleep(0.05)


def test_postgresql(nodes: Nodes, of_nobody: Path) -> None:
    """A server that forks for each client; its own measuring program, and data that come back."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        pytest.skip("postgresql is missing")
    bin_dir, data = found[-1], of_nobody / "data"
    as_user = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", "env", "-C", str(of_nobody)]
    init = [*as_user, f"{bin_dir}/initdb", "-D", str(data), "-A", "trust", "-U", "u", "-N"]
    nodes.run(init, nodes.there, library=False)
    (data / "pg_hba.conf").write_text("host all all 0.0.0.0/0 trust\n")
    library = cli.preload() | nodes.variables | {"LD_PRELOAD": f"{of_nobody}/library.so"}
    words = [*as_user, *(f"{name}={value}" for name, value in library.items())]
    words += [f"{cli.STATS}={of_nobody}", f"{bin_dir}/postgres", "-D", str(data)]
    for setting in ("fsync=off", "listen_addresses=*", f"port={PORT}", "shared_buffers=32MB"):
        words += ["-c", setting]
    words += ["-c", f"unix_socket_directories={data}"]
    there = ["-h", THERE, "-p", str(PORT), "-U", "u"]
    ask = "(select string_agg(repeat(i::text, 2000), '') from generate_series(1, 500) i)"
    psql = [f"{bin_dir}/psql", *there, "-XAt", "-d", "postgres"]
    with nodes.server(words, PORT, library=False):
        _await_readiness(data / "postmaster.pid")
        nodes.run([f"{bin_dir}/pgbench", *there, "-q", "-i", "-s", "1", "postgres"])
        load = ["-S", "-c", "4", "-j", "2", "-t", "2000", "postgres"]
        said = nodes.run([f"{bin_dir}/pgbench", *there, *load])
        assert "number of transactions actually processed: 8000/8000" in said
        assert "number of failed transactions: 0 " in said
        with nodes.talking(psql) as talk:
            nodes.await_switch(talk.child, lambda: talk.ask("select repeat('x', 1000);"))
            wanted = talk.ask(f"select md5({ask});").decode().strip()
            got = talk.ask(f"select {ask};").rstrip(b"\n")
        assert hashlib.md5(got, usedforsecurity=False).hexdigest() == wanted
    told = nodes.counted()
    assert told["connections"] >= 6, told
    assert told["rx_beowire"] >= len(got) > 2_000_000, told
    assert told["lost"] == 0, told


def test_thousands_of_connections(nodes: Nodes) -> None:
    """All of them busy; what one costs its process is bounded, and most leave TCP."""
    connects = str(places.example("connects"))
    with nodes.server([connects, "serve", str(PORT)], PORT):
        said = json.loads(nodes.run([connects, "many", THERE, str(PORT), "3000"]))
    assert said["connections"] == 3000
    assert said["bytes_each"] <= 32 << 10, said
    told = nodes.counted()
    assert told["switched"] >= 1500, {**told, "each": []}
    assert told["lost"] == 0, {**told, "each": []}
