# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Environment variables: wrong values are named, limits and links are what was asked for."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import user_net
from beowire import places
from user_actor import ACKED, LATER, NOW, PATIENCE_S, actor, couple

WRONG = [
    ("BEOWIRE_WAIT", "sometimes", "spin, adaptive or block"),
    ("BEOWIRE_LINKS", "packet,pigeon", "local, packet, udp and kernel"),
    ("BEOWIRE_LINKS", "packet,", "local, packet, udp and kernel"),
    ("BEOWIRE_ETHERTYPE", "0x12", "hexadecimal"),
    ("BEOWIRE_ETHERTYPE", "88B5x", "hexadecimal"),
    ("BEOWIRE_ETHERTYPE", "0800", "none of IP's"),
    ("BEOWIRE_ETHERTYPE", "8100", "none of IP's"),
    ("BEOWIRE_DEAD_TIMEOUT", "0", "from 1 to 86400"),
    ("BEOWIRE_DEAD_TIMEOUT", "-5", "from 1 to 86400"),
    ("BEOWIRE_EAGER_MAX", "70000", "from 1 to 65536"),
    ("BEOWIRE_UDP_PORTS", "50000-40000", "lo-hi"),
    ("BEOWIRE_UDP_PORTS", "47100", "lo-hi"),
    ("BEOWIRE_UDP_ADDRESS", "nowhere", "IPv4"),
    ("BEOWIRE_UDP_OFFLOAD", "1", "on or off"),
    ("BEOWIRE_CHECKSUM", "maybe", "on or off"),
    ("BEOWIRE_HELPER", "yes", "on or off"),
    ("BEOWIRE_MTU", "10", "from 576"),
    ("BEOWIRE_RING", "5", "262144"),
    ("BEOWIRE_LOG", "loud", "error, warn, info or debug"),
]


@pytest.mark.parametrize(("name", "value", "allowed"), WRONG)
def test_wrong_value_is_named_with_what_is_allowed(
    nodes: tuple[str, str], name: str, value: str, allowed: str
) -> None:
    with actor(nodes[0], **{name: value}) as one:
        failed = one.open_failure()
    assert failed["result"] == -22  # EINVAL
    assert f"{name}={value}" in failed["why"]
    assert allowed in failed["why"]


def test_empty_value_counts_as_unset(nodes: tuple[str, str]) -> None:
    with actor(nodes[0], **{name: "" for name, _, _ in WRONG}) as one:
        one.open()


def test_address_that_is_not_here(nodes: tuple[str, str]) -> None:
    with actor(nodes[0], BEOWIRE_UDP_ADDRESS="10.9.8.7") as one:
        why = one.open_failure()["why"]
    assert "BEOWIRE_UDP_ADDRESS=10.9.8.7" in why
    assert "10.77.0.1" in why


def test_ports_run_out(nodes: tuple[str, str]) -> None:
    ports = {"BEOWIRE_LINKS": "udp", "BEOWIRE_UDP_PORTS": "47200-47201"}
    with actor(nodes[0], **ports) as a, actor(nodes[0], **ports) as b:
        a.open()
        b.open()
        with actor(nodes[0], **ports) as c:
            failed = c.open_failure()
    assert failed["result"] == -98  # EADDRINUSE
    assert "47200-47201" in failed["why"]
    assert "BEOWIRE_UDP_PORTS" in failed["why"]


