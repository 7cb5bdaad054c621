# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What beowired seldom meets: a list of sockets that is not whole, and gates that are full."""

import time
from pathlib import Path

import user_net
from served import PATIENCE_S, attack, attacking, hooked, served
from test_attacks import LEAK

OPEN_ONE = "e = Endpoint()\ntold([e.answer.kind, e.answer.error, e.answer.text])"


def test_who_is_missed_once_is_not_gone(nodes: tuple[str, str], tmp_path: Path) -> None:
    """A leaked socket stays charged while at least every other look finds it."""
    looks = tmp_path / "looks"
    looks.touch()
    within = hooked(tmp_path, BEOWIRE_HOOK_LOOKS=str(looks))
    with served(nodes[0], within=within) as service:
        with attacking(service, LEAK) as leak:
            leak.hear()
            service.await_line("closed uid=")
            until = time.monotonic() + PATIENCE_S
            while looks.stat().st_size < 6:
                assert service.counts()["living"] == 1
                assert time.monotonic() < until
            assert service.counts()["living"] == 1
            leak.go_on()
            leak.hear()
            leak.go_on()
        service.await_living(0)


def test_the_ended_take_no_room(nodes: tuple[str, str]) -> None:
    """Engine numbers that ended are remembered, and more of them than may live at a time; those
    that come find room beside them."""
    with served(nodes[0], within=["prlimit", "--nofile=72"]) as service:
        service.await_line("for up to 2 endpoints")
        for _ in range(6):
            assert attack(service, OPEN_ONE) == [3, 0, ""]
            service.await_living(0)


def test_a_full_gate_is_told(nodes: tuple[str, str], tmp_path: Path) -> None:
    with served(nodes[0], within=hooked(tmp_path, BEOWIRE_HOOK_FULL="1")) as service:
        why = "the gate of eth0 takes no more endpoints: Argument list too long"
        assert attack(service, OPEN_ONE) == [4, -7, why]
        service.await_living(0)
        counts = service.counts()
        assert (counts["opened"], counts["refused"], counts["closed"]) == (0, 1, 0)
        assert why in service.await_line("refused uid=")


def test_an_mtu_that_grows_meanwhile_is_not_the_rings(tmp_path: Path) -> None:
    """The slots are for frames of the interface as it was when the endpoint was asked for."""
    held = tmp_path / "held"
    held.touch()
    within = hooked(tmp_path, BEOWIRE_HOOK_BIND=str(held))
    code = "told(Endpoint().answer.mtu)"
    with user_net.pair(mtu=1500) as nodes, served(nodes[0], within=within) as service:
        with attacking(service, code) as asks:
            until = time.monotonic() + PATIENCE_S
            while not held.with_suffix(".there").exists():
                assert time.monotonic() < until
                time.sleep(0.01)
            for node in nodes:
                user_net.link_set(node, "eth0", "mtu 9000")
            while (
                "mtu 9000"
                not in user_net.ip(f"-n {nodes[0]} -o link show type veth")
                .split("beowired")[1]
                .partition("\n")[0]
            ):
                assert time.monotonic() < until
                time.sleep(0.01)
            held.unlink()
            assert asks.hear() == 1500
        assert attack(service, code) == 9000
