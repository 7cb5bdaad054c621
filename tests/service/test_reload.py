# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A new policy for a running beowired, and what it tells the manager that started it."""

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import OTHER, PATIENCE_S, POLICY, USER, Service, attack, hooked, open_directory, served

ASK = "told(Endpoint().answer.kind)"
GIVEN, REFUSED = 3, 4
KNOWN = "known-by-a-plug-in"


def test_a_new_policy_holds_from_then_on(service: Service) -> None:
    assert attack(service, ASK, user=OTHER) == GIVEN
    service.policy.write_text(POLICY.replace(f", {OTHER}", ""))
    reload(service, "the policy was read anew")
    assert attack(service, ASK, user=OTHER) == REFUSED
    assert attack(service, ASK) == GIVEN
    service.policy.write_text("nonsense\n")
    reload(service, "beowired.conf:1: 'nonsense' is no 'key = value'")
    assert attack(service, ASK) == GIVEN


def reload(service: Service, says: str) -> None:
    since = service.log.stat().st_size
    service.process.send_signal(signal.SIGHUP)
    service.await_line(says, since)


def reader(service: Service) -> int:
    """The process that reads its policies."""
    pid = service.process.pid
    (found,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(found)


def test_names_are_looked_up_with_any_system_call(nodes: tuple[str, str], tmp_path: Path) -> None:
    """Long after the service gave up all but a few; the process that does it has no rights."""
    within = hooked(tmp_path, BEOWIRE_HOOK_NAMES=KNOWN)
    with served(nodes[0], f"users = {USER}\ninterfaces = eth0\n", within) as service:
        assert attack(service, ASK, user=OTHER) == REFUSED
        service.policy.write_text(f"users = {KNOWN}\ninterfaces = eth0\n")
        reload(service, "the policy was read anew")
        assert attack(service, ASK, user=OTHER) == GIVEN
        status = Path(f"/proc/{reader(service)}/status").read_text()
        for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert f"{name}:\t{0:016x}\n" in status
        assert "NoNewPrivs:\t1\n" in status


def test_the_service_outlives_the_reader(service: Service) -> None:
    os.kill(reader(service), signal.SIGKILL)
    service.await_line("the process that reads policies has ended")
    reload(service, "stays as it is: nobody reads it; fix: restart the service")
    assert attack(service, ASK) == GIVEN
    assert sum("has ended" in line for line in service.lines()) == 1


@contextlib.contextmanager
def manager() -> Iterator[tuple[socket.socket, Path]]:
    """Hears what a service tells by NOTIFY_SOCKET."""
    with open_directory() as directory, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hearer:
        hearer.bind(str(directory / "notify"))
        hearer.settimeout(PATIENCE_S)
        yield hearer, directory / "notify"


def test_its_state_is_told(nodes: tuple[str, str]) -> None:
    with manager() as (hearer, path):
        with served(nodes[0], within=["env", f"NOTIFY_SOCKET={path}"]) as service:
            assert hearer.recv(100) == b"READY=1"
            for text, says in (("nonsense\n", "stays as it is"), (POLICY, "was read anew")):
                service.policy.write_text(text)
                reload(service, says)
                assert hearer.recv(100) == b"RELOADING=1"
                assert hearer.recv(100) == b"READY=1"
        assert hearer.recv(100) == b"STOPPING=1"


@pytest.mark.parametrize("path", ["", "relative", "/nowhere/at/all", "/" + "long" * 30])
def test_a_manager_that_is_not_there_is_no_matter(nodes: tuple[str, str], path: str) -> None:
    with served(nodes[0], within=["env", f"NOTIFY_SOCKET={path}"]) as service:
        assert attack(service, ASK) == GIVEN
