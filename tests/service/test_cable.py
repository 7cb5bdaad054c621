# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The cables of beowired: nobody cuts those of a service that is there, and one that was cut by
somebody else is laid again."""

import subprocess

import user_net
from served import Service, attacking, client, served
from test_served import PEER, exchange, opened
from user_actor import actor


def cable(node: str) -> str:
    """The name of the cable's near end."""
    index = user_net.ip(f"-n {node} -o link show eth0").split(":")[0]
    return f"beowired{index}"


def second(service: Service) -> "subprocess.CompletedProcess[str]":
    """Starts another service on the same interface: it ends at once, or the test does."""
    words = service.command()
    words[-1] = str(service.directory / "second.sock")
    return subprocess.run(
        ["ip", "netns", "exec", service.node, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_second_service_does_not_start(service: Service, nodes: tuple[str, str]) -> None:
    with client(service) as one, actor(nodes[1], "peer", **PEER) as peer:
        opened(one)
        opened(peer)
        done = second(service)
        assert done.returncode == 1
        assert "eth0: claiming it, which another beowired may have done" in done.stderr
        exchange(one, peer)
    assert "is gone" not in service.log.read_text()
    assert service.stop() == 0
    service.start()  # the claim is free again


SQUAT = """
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("\\0beowired/" + sys.stdin.readline().strip())
s.listen()
print(json.dumps("taken"), flush=True)
sys.stdin.readline()
"""


def test_a_user_keeps_no_service_out(service: Service) -> None:
    """He may take the name first; nobody believes him."""
    assert service.stop() == 0
    with attacking(service, SQUAT) as squatter:
        assert squatter.process.stdin is not None
        squatter.process.stdin.write(cable(service.node).removeprefix("beowired") + "\n")
        squatter.process.stdin.flush()
        assert squatter.hear() == "taken"
        service.start()
        with client(service) as one:
            opened(one)


def test_a_cable_that_was_cut_is_laid_again() -> None:
    """Its endpoints end with it; clients ask for new ones."""
    with (
        user_net.pair() as nodes,
        served(nodes[0]) as service,
        client(service) as one,
        actor(nodes[1], "peer", **PEER) as peer,
    ):
        opened(one)
        opened(peer)
        exchange(one, peer)
        user_net.ip(f"-n {nodes[0]} link del {cable(nodes[0])}")
        service.await_line("the cable of eth0 is gone")
        service.await_line("interface eth0 is there again")
        service.await_living(1)
        exchange(one, peer, tag=11)