def unprivileged(node: str, **variables: str) -> "subprocess.Popen[str]":
    """An actor without any capability."""
    drop = "setpriv --reuid=65534 --clear-groups --bounding-set=-all --inh-caps=-all"
    program = str(places.product("tests/user/actor"))
    return subprocess.Popen(
        ["ip", "netns", "exec", node, *drop.split(), program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )


def test_without_privilege_udp_is_used(nodes: tuple[str, str]) -> None:
    process = unprivileged(nodes[0], BEOWIRE_LOG="info", PMIX_NAMESPACE=f"{nodes[0]}-info")
    out, complaints = process.communicate("open\nstats\n", timeout=240)
    opened, stats = (json.loads(line) for line in out.splitlines())
    assert opened["result"] == 0
    assert stats["stats"]["interface"] == ""
    assert "CAP_NET_RAW" in complaints


def test_without_privilege_packet_alone_fails(nodes: tuple[str, str]) -> None:
    process = unprivileged(nodes[0], BEOWIRE_LINKS="packet")
    out, _ = process.communicate("open\n", timeout=240)
    opened = json.loads(out)
    assert opened["result"] == -13  # EACCES
    assert "CAP_NET_RAW" in opened["why"]
    assert "udp" in opened["why"]


def test_no_interface_at_all_is_no_error_for_local() -> None:
    with user_net.network() as net:
        node = net.node("a")
        with couple((node, node)) as two:
            assert two.a.send(two.to_b, tag=1, length=8) == NOW
            assert two.b.expect("message", tag=1)["ok"]
        with actor(node, BEOWIRE_LINKS="packet,udp") as one:
            assert one.open_failure()["result"] == -19  # ENODEV


def test_too_few_descriptors_are_named_with_the_fix() -> None:
    """However far opening gets: the same error, nothing left, and at last it works."""
    command = [str(places.product("tests/user/actor"))]
    results = []
    for limit in range(4, 40):
        done = subprocess.run(
            ["prlimit", f"--nofile={limit}", *command],
            input="open\n",
            capture_output=True,
            text=True,
            check=True,
            env={"BEOWIRE_LINKS": "local"},
        )
        opened = json.loads(done.stdout)
        results.append(opened["result"])
        if opened["result"] == 0:
            break
        assert opened["result"] == -24  # EMFILE
        assert "ulimit -n" in opened["why"]
    assert len(results) > 3
    assert results[-1] == 0


def test_without_shared_memory_other_links_are_used(nodes: tuple[str, str]) -> None:
    """Where no file may grow, memory to be shared cannot be made either."""
    node = ["ip", "netns", "exec", nodes[0]]
    limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 0; exec "$0"']
    for links, result in (("local,udp", 0), ("local", -27)):  # EFBIG
        done = subprocess.run(
            [*node, *limited, str(places.product("tests/user/actor"))],
            input="open\n",
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "BEOWIRE_LINKS": links, "BEOWIRE_LOG": "info"},
        )
        opened = json.loads(done.stdout)
        assert opened["result"] == result, opened
        if result == 0:
            assert "no shared memory within this node: File too large" in done.stderr
        else:
            assert "cannot open the local link: File too large" in opened["why"]


@pytest.mark.parametrize("link", ["packet", "udp", "local"])
def test_eager_limit_is_obeyed(nodes: tuple[str, str], link: str) -> None:
    where = (nodes[0], nodes[0]) if link == "local" else nodes
    with couple(where, BEOWIRE_EAGER_MAX="100", BEOWIRE_LINKS=link) as two:
        assert two.a.send(two.to_b, tag=1, length=100) == NOW
        assert two.a.send(two.to_b, tag=2, length=101, op=2) == LATER
        assert not two.b.expect("message", tag=1)["envelope"]
        assert two.b.expect("message", tag=2)["envelope"]


def test_frame_size_is_capped(nodes: tuple[str, str]) -> None:
    with couple(nodes, BEOWIRE_MTU="1000", BEOWIRE_LINKS="packet") as two:
        two.a.send(two.to_b, tag=1, length=1_000_000, op=1)
        assert two.b.expect("pulled", tag=1)["ok"]
        counted = two.b.stats()["links"]["packet"]
        assert counted["rx_bytes"] / counted["rx_frames"] <= 1000


def test_smaller_frame_of_the_two_ends_is_used(nodes: tuple[str, str]) -> None:
    with (
        actor(nodes[0], BEOWIRE_MTU="1200") as a,
        actor(nodes[1]) as b,
    ):
        addr = a.open()
        b.open()
        to_a = b.find(addr)
        b.send(to_a, tag=1, length=1_000_000, op=1)
        assert a.expect("pulled", tag=1)["ok"]
        counted = a.stats()["links"]["packet"]
        assert counted["rx_bytes"] / counted["rx_frames"] <= 1200


def test_checksum_can_be_left_off_by_one_side(nodes: tuple[str, str]) -> None:
    with actor(nodes[0], BEOWIRE_CHECKSUM="off") as a, actor(nodes[1]) as b:
        addr_a, addr_b = a.open(), b.open()
        a.send(a.find(addr_b), tag=1, length=300_000, op=1)
        b.send(b.find(addr_a), tag=2, length=300_000, op=2)
        assert b.expect("pulled", tag=1)["ok"]
        assert a.expect("pulled", tag=2)["ok"]


