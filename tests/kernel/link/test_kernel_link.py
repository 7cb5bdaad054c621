# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""libbeowire over the kernel module, in a guest.

The provider's tests with the kernel link alone, messages between endpoints with and without the
module, where raw frames pass and where they do not, and socket programs.
"""

import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.selftest import reports
from beowire.vm import machine
from remembered import remembered

HERE = Path(__file__).resolve().parent
PROGRAMS = ["test_cut", "test_getinfo", "test_memory", "test_messages", "test_waiting"]
GUEST_S = 1500  # of all of it
LIMIT_S = 240  # of one program, which takes some seconds where the host has others to serve
SEED = 3  # of the calls that are compared with TCP's: a seed by which much goes each way
MORE_SEEDS = range(4, 10)
pytestmark = pytest.mark.timeout(GUEST_S + 100)  # the guest tells before what it does


@dataclass(frozen=True)
class Told:
    """What the guest wrote, by file, and what its kernel complained of."""

    files: dict[str, str]
    complaints: list[str]

    def carried(self, name: str, side: str) -> dict[str, int]:
        """Payload that an endpoint sent by each link, of those by which it sent any."""
        found = [
            json.loads(text)
            for file, text in self.files.items()
            if file.startswith(f"{name}/{side}/") and file.endswith(".json")
        ]
        assert len(found) == 1, self.files
        links: dict[str, Any] = found[0]["links"]
        return {link: each["tx_payload"] for link, each in links.items() if each["tx_payload"]}

    def counted(self, name: str) -> list[dict[str, Any]]:
        """What the processes of a socket program counted of the connections that left TCP."""
        told = [
            json.loads(text)
            for file, text in self.files.items()
            if file.startswith(f"sockets/{name}/") and file.endswith(".json")
        ]
        assert told, self.files["sockets.log"]
        assert not any(each["lost"] for each in told if "killed" not in name), told
        return [each for process in told for each in process["each"] if each["link"] != "tcp"]

    def ended(self, name: str) -> str:
        """How the two processes of a socket program ended, and what the server said last."""
        return self.files.get(f"sockets/{name}/ended", self.files["sockets.log"]).strip()

    def said(self, name: str) -> str:
        said = self.files[f"{name}/said"]
        assert "status" not in said, said + self.files[f"{name}/waiting"]
        return said


@remembered
def run(seeds: str = str(SEED)) -> Told:
    with tempfile.TemporaryDirectory(dir=places.build_dir()) as name:
        out = Path(name)
        command = [
            str(HERE / "guest.sh"),
            name,
            str(LIMIT_S),
            str(places.provider_dir()),
            str(places.product("programs/beowire-attach").parent),
            str(places.product("tests/kernel/link_room")),
            str(places.product("adapters/sockets/libbeowire-sockets.so")),
            str(places.product("tests/kernel/link_traded")),
            str(places.product("tests/sockets/differ")),
            seeds,
        ]
        command += [str(places.product(f"tests/libfabric/{each}")) for each in PROGRAMS]
        outcome = machine.run(
            machine.Guest(command, memory_mb=2048, limit_s=GUEST_S, shares=[out], modules=True)
        )
        files = [each for each in out.rglob("*") if each.is_file()]
        texts = {str(each.relative_to(out)): each.read_text(errors="replace") for each in files}
        return Told(texts, outcome.complaints)


@pytest.fixture(scope="session")
def guest() -> Told:
    try:
        machine.find_kernel("")
    except BeowireError as error:
        pytest.skip(f"there are no guests here: {error}")
    return run()


@pytest.mark.parametrize("program", PROGRAMS)
def test_provider_over_the_kernel_link(program: str, guest: Told) -> None:
    said = guest.files.get(f"{program}.out", "") + guest.files.get(f"{program}.err", "")
    cases = reports.cmocka_cases(
        program,
        guest.files.get(f"{program}.out", ""),
        guest.files.get(f"{program}.err", "it did not run"),
    )
    assert cases, f"{said} {guest.complaints}"
    assert [each.name for each in cases if each.verdict != "passed"] == [], said
    assert "status" not in guest.files[f"{program}.err"]


def test_info_tells_whether_it_can_be_used(guest: Told) -> None:
    assert "uses no interface; fix: beowire-attach" in guest.files["before"]
    assert "of the kernel module, on eth0, up to 9000 bytes" in guest.files["after"]


def test_attach_tells_what_is_wrong(guest: Told) -> None:
    assert "eth0: the module uses it already" in guest.files["attach"]
    assert "nothere: " in guest.files["attach"]


def test_without_permission_another_link_is_used_and_that_is_told_once(guest: Told) -> None:
    said = guest.files["nobody"]
    # Once to the log, and once in the table of links.
    assert said.count("may not open sockets of the kernel module") == 2, said
    assert said.count("info: no kernel link: ") == 1
    assert "udp     yes" in said


def test_messages_of_all_lengths_go_by_the_kernel_link_by_default(guest: Told) -> None:
    said = guest.said("default")
    for size in (1, 64, 65, 8903, 8904, 16384, 16385, 65536, 65537, 1 << 20, 16 << 20):
        assert f" {size} beowire" in said, said
    for side in ("server", "client"):
        carried = guest.carried("default", side)
        assert list(carried) == ["kernel"]
        assert carried["kernel"] > 3 * (17 << 20)


def test_kernel_and_packet_endpoints_speak_with_each_other(guest: Told) -> None:
    assert f" {1 << 20} beowire" in guest.said("packet")
    assert list(guest.carried("packet", "client")) == ["kernel"]
    assert list(guest.carried("packet", "server")) == ["packet"]


@pytest.mark.parametrize("name", ["udp", "routed", "routed-packet"])
def test_udp_reaches_whom_raw_frames_do_not(name: str, guest: Told) -> None:
    assert f" {1 << 20} beowire" in guest.said(name)
    for side in ("server", "client"):
        assert list(guest.carried(name, side)) == ["udp"]


def test_who_finds_no_room_for_a_send_is_woken(guest: Told) -> None:
    assert guest.files["room"] == "ok 0\n"


def test_strangers_that_nobody_needs_make_room_for_others(guest: Told) -> None:
    assert guest.files["strangers"].startswith("ok 0: "), guest.files["strangers"]


@pytest.mark.parametrize("name", ["anew", "keys", "meets"])
def test_a_program_that_is_linked_with_libbeowire(name: str, guest: Told) -> None:
    """What it tests is said where it begins."""
    assert guest.files[name].splitlines()[-1] == "ok 0", guest.files[name]


def by_the_module(guest: Told, name: str, least: int) -> list[dict[str, Any]]:
    """What both ends counted: so many bytes at least went each way by Beowire, all by the
    module."""
    told = guest.counted(name)
    assert len(told) == 2, told
    assert {each["link"] for each in told} == {"kernel"}, told
    for each in told:
        assert each["tx_beowire"] >= least, told
        assert each["rx_beowire"] >= least, told
    return told


@pytest.mark.parametrize("name", ["exchange", "default"])
def test_connections_of_socket_programs_go_by_the_module(name: str, guest: Told) -> None:
    """With the kernel link alone, and with all links that an endpoint has by default."""
    least = 2_000_000 if name == "exchange" else 300_000
    assert guest.ended(name) == "client 0, server 0: the end"
    by_the_module(guest, name, least)
    assert int(guest.files[f"sockets/{name}/carried"]) >= least
    for side in ("client", "server"):
        said = guest.files[f"sockets/{name}/{side}"]
        assert said.endswith(": Beowire (the kernel module)\n"), said


def test_nothing_else_than_the_module_sends_frames_for_socket_programs(guest: Told) -> None:
    heading, *others = guest.files["sockets/exchange/packet-sockets"].splitlines()
    assert heading.startswith("sk ")
    assert not others
    (port,) = guest.files["sockets/exchange/module-sockets"].splitlines()[1:]
    assert port.split()[:2] == ["rdm", "bound"]


def test_a_connection_survives_the_loss_of_the_module_and_goes_by_it_again(guest: Told) -> None:
    assert guest.ended("rescued") == "client 0, server 0: the end"
    by_the_module(guest, "rescued", 100_000)
    answers = guest.files["sockets/rescued/answers"].splitlines()
    assert [each for each in answers if not each.startswith("trade")] == [
        "switched",
        "lost",
        "switched",
        "half",
    ]


@pytest.mark.parametrize(
    ("name", "ended"),
    [
        ("server-killed", "client 0, server 137: nothing"),
        ("client-killed", "client 137, server 0: ECONNRESET"),
    ],
)
def test_a_peer_that_is_killed_is_no_good_end(name: str, ended: str, guest: Told) -> None:
    assert guest.ended(name) == ended
    (left,) = guest.counted(name)
    assert left["link"] == "kernel"
    assert left["tx_beowire"] >= 100_000
    assert left["rx_beowire"] >= 100_000


def compared(guest: Told, seed: int, least: int) -> None:
    """Calls on connections that go by the module and back return what they return over TCP."""
    name = f"differ-{seed}"
    assert guest.ended(name).startswith("client 0, server 0: "), guest.files[
        f"sockets/{name}/client"
    ]
    told = guest.counted(name)
    assert {each["link"] for each in told} == {"kernel"}, told
    assert sum(each["tx_beowire"] for each in told) > least, told


def test_calls_return_what_they_do_over_tcp(guest: Told) -> None:
    compared(guest, SEED, 100_000)


@pytest.mark.long
@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_calls_return_what_they_do_over_tcp_with_other_seeds(seed: int, guest: Told) -> None:
    del guest  # there are guests here
    compared(run(" ".join(str(each) for each in MORE_SEEDS)), seed, 50_000)


def test_redis(guest: Told) -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is missing")
    assert guest.ended("redis") == "server 0"
    value = f"{7:020000d}"
    assert guest.files["sockets/redis/said"].splitlines()[-10:] == [value] * 10
    (server, client) = guest.counted("redis")
    assert {server["link"], client["link"]} == {"kernel"}
    assert max(server["tx_beowire"], client["tx_beowire"]) >= 10 * len(value)


def test_the_kernel_complains_of_nothing(guest: Told) -> None:
    assert guest.complaints == []


@pytest.mark.parametrize("name", ["key-none", "key-none-any-link", "key-other"])
def test_a_programs_key_is_the_nodes(name: str, guest: Told) -> None:
    """Both fingerprints are told, and the fix."""
    said = guest.files[name]
    assert said.startswith("the key of BEOWIRE_KEY is "), said
    nodes = "none" if "none" in name else fingerprint("42" * 32)
    ours = fingerprint("43" + "42" * 31 if name == "key-other" else "42" * 32)
    assert f"is {ours}, and that of the kernel module is {nodes};" in said
    assert "/proc/sys/net/beowire/key" in said


def fingerprint(digits: str) -> str:
    text = f"beowire key fingerprint\n{digits}\n"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def test_with_the_nodes_key_it_speaks(guest: Told) -> None:
    assert guest.files["key-same"].splitlines()[-1] == "ok 0", guest.files["key-same"]


@pytest.mark.parametrize("name", ["sealed", "sealed-packet"])
def test_what_is_sealed_arrives(name: str, guest: Told) -> None:
    """Between two ports, and between one and an endpoint by bare frames."""
    assert f" {1 << 20} beowire" in guest.said(name)
    server = "packet" if name == "sealed-packet" else "kernel"
    assert list(guest.carried(name, "client")) == ["kernel"]
    assert list(guest.carried(name, "server")) == [server]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("apart-key", "do not have the same cluster key, so they do not talk to each other; fix: "),
        ("apart-encrypt", " encrypts, and "),
    ],
)
def test_what_keeps_two_nodes_apart_is_told_once(name: str, why: str, guest: Told) -> None:
    said = guest.files[f"{name}/said"].splitlines()
    assert said[-1].startswith("status "), said
    assert len([line for line in said if why in line]) == 1, said


HOSTILE = ["stranger-plain", "member-plain", "member-encrypted"]
REFUSED = 1000
"""Hostile frames that the ports must have refused; they are given some thousands."""
ALSO_OF_LOSSES = ("no_buffer", "duplicate", "stale")
"""Why frames of the two are refused as well, where some are lost and come again."""
MEMORY_MAX = 64 << 20
"""Bytes that a port's engine may take, and that may wait in its socket (`memory_max`)."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_frames_do_no_harm(name: str, guest: Told) -> None:
    """A third node speaks to one of two whose bytes are checked: none is wrong, no conversation
    ends, and the module's memory is bounded. It is a stranger, or has the cluster's key."""
    files = {
        file.removeprefix(f"hostile/{name}/"): text
        for file, text in guest.files.items()
        if file.startswith(f"hostile/{name}/")
    }
    assert "held" in files, guest.files["hostile.log"]
    for side in "01":
        assert files[f"said-{side}"].startswith("ok named: "), files
        assert "status" not in files[f"said-{side}"], files
    assert "status" not in files["spoke"], files
    told = [json.loads(text) for file, text in files.items() if file.endswith(".json")]
    assert len(told) == 2
    refused = [
        {reason: n for reason, n in each["drops"].items() if reason not in ALSO_OF_LOSSES}
        for each in told
    ]
    assert sum(sum(each.values()) for each in refused) > REFUSED, refused
    assert all(each["encrypted"] == name.endswith("encrypted") for each in told)
    numbers = [int(word) for word in files["spoke"].split() if word.isdigit()]
    assert min(numbers[:1] + numbers[2:] if name.startswith("stranger") else numbers) > 0, files
    before, most = map(int, files["held"].split())
    assert before < most < before + 2 * 2 * MEMORY_MAX


def test_nothing_is_held_at_the_end(guest: Told) -> None:
    assert guest.files["held"] == "0\n"
    assert guest.complaints == []
