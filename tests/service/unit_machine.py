# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The service of a machine with systemd, and who speaks by it: a user without privileges, and root
on another node, at the other end of the cable."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from package_boot import Booted
from package_machine import ENVIRONMENT
from user_actor import ACKED, Actor

POLICY = "/etc/beowire/beowired.conf"
GROUP, USER, STRANGER = "cluster", "alice", "mallory"
CABLE = """
set -e
ip link add eth0 mtu 1500 type veth peer name eth0 mtu 1500 netns far
ip link set eth0 up
ip -n far link set eth0 up
"""
"""Between the machine and another node."""
PREPARED = f"""
set -e
ip netns add far
{CABLE}
groupadd {GROUP}
useradd --groups {GROUP} {USER}
useradd {STRANGER}
"""
"""The machine, before there is a service: an interface, another node, users."""


def policy(machine: Booted, text: str) -> None:
    """Writes it, as the administrator does."""
    machine.output(f"printf '{text}' >{POLICY}")


def journal(machine: Booted, words: str = "") -> list[dict[str, Any]]:
    """What it has of the service."""
    command = f"journalctl --sync && journalctl -u beowired -o json --no-pager {words}"
    return [json.loads(line) for line in machine.output(command).splitlines()]


def told(machine: Booted, text: str) -> dict[str, Any]:
    """The last entry of the journal with this text, now or later."""
    machine.until(
        f"journalctl --sync; journalctl -u beowired --grep='{text}' -o cat -n 1 | wc -l", "1"
    )
    return journal(machine, f"--grep='{text}' -n 1")[-1]


class Speaker(Actor):
    """A process on the machine that does as it is told."""

    def __init__(self, machine: Booted, name: str, words: Sequence[str]) -> None:
        command = [*machine.entered(), *words, "/tmp/shared/actor"]
        variables = {"BEOWIRE_NODE": name, "BEOWIRE_LINKS": "packet", "BEOWIRE_LOG": "info"}
        super().__init__(None, name, words=command, **ENVIRONMENT, **variables)
        self.address = ""


@contextlib.contextmanager
def speaker(machine: Booted, name: str, *words: str) -> Iterator[Speaker]:
    """With its endpoint open."""
    made = Speaker(machine, name, words)
    try:
        made.address = made.open()
        yield made
    finally:
        made.leave()


def number(machine: Booted, user: str) -> str:
    """His."""
    return machine.output(f"id -u {user}").strip()


def refused(machine: Booted, user: str) -> None:
    """Has no endpoint."""
    made = Speaker(machine, "refused", ["runuser", "-u", user, "--"])
    made.open_failure()
    made.leave()


@contextlib.contextmanager
def conversation(machine: Booted) -> Iterator[tuple[Speaker, Speaker]]:
    """A user of the machine, and root on the other node."""
    with (
        speaker(machine, "near", "runuser", "-u", USER, "--") as one,
        speaker(machine, "far", "ip", "netns", "exec", "far") as other,
    ):
        yield one, other


def exchange(one: Speaker, other: Speaker, tag: int, length: int = 3000) -> None:
    """A message each way."""
    for sender, receiver, number in ((one, other, tag), (other, one, tag + 1)):
        peer = sender.find(receiver.address)
        sender.send(peer, tag=number, length=length, flags=ACKED, op=number)
        assert receiver.expect("message", tag=number)["ok"]
        assert sender.expect("sent", op=number)["status"] == 0


def frames(one: Speaker) -> int:
    """Payload bytes that came in raw frames."""
    return int(one.stats()["links"]["packet"]["rx_payload"])