@pytest.mark.parametrize("ethertype", ["080A", "0x88b6"])
def test_other_ethertype(nodes: tuple[str, str], ethertype: str) -> None:
    with couple(nodes, BEOWIRE_ETHERTYPE=ethertype, BEOWIRE_LINKS="packet") as two:
        two.a.send(two.to_b, tag=1, length=10, flags=ACKED, op=1)
        assert two.b.expect("message", tag=1)["ok"]


def test_different_ethertypes_meet_over_udp(nodes: tuple[str, str]) -> None:
    with actor(nodes[0], BEOWIRE_ETHERTYPE="88B6") as a, actor(nodes[1]) as b:
        a.open()
        to_b = a.find(b.open())
        a.send(to_b, tag=1, length=10, flags=ACKED, op=1)
        assert b.expect("message", tag=1)["ok"]
        assert a.link(to_b) == "udp"


def written(directory: Path) -> list[dict[str, Any]]:
    """The counters files."""
    return [json.loads(path.read_text()) for path in sorted(directory.iterdir())]


@pytest.mark.parametrize("ending", ["close 1000", "exit 0"])
def test_counters_are_written(nodes: tuple[str, str], tmp_path: Path, ending: str) -> None:
    with couple(nodes, BEOWIRE_STATS=str(tmp_path), BEOWIRE_LINKS="packet") as two:
        two.a.send(two.to_b, tag=1, length=1000, flags=ACKED, op=1)
        two.a.expect("sent", op=1)
        two.a.tell(ending)
        if ending.startswith("close"):
            two.a.expect("close")
        else:
            two.a.process.wait()
        files = list(tmp_path.iterdir())
        assert [file.name for file in files] == [f"alpha-{two.a.pid}-0.json"]
        counters = json.loads(files[0].read_text())
    assert counters["host"] == "alpha"
    assert counters["pid"] == two.a.pid
    assert counters["links"]["packet"]["tx_payload"] >= 1000
    assert {"short", "foreign", "cluster", "engine", "data"} <= counters["drops"].keys()
    assert counters["peers"] == 1
    assert {"node", "engine", "retransmits", "acks_tx", "acks_rx"} <= counters.keys()


@pytest.mark.parametrize("link", ["packet", "udp"])
@pytest.mark.parametrize("how", ["close 1000", "exit 0"])
def test_counters_include_the_farewell(
    nodes: tuple[str, str], tmp_path: Path, link: str, how: str
) -> None:
    """What one side says it sent is what the other side got, the goodbye too."""
    with couple(nodes, BEOWIRE_STATS=str(tmp_path), BEOWIRE_LINKS=link) as two:
        two.a.send(two.to_b, tag=1, length=8, flags=ACKED, op=1)
        two.a.expect("sent", op=1)
        engine = two.a.stats()["engine"]
        two.a.tell(how)
        two.b.expect("down", status=-108)
        two.a.leave()  # what it says again has been sent, too
        sent = [each for each in written(tmp_path) if each["engine"] == engine]
        assert len(sent) == 1
        frames = sent[0]["links"][link]["tx_frames"]
        # What came last is taken by the next round.
        until = time.monotonic() + PATIENCE_S
        while (got := two.b.stats()["links"][link]["rx_frames"]) < frames:
            assert time.monotonic() < until, (got, frames)
            time.sleep(0.01)
    assert got == frames


def test_full_disk_is_reported_and_harmless(nodes: tuple[str, str]) -> None:
    full = f"/dev/shm/us-full-{os.getpid()}"
    Path(full).mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", full], check=True)
    try:
        Path(full, "filler").write_bytes(b"x" * 4096)
        with couple(nodes, BEOWIRE_STATS=full) as two:
            two.a.send(two.to_b, tag=1, length=1000, flags=ACKED, op=1)
            two.a.expect("sent", op=1)
            two.a.ask("close 1000", "close")
            assert two.a.leave() == 0
            assert "cannot write the counters" in two.a.complaints
            assert "No space left on device" in two.a.complaints
        assert [entry.name for entry in Path(full).iterdir()] == ["filler"]
    finally:
        subprocess.run(["umount", full], check=True)
        Path(full).rmdir()
