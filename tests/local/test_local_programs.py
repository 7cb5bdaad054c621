# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""beowire-info, beowire-pingpong and beowire-example as people call them, on two joined nodes.

What they say must be what is: links that cannot be used are named with the reason, a peer is
reached by the link that passes, and every figure of a run is there.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from beowire import places

INFO = str(places.product("programs/beowire-info"))
EXAMPLE = str(places.product("programs/beowire-example"))
EARLY_SIGNAL = str(places.product("tests/local/early_signal.so"))
PINGPONG = str(places.product("programs/beowire-pingpong"))
LIMIT_S = 600
"""Only what hangs takes that long, beside any number of busy processes."""
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]

_numbers = count(1)


def ip(command: str) -> str:
    words = ["ip", *command.split()]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@dataclass
class Node:
    """One namespace; its cable's end is eth0."""

    name: str
    address: str

    def command(self, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.name, *words]

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
            env=environment(**variables),
        )


def environment(**variables: str) -> dict[str, str]:
    """Ours without Beowire's settings, and these."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("BEOWIRE_")}
    return {**plain, **variables}


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Node, Node]]:
    pair = [Node(f"lo{os.getpid()}-{next(_numbers)}", f"10.78.0.{k}") for k in (1, 2)]
    with contextlib.ExitStack() as stack:
        for node in pair:
            try:
                ip(f"netns add {node.name}")
            except subprocess.CalledProcessError as error:
                pytest.skip(f"no network namespaces: {error.stderr.strip()}")
            stack.callback(ip, f"netns del {node.name}")
            ip(f"-n {node.name} link set lo up")
        one, two = pair
        ip(f"link add eth0 netns {one.name} type veth peer name eth0 netns {two.name}")
        for node in pair:
            ip(f"-n {node.name} link set eth0 mtu 9000 up")
            ip(f"-n {node.name} addr add {node.address}/24 dev eth0")
        for node in pair:  # the kernel tells of a carrier up to a second after it is there
            while ip(f"-n {node.name} -br link show eth0").split()[1] != "UP":
                time.sleep(0.02)
        yield one, two


@contextlib.contextmanager
def listening(node: Node, *arguments: str, **variables: str) -> Iterator[str]:
    """`beowire-info --listen` on a node; the address that it prints. It must end well."""
    process = subprocess.Popen(
        node.command(INFO, "--listen", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    try:
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, errors
    assert len(address) == 112


@contextlib.contextmanager
def waiting(node: Node, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """The server side of beowire-pingpong, for one client."""
    process = subprocess.Popen(
        node.command(PINGPONG, "--once", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
    )
    try:
        yield process
        process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
        process.wait()


# ---- beowire-info ----


def info(node: Node, *arguments: str, **variables: str) -> dict[str, Any]:
    done = node.run(INFO, "--json", *arguments, **variables)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_info_tells_interfaces_links_and_settings(nodes: tuple[Node, Node]) -> None:
    told = info(nodes[0], BEOWIRE_MTU="4000")
    assert [each["name"] for each in told["interfaces"]] == ["lo", "eth0"]
    eth0 = told["interfaces"][1]
    assert eth0["mtu"] == 9000
    assert [eth0[each] for each in ("chosen", "up", "carrier", "ethernet")] == [True] * 4
    assert eth0["driver"] == "veth"
    assert eth0["speed_mbit"] == 10000
    assert "10.78.0.1/24" in eth0["addresses"]
    assert eth0["mac"].count(":") == 5
    assert {name: link["usable"] for name, link in told["links"].items()} == {
        "local": True,
        "packet": True,
        "udp": True,
        "kernel": False,  # only if BEOWIRE_LINKS names it
    }
    assert told["links"]["packet"]["frame_bytes"] == 4000
    assert told["environment"] == {"BEOWIRE_MTU": "4000"}
    assert told["cores"]["online"] == os.cpu_count()
    assert told["checksum"] in ("avx512", "sse42", "arm64", "table")
    assert re.fullmatch(r"1\.0\.\d+", told["libsodium"])
    assert set(told["cma"]) == {"usable", "why"}


def test_info_is_readable_for_people(nodes: tuple[Node, Node]) -> None:
    done = nodes[0].run(INFO)
    assert done.returncode == 0
    for word in ("eth0", "10.78.0.1/24", "local", "packet", "udp", "Checksum", "Cores"):
        assert word in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give up root")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_info_without_privilege_names_the_capability(nodes: tuple[Node, Node]) -> None:
    done = nodes[0].run(*NOBODY, INFO, "--json")
    assert done.returncode == 0, done.stderr
    packet = json.loads(done.stdout)["links"]["packet"]
    assert not packet["usable"]
    assert "CAP_NET_RAW" in packet["why"]


def test_info_says_which_setting_forbids_a_link(nodes: tuple[Node, Node]) -> None:
    told = info(nodes[0], BEOWIRE_LINKS="udp")
    assert not told["links"]["local"]["usable"]
    assert told["links"]["local"]["why"] == "BEOWIRE_LINKS=udp does not allow it"
    assert told["links"]["udp"]["usable"]


def test_info_of_a_wrong_interface_fails_and_lists_what_there_is(
    nodes: tuple[Node, Node],
) -> None:
    done = nodes[0].run(INFO, "--json", BEOWIRE_INTERFACE="eth7")
    assert done.returncode == 1
    assert "BEOWIRE_INTERFACE=eth7" in done.stderr
    assert "eth0" in done.stderr
    assert not json.loads(done.stdout)["links"]["packet"]["usable"]


def test_info_of_a_wrong_setting_fails(nodes: tuple[Node, Node]) -> None:
    done = nodes[0].run(INFO, BEOWIRE_LINKS="pigeon")
    assert done.returncode == 1
    assert "BEOWIRE_LINKS=pigeon" in done.stderr
    assert done.stdout == ""


def test_info_with_cma_off(nodes: tuple[Node, Node]) -> None:
    told = info(nodes[0], BEOWIRE_LOCAL_CMA="off")
    assert told["cma"] == {"usable": False, "why": "BEOWIRE_LOCAL_CMA=off forbids it"}


def test_info_of_a_peer_by_host(nodes: tuple[Node, Node]) -> None:
    with listening(nodes[0]):
        peer = info(nodes[1], "--peer", nodes[0].address)["peer"]
    assert peer["link"] == "packet"
    assert peer["frame_bytes"] == 9000
    assert peer["links"]["packet"]["used"]
    assert not peer["links"]["local"]["passes"]
    assert 0 < peer["round_trip_ns"] < 60 * 10**9


def test_info_of_a_peer_by_address_and_port(nodes: tuple[Node, Node]) -> None:
    with listening(nodes[0], "--port", "47311") as address:
        by_port = nodes[1].run(INFO, "--peer", f"{nodes[0].address}:47311")
        by_address = nodes[1].run(INFO, "--peer", address)
    for done in (by_port, by_address):
        assert done.returncode == 0, done.stderr
        assert "packet  used" in done.stdout
        assert "Round trip" in done.stdout


def test_info_of_a_peer_on_the_own_node(nodes: tuple[Node, Node]) -> None:
    with listening(nodes[0]) as address:
        peer = info(nodes[0], "--peer", address)["peer"]
    assert peer["link"] == "local"


def test_info_of_a_peer_that_has_udp_only(nodes: tuple[Node, Node]) -> None:
    with listening(nodes[0], BEOWIRE_LINKS="udp") as address:
        peer = info(nodes[1], "--peer", address)["peer"]
    assert peer["link"] == "udp"
    assert "that side cannot use it" in peer["links"]["packet"]["why"]


def test_info_of_a_peer_of_another_cluster(nodes: tuple[Node, Node]) -> None:
    with listening(nodes[0]) as address:
        done = nodes[1].run(INFO, "--peer", address, BEOWIRE_CLUSTER="other")
    assert done.returncode == 1
    assert "BEOWIRE_CLUSTER" in done.stderr


def test_info_of_nobody(nodes: tuple[Node, Node]) -> None:
    done = nodes[1].run(INFO, "--peer", nodes[0].address)
    assert done.returncode == 1
    assert "beowire-info --listen" in done.stderr
    assert nodes[1].run(INFO, "--peer", "no-such-host.invalid").returncode == 1


def test_info_of_somebody_else_who_listens(nodes: tuple[Node, Node]) -> None:
    script = (
        "import socket; s = socket.create_server(('', 47312)); print(flush=True); "
        "s.accept()[0].sendall(b'220 welcome\\r\\n')"
    )
    other = subprocess.Popen(nodes[0].command("python3", "-c", script), stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        other.stdout.readline()
        done = nodes[1].run(INFO, "--peer", f"{nodes[0].address}:47312")
    finally:
        other.kill()
        other.communicate()
    assert done.returncode == 1
    assert "is not beowire-info" in done.stderr


def test_info_leaves_no_listener_behind(nodes: tuple[Node, Node]) -> None:
    with listening(nodes[0], "--port", "47313"):
        pass
    done = nodes[0].run(INFO, "--peer", f"{nodes[0].address}:47313")
    assert "Connection refused" in done.stderr


def test_info_hears_a_signal_that_comes_as_it_falls_asleep(nodes: tuple[Node, Node]) -> None:
    """By links without a watch, for which it would wake up now and then."""
    done = nodes[0].run(INFO, "--listen", LD_PRELOAD=EARLY_SIGNAL, BEOWIRE_LINKS="local,udp")
    assert done.returncode == 0, done.stderr


# ---- beowire-pingpong ----


def pingpong(
    nodes: tuple[Node, Node], tmp_path: Path, *arguments: str, **variables: str
) -> dict[str, Any]:
    report = tmp_path / "report.json"
    with waiting(nodes[0], **variables):
        words = [PINGPONG, "--json", str(report), *arguments, nodes[0].address]
        done = nodes[1].run(*words, **variables)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(report.read_text())
    assert all(each["transport"] in done.stdout for each in told["results"])
    return told


@pytest.mark.parametrize("wait", ["spin", "block", "adaptive"])
def test_pingpong_latency_of_all_transports(
    nodes: tuple[Node, Node], tmp_path: Path, wait: str
) -> None:
    told = pingpong(
        nodes,
        tmp_path,
        *("--transport", "beowire,tcp,packet", "--wait", wait),
        *("--rounds", "3", "--iterations", "10", "--size", "8,20000"),
    )
    assert told["wait"] == wait
    assert "packet" in told["transports"]["beowire"]
    assert "eth0" in told["transports"]["packet"]
    cases = [(each["size"], each["transport"]) for each in told["results"]]
    assert cases == [(size, name) for size in (8, 20000) for name in ("beowire", "tcp", "packet")]
    for each in told["results"]:
        order = [each[f"{name}_ns"] for name in ("min", "p10", "p50", "p90", "p99", "p999", "max")]
        assert order == sorted(order)
        assert order[0] > 0
        assert len(each["rounds"]) == 3
        assert ("ratio" in each) == (each["transport"] != "beowire")
    for each in told["results"]:
        if "ratio" in each:
            ratio = each["ratio"]
            assert ratio["of"] == "beowire"
            assert 0 < ratio["low"] <= ratio["median"] <= ratio["high"]


@pytest.mark.parametrize("mode", ["bandwidth", "rate"])
def test_pingpong_streams(nodes: tuple[Node, Node], tmp_path: Path, mode: str) -> None:
    told = pingpong(
        nodes,
        tmp_path,
        *("--transport", "beowire,tcp,packet", "--mode", mode, "--rounds", "3"),
        *("--iterations", "32", "--window", "16", "--size", "8,9000,300K"),
    )
    key = "bytes_per_s" if mode == "bandwidth" else "messages_per_s"
    assert len(told["results"]) == 9
    assert all(each[key] > 0 for each in told["results"])


def test_pingpong_over_the_link_asked_for(nodes: tuple[Node, Node], tmp_path: Path) -> None:
    few = ("--rounds", "2", "--iterations", "20")
    told = pingpong(nodes, tmp_path, *few, BEOWIRE_LINKS="udp")
    assert told["transports"]["beowire"].endswith("udp")


def test_pingpong_within_a_node(nodes: tuple[Node, Node], tmp_path: Path) -> None:
    few = ("--rounds", "2", "--iterations", "20", "--size", "8,1M")
    told = pingpong((nodes[0], nodes[0]), tmp_path, *few)
    assert told["transports"]["beowire"].endswith("local")


def test_pingpong_json_on_the_standard_output(nodes: tuple[Node, Node]) -> None:
    with waiting(nodes[0]):
        done = nodes[1].run(
            PINGPONG, "--json", "-", "--rounds", "1", "--iterations", "10", nodes[0].address
        )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["results"]) == 2


def test_pingpong_refuses_bare_frames_on_loopback(nodes: tuple[Node, Node]) -> None:
    with waiting(nodes[0]):
        done = nodes[0].run(PINGPONG, "--transport", "packet", "--interface", "lo", "127.0.0.1")
    assert done.returncode == 1
    assert "Ethernet interface" in done.stderr


def test_pingpong_tells_what_the_other_side_cannot(nodes: tuple[Node, Node]) -> None:
    with waiting(nodes[0], BEOWIRE_INTERFACE="eth7"):
        done = nodes[1].run(PINGPONG, nodes[0].address)
    assert done.returncode == 1
    assert "the other side: cannot open an endpoint: BEOWIRE_INTERFACE=eth7" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--transport", "pigeon", "h"], "pigeon"),
        (["--mode", "fast", "h"], "fast"),
        (["--size", "0", "h"], '"0"'),
        (["--size", "1G", "h"], '"1G"'),
        (["--rounds", "-1", "h"], "-1"),
        (["--wait", "sleepily", "h"], "sleepily"),
        (["one", "two"], "one HOST"),
        (["no-such-host.invalid"], "no-such-host.invalid"),
    ],
)
def test_pingpong_refuses_nonsense(arguments: list[str], hint: str) -> None:
    done = subprocess.run(
        [PINGPONG, *arguments], capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    assert done.returncode == 1
    assert hint in done.stderr


def test_pingpong_survives_a_client_that_talks_nonsense(nodes: tuple[Node, Node]) -> None:
    script = (
        "import socket; s = socket.create_connection(('10.78.0.1', 47099)); "
        "s.sendall(b'run away 9 9 9 9\\n'); print(s.recv(200).decode())"
    )
    server = subprocess.Popen(
        nodes[0].command(PINGPONG), stderr=subprocess.PIPE, text=True, env=environment()
    )
    try:
        assert server.stderr is not None
        server.stderr.readline()
        answer = nodes[1].run("python3", "-c", script)
        assert answer.stdout.startswith("error "), answer.stderr
        done = nodes[1].run(PINGPONG, "-r", "1", "-n", "5", nodes[0].address)
        assert done.returncode == 0, done.stderr
    finally:
        server.kill()
        server.communicate()


def test_pingpong_names_a_port_in_use(nodes: tuple[Node, Node]) -> None:
    del nodes
    with socket.create_server(("", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [PINGPONG, "--port", port], capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
    assert done.returncode == 1
    assert port in done.stderr
    assert "--port" in done.stderr


# ---- beowire-example ----


@pytest.mark.parametrize("link", ["packet", "udp", "local"])
def test_example_greets_and_sends_a_megabyte(nodes: tuple[Node, Node], link: str) -> None:
    there, here = (nodes[0], nodes[0]) if link == "local" else nodes
    waiter = subprocess.Popen(
        there.command(EXAMPLE),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(BEOWIRE_LINKS=link),
    )
    try:
        assert waiter.stdout is not None
        address = waiter.stdout.readline().strip()
        done = here.run(EXAMPLE, address, BEOWIRE_LINKS=link)
        assert done.returncode == 0, done.stderr
        output, errors = waiter.communicate(timeout=LIMIT_S)
    finally:
        waiter.kill()
        waiter.wait()
    assert waiter.returncode == 0, errors
    assert '"Hello over the wire" from' in output
    assert link in output
    assert "and 1048576 bytes: ok" in output


def test_example_without_a_valid_address_fails(nodes: tuple[Node, Node]) -> None:
    done = nodes[0].run(EXAMPLE, "bead")
    assert done.returncode == 1
    assert "Invalid argument" in done.stderr


def test_example_to_somebody_who_is_gone_fails(nodes: tuple[Node, Node]) -> None:
    with listening(nodes[0]) as address:
        pass
    done = nodes[1].run(EXAMPLE, address, BEOWIRE_DEAD_TIMEOUT="2")
    assert done.returncode == 1
    assert "Connection timed out" in done.stderr or "Connection refused" in done.stderr
