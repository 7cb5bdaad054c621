# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Waiting in every way, the helper thread, and what becomes of fork() and exit()."""

import contextlib
import os
import signal
import subprocess
import time
from itertools import product
from pathlib import Path

import pytest
import user_net
from beowire.status import boards
from user_actor import ACKED, LATER, NOW, PATIENCE_S, Couple, actor, couple

FOR_EVER_MS = 600_000
"""Until the actor is told something else, or is ended."""
SOON_S = 120
"""Far more than it takes."""


def processor_s(pid: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("wait", ["spin", "adaptive", "block"])
@pytest.mark.parametrize("mode", ["wait", "progress", "fd"])
def test_messages_pass_in_every_mode(nodes: tuple[str, str], wait: str, mode: str) -> None:
    for where in (nodes, (nodes[0], nodes[0])):
        with couple(where, BEOWIRE_WAIT=wait) as two:
            two.b.ask(f"mode {mode}", "mode")
            for tag in range(20):
                assert two.a.send(two.to_b, tag=tag, length=100) == NOW
                assert two.b.expect("message", tag=tag)["ok"]
            two.a.send(two.to_b, tag=50, length=1_000_000, op=50)
            assert two.b.expect("pulled", tag=50)["ok"]
            assert two.a.expect("sent", op=50)["status"] == 0


def spent_in_2_s(idle: dict[str, Couple]) -> dict[str, float]:
    """Processor time of the second endpoint of each couple, all of them in the same two seconds."""
    pids = {name: two.b.pid for name, two in idle.items()}
    before = {name: processor_s(pid) for name, pid in pids.items()}
    began = time.monotonic()
    time.sleep(2)
    spent = {name: processor_s(pid) - before[name] for name, pid in pids.items()}
    took = time.monotonic() - began  # longer on a busy machine
    return {name: each * 2 / took for name, each in spent.items()}


def test_sleepers_use_no_processor_while_the_interface_is_down() -> None:
    """The error that it leaves on the socket must not keep poll() awake."""
    with contextlib.ExitStack() as stack:
        nodes = stack.enter_context(user_net.pair())
        idle = {}
        for mode in ("wait", "fd"):
            idle[mode] = stack.enter_context(couple(nodes, BEOWIRE_LINKS="packet"))
            idle[mode].b.ask(f"mode {mode}", "mode")
        user_net.link_set(nodes[1], "eth0", "down")
        spent = spent_in_2_s(idle)
    assert max(spent.values()) < 0.1, spent


def test_sleepers_use_no_processor(nodes: tuple[str, str]) -> None:
    """An endpoint that waits for nothing in particular costs almost nothing."""
    with contextlib.ExitStack() as stack:
        idle = {}
        for wait, mode in product(("adaptive", "block"), ("wait", "fd")):
            two = stack.enter_context(couple(nodes, BEOWIRE_WAIT=wait))
            two.a.send(two.to_b, tag=1, length=8, flags=ACKED, op=1)
            two.a.expect("sent", op=1)
            two.b.ask(f"mode {mode}", "mode")
            idle[f"{wait} {mode}"] = two
        spent = spent_in_2_s(idle)
    assert max(spent.values()) < 0.5, spent


def test_idle_program_costs_nothing(nodes: tuple[str, str]) -> None:
    """Nobody makes progress: the helper sleeps."""
    with couple(nodes) as two:
        two.b.ask("mode idle", "mode")
        time.sleep(0.5)
        assert spent_in_2_s({"idle": two})["idle"] < 0.1


def helper_naps(pid: int) -> int:
    """How often the helper thread of a process has gone to sleep."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text() == "beowire\n":
            status = (task / "status").read_text()
            return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])
    raise AssertionError("there is no helper thread")


@pytest.mark.parametrize("link", ["packet", "udp", "local"])
def test_helper_of_an_idle_endpoint_hardly_wakes_up(nodes: tuple[str, str], link: str) -> None:
    """Less than 5 times a second, whether the program sleeps or computes: for two times in a row,
    all of them, as one that wakes up often may rest for a while."""
    where = (nodes[0], nodes[0]) if link == "local" else nodes
    pastimes = ("mode fd", f"wait {FOR_EVER_MS}", f"compute {FOR_EVER_MS}", "mode idle")
    naps: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        pids = {}
        for pastime in pastimes:
            two = stack.enter_context(couple(where, BEOWIRE_LINKS=link))
            two.a.send(two.to_b, tag=1, length=8, flags=ACKED, op=1)
            two.a.expect("sent", op=1)
            two.b.expect("message", tag=1)
            two.b.ask("mode idle", "mode")
            two.b.tell(pastime)
            pids[pastime] = two.b.pid
        # Once the search for the size of frames, and late acknowledgements, are over.
        until = time.monotonic() + SOON_S
        in_a_row = 0
        while in_a_row < 2:
            assert time.monotonic() < until, naps
            naps = naps_in_3_s(pids)
            in_a_row = in_a_row + 1 if max(naps.values()) < 5 else 0


def naps_in_3_s(pids: dict[str, int]) -> dict[str, float]:
    """How often a second each of these helpers goes to sleep."""
    began = time.monotonic()
    before = {pastime: helper_naps(pid) for pastime, pid in pids.items()}
    time.sleep(3)
    took = time.monotonic() - began
    return {pastime: (helper_naps(pid) - before[pastime]) / took for pastime, pid in pids.items()}


def test_timeout_of_wait_is_kept(nodes: tuple[str, str]) -> None:
    with actor(nodes[0], BEOWIRE_WAIT="block") as one:
        one.open()
        one.ask("mode idle", "mode")
        waited = one.ask("wait 300", "wait")
        while waited["result"] > 0:  # it ends as soon as anything was handled, whoever sent it
            waited = one.ask("wait 300", "wait")
        assert waited["result"] == 0, waited
        assert waited["ms"] >= 300, waited


def test_helper_serves_while_the_program_computes(each_link: Couple) -> None:
    """A peer's acknowledgement, its pull of a long message and its read need no program."""
    a, b = each_link.a, each_link.b
    a.ask("mode idle", "mode")
    b.ask("policy hold", "policy")
    assert a.send(each_link.to_b, tag=1, length=2_000_000, op=1) == LATER
    b.expect("message", tag=1)
    a.tell(f"compute {FOR_EVER_MS}")
    b.send(each_link.to_a, tag=2, length=100, flags=ACKED, op=2)
    assert b.expect("sent", op=2)["status"] == 0
    b.tell("pull 3 2000000")
    assert b.expect("pulled", op=3)["ok"]
    assert b.ask(f"read {each_link.to_a} 77 0 1000000 4", "read")["result"] == 0
    assert b.expect("pulled", op=4)["ok"]
    a.ask("mode idle", "compute")  # it computed until then


def test_message_leaves_before_the_program_computes(nodes: tuple[str, str]) -> None:
    with couple(nodes, BEOWIRE_LINKS="packet", BEOWIRE_HELPER="off") as two:
        two.a.send(two.to_b, tag=1, length=8, flags=ACKED, op=1)
        two.a.expect("sent", op=1)
        two.a.ask("mode idle", "mode")
        two.a.tell(f"send {two.to_b} 1 7 1000 0 0")
        two.a.tell(f"compute {FOR_EVER_MS}")
        assert two.b.expect("message", tag=7)["ok"]


def test_without_helper_nothing_is_served_meanwhile(nodes: tuple[str, str]) -> None:
    """The opposite of the above: it is the helper that does it."""
    with couple(nodes, "no_helper", BEOWIRE_LINKS="packet") as two:
        two.a.send(two.to_b, tag=1, length=8, flags=ACKED, op=1)
        two.a.expect("sent", op=1)
        two.a.ask("mode idle", "mode")
        two.a.tell(f"compute {FOR_EVER_MS}")
        two.b.send(two.to_a, tag=2, length=100, flags=ACKED, op=2)
        time.sleep(1)
        assert not two.b.has_said("sent")
        two.a.ask("mode wait", "mode")
        assert two.b.expect("sent", op=2)["status"] == 0


@pytest.mark.parametrize("how", ["close", "exit"])
def test_fork_leaves_the_endpoint_to_the_parent(each_link: Couple, how: str) -> None:
    a = each_link.a
    a.send(each_link.to_b, tag=1, length=8, flags=ACKED, op=1)
    a.expect("sent", op=1)
    assert a.ask(f"fork {how}", "fork")["status"] == 0
    a.send(each_link.to_b, tag=2, length=1_000_000, op=2)
    assert each_link.b.expect("pulled", tag=2)["ok"]
    assert a.expect("sent", op=2)["status"] == 0


def test_child_that_uses_the_endpoint_is_told(each_link: Couple) -> None:
    a = each_link.a
    a.ask("fork close", "fork")
    a.ask("fork exit", "fork")
    assert a.leave() == 0
    assert a.complaints.count("inherited by fork()") == 2, a.complaints


@pytest.mark.parametrize("link", ["udp", "local"])
def test_child_does_not_keep_a_dead_parents_endpoint(nodes: tuple[str, str], link: str) -> None:
    """Peers notice, and the engine's number is free, as soon as the parent dies."""
    where = (nodes[1], nodes[1]) if link == "local" else nodes
    with couple(where, BEOWIRE_LINKS=link) as two:
        two.a.send(two.to_b, tag=1, length=8, flags=ACKED, op=1)
        two.a.expect("sent", op=1)
        claim = f"@beowire.{two.b.stats()['engine']}"
        child = two.b.ask("fork linger", "fork")["child"]
        try:
            assert claim in sockets(nodes[1])
            two.b.process.kill()
            two.b.process.wait()
            # The child lets go once it runs.
            until = time.monotonic() + PATIENCE_S
            while claim in sockets(nodes[1]) and time.monotonic() < until:
                time.sleep(0.01)
            assert claim not in sockets(nodes[1])
            if link == "local":
                two.a.expect("down", status=-111)
                return
            assert two.a.send(two.to_b, tag=2, length=8, flags=ACKED, op=2) == LATER
            assert two.a.expect("sent", op=2)["status"] == -111
        finally:
            os.kill(child, signal.SIGKILL)


def test_child_holds_nothing_of_its_parents_endpoint(each_link: Couple) -> None:
    """Neither a descriptor nor a mapping of shared memory."""
    b = each_link.b
    each_link.a.send(each_link.to_b, tag=1, length=8, flags=ACKED, op=1)
    each_link.a.expect("sent", op=1)
    assert held(b.pid), "there is something to be held"
    child = b.ask("fork linger", "fork")["child"]
    try:
        until = time.monotonic() + PATIENCE_S
        while held(child) and time.monotonic() < until:
            time.sleep(0.01)
        assert held(child) == set()
    finally:
        os.kill(child, signal.SIGKILL)


def held(pid: int) -> set[str]:
    """Sockets, queues and shared memory that a process holds, but for what it was started with."""
    targets = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if int(path.name) > 2:
                targets.add(str(path.readlink()))
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return targets | {line.split()[5] for line in lines if "beowire-" in line or "packet" in line}


def test_nothing_is_left_behind(nodes: tuple[str, str]) -> None:
    """After kill -9: no claim, and no shared-memory file once somebody has looked."""
    before = set(Path("/dev/shm").iterdir())
    with couple((nodes[1], nodes[1])) as two:
        two.a.send(two.to_b, tag=1, length=3_000_000, op=1)
        two.a.expect("sent", op=1)
        engine = two.b.stats()["engine"]
        claim = f"@beowire.{engine}"
        assert claim in sockets(nodes[1])
        two.a.process.kill()
        two.b.process.kill()
        two.a.process.wait()
        two.b.process.wait()
        assert claim not in sockets(nodes[1])
    boards.find()
    assert {path for path in Path("/dev/shm").iterdir() if "beowire" in path.name} <= before


def sockets(node: str) -> set[str]:
    """The names of unix sockets in a namespace."""
    command = ["ip", "netns", "exec", node, "cat", "/proc/self/net/unix"]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in table.splitlines()}


def test_more_processes_than_cores_make_progress(nodes: tuple[str, str]) -> None:
    """Pollers that share one core give it to one another."""
    core = str(min(os.sched_getaffinity(0)))
    with couple(nodes) as two:
        for one in (two.a, two.b):
            subprocess.run(["taskset", "-acp", core, str(one.pid)], check=True, capture_output=True)
            one.ask("mode progress", "mode")
        for tag in range(200):
            two.a.send(two.to_b, tag=tag, length=8)
            two.b.expect("message", tag=tag)
