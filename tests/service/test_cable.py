# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The cables of beowired: nobody cuts those of a service that is there, and one that was cut by
somebody else is laid again."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import user_net
from served import PATIENCE_S, Attacker, Service, attacking, client, hooked, served
from test_served import PEER, exchange, opened
from user_actor import actor


def cable(node: str) -> str:
    """The name of the cable's near end."""
    index = user_net.ip(f"-n {node} -o link show eth0").split(":")[0]
    return f"beowired{index}"


def second(service: Service, *within: str) -> "subprocess.CompletedProcess[str]":
    """Starts another service on the same interface: it ends at once, or the test does."""
    words = service.command()
    words[-1] = str(service.directory / "second.sock")
    return subprocess.run(
        ["ip", "netns", "exec", service.node, *within, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refused(done: "subprocess.CompletedProcess[str]") -> bool:
    """Whether it ended because there is another one."""
    why = "eth0: claiming it, which another beowired may have done"
    return done.returncode == 1 and why in done.stderr


def test_a_second_service_does_not_start(service: Service, nodes: tuple[str, str]) -> None:
    """However often it is tried."""
    with client(service) as one, actor(nodes[1], "peer", **PEER) as peer:
        opened(one)
        opened(peer)
        for tag in range(1, 9, 2):
            assert refused(second(service))
            exchange(one, peer, tag=tag)
    assert "is gone" not in service.log.read_text()
    assert service.stop() == 0
    service.start()  # the claim is free again


SQUAT = """
FORMS = {"one": ["/0"], "all": ["/0", *(f"/0/{i}" for i in range(1, 8))]}
index, forms = sys.stdin.readline().split()
held = []
for form in FORMS[forms]:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind("\\0beowired/" + index + form)
    s.listen()
    held.append(s)
print(json.dumps("taken"), flush=True)
sys.stdin.readline()
"""
CALL = """
index = sys.argv[2]
held = []
for i in range(5000):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(50)
    s.connect("\\0beowired/" + index + "/0")
    held = [*held[-9:], s]
print(json.dumps([s.recv(1) == b"" for s in held]), flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def squatting(service: Service, forms: str) -> Iterator[Attacker]:
    """A user who holds one form of the claim's name, or all."""
    with attacking(service, SQUAT) as squatter:
        assert squatter.process.stdin is not None
        index = cable(service.node).removeprefix("beowired")
        squatter.process.stdin.write(f"{index} {forms}\n")
        squatter.process.stdin.flush()
        assert squatter.hear() == "taken"
        yield squatter


def test_a_user_keeps_no_service_out(service: Service) -> None:
    """He may take the name first; nobody believes him, and the service is found all the same."""
    assert service.stop() == 0
    with squatting(service, "one"):
        service.start()
        with client(service) as one:
            opened(one)
        assert refused(second(service))
    assert refused(second(service))  # though the name that he had is free now
    assert "names that claim" not in service.log.read_text()


def test_a_user_who_holds_every_name_is_told_of(service: Service) -> None:
    assert service.stop() == 0
    with squatting(service, "all"):
        service.start()
        service.await_line("other users hold all names that claim interface")
        with client(service) as one:
            opened(one)


def test_calls_of_a_user_hide_no_service(service: Service) -> None:
    """He may call as often as he likes, and hold his calls."""
    index = cable(service.node).removeprefix("beowired")
    with attacking(service, CALL, words=[index]) as caller:
        assert caller.hear() == [True] * 10
        assert refused(second(service))


@contextlib.contextmanager
def between(service: Service, place: Path) -> Iterator["subprocess.Popen[str]"]:
    """A first service that has its claim's name and does not listen yet, until `place`/between is
    removed."""
    within = hooked(place, BEOWIRE_HOOK_LISTEN=str(place / "between"))
    words = ["ip", "netns", "exec", service.node, *within, *service.command()]
    words[-1] = str(service.directory / "first.sock")
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as first:
        try:
            until = time.monotonic() + PATIENCE_S
            while not (place / "between").exists():
                assert first.poll() is None
                assert time.monotonic() < until
                time.sleep(0.01)
            yield first
        finally:
            first.kill()


def test_of_two_that_start_together_one_does(service: Service, tmp_path: Path) -> None:
    """The second one comes while the first has the name and does not listen yet, and asks again."""
    assert service.stop() == 0
    with between(service, tmp_path) as first:
        asks = hooked(tmp_path, BEOWIRE_HOOK_PAUSE=str(tmp_path / "between"))
        assert refused(second(service, *asks))
        assert not (tmp_path / "between.own").exists()
        assert first.stderr is not None
        assert "ready at" in first.stderr.readline()


def test_who_listens_late_gives_way(service: Service, tmp_path: Path) -> None:
    """Nobody waits for ever for who has the name: the second one serves, and the first finds it."""
    assert service.stop() == 0
    with between(service, tmp_path) as first:
        service.start()
        (tmp_path / "between").unlink()
        assert refused(heard(first))
    with client(service) as one:
        opened(one)


def heard(process: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
    """How a process ended, and what it said."""
    _, said = process.communicate(timeout=PATIENCE_S)
    return subprocess.CompletedProcess(process.args, process.returncode, "", said)


@contextlib.contextmanager
def is_laid_again(nodes: tuple[str, str], verb: str, how: str = "") -> Iterator[None]:
    """What ip link does to the cable ends endpoints, whose clients ask for new ones; the block runs
    while they have them."""
    with (
        served(nodes[0]) as service,
        client(service) as one,
        actor(nodes[1], "peer", **PEER) as peer,
    ):
        opened(one)
        opened(peer)
        exchange(one, peer)
        user_net.ip(f"-n {nodes[0]} link {verb} {cable(nodes[0])} {how}")
        service.await_line("the cable of eth0 is gone")
        service.await_line("interface eth0 is there again")
        service.await_living(1)
        exchange(one, peer, tag=11)
        yield


def test_a_cable_that_was_cut_is_laid_again() -> None:
    """Its endpoints end with it; clients ask for new ones."""
    with user_net.pair() as nodes, is_laid_again(nodes, "del"):
        pass


def cables(node: str) -> list[str]:
    """The interfaces of a node that are veth, without the test's own."""
    lines = user_net.ip(f"-n {node} -o link show type veth").splitlines()
    names = [line.split()[1].split("@")[0].rstrip(":") for line in lines]
    return [name for name in names if name != "eth0"]


def test_a_cable_that_is_moved_is_laid_again() -> None:
    """Where it was moved to nothing stays of it."""
    with user_net.pair() as nodes, is_laid_again(nodes, "set", f"netns {nodes[1]}"):
        assert (cables(nodes[0]), cables(nodes[1])) == ([cable(nodes[0])], [])


def test_a_cable_that_is_renamed_is_kept() -> None:
    """It carries frames as before, and is removed in the end under whatever name."""
    with user_net.pair() as nodes, served(nodes[0]) as service:
        name = cable(nodes[0])
        for change in ("down", "name other0", "up"):
            user_net.ip(f"-n {nodes[0]} link set {name} {change}")
            name = change.removeprefix("name ") if " " in change else name
        with client(service) as one, actor(nodes[1], "peer", **PEER) as peer:
            opened(one)
            opened(peer)
            exchange(one, peer)
            assert "is gone" not in service.log.read_text()
        assert service.stop() == 0
        assert cables(nodes[0]) == []
