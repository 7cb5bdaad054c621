# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Faults of the network that stay, while a job runs that compares every byte.

A peer that answers nothing is given up after GIVE_UP_S; what a job can survive it survives sooner.
"""

import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from beowire.lab import up
from beowire.lab.lab import Lab, Shape, load_ready
from beowire.run.cluster import Cluster
from beowire.run.mpi import Mpi
from mpi_drill import Onward, left_behind, run_drill
from mpi_lab import lab_behind, lab_of
from mpi_replay import Hello, ear, stranger

GIVE_UP_S = 6
TOLD_S = GIVE_UP_S + 5
"""A rank whose peer is gone must have been told by then, by its own clock, and later by no more
than this machine was late."""
GRACE_S = 3
"""What `beowire run` leaves the launcher to end by itself once it was told of a loss."""
SLACK_S = 60
"""For it to notice, and to end what is left. Without an end of its own it takes 200 s."""
OTHER_ADDRESS = "02:be:ee:ee:ee:02"
MANY = 100
"""Rounds before a fault, and after it."""


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    """Two nodes for the job, and one that is not of it."""
    with lab_of(3) as made:
        if lab_behind(made).mode == "loopback":
            pytest.skip(f"no switch that could lose frames: {lab_behind(made).reason}")
        yield made


@pytest.fixture
def place(three: Cluster) -> Iterator[Cluster]:
    """The nodes, whole again afterwards."""
    yield three
    made = lab_behind(three)
    up.reshape(made.name, dict.fromkeys(made.node_names(), Shape()))


def lateness(ended: threading.Event) -> float:
    """Until then: how much later than asked for short sleeps ended, all in all, in seconds."""
    late_s, asked_s = 0.0, 0.02
    while True:
        began = time.monotonic()
        over = ended.wait(asked_s)
        if over:
            return late_s
        late_s += max(0.0, time.monotonic() - began - asked_s - 0.001)


def dropped(made: Lab, node: str) -> int:
    """The raw frames of the node's that its link has dropped since it got its shape."""
    count: int = up.port_counts(load_ready(made.name))[node].raw_dropped
    return count


@pytest.mark.parametrize("node", ["node1", "node2"])
def test_raw_frames_cut_in_one_direction(node: str, place: Cluster) -> None:
    """What the node sends by raw frames is lost from now on, what is sent to it is not: the job
    goes on over UDP before its peer would be given up."""

    def cut(job: Onward) -> None:
        job.await_rounds(MANY)
        job.strike({node: Shape(drop_raw=True)})
        job.await_rounds(MANY)

    outcome = run_drill(place, cut, GIVE_UP_S)
    outcome.assert_went_on()
    assert dropped(lab_behind(place), node) > 0
    assert outcome.record.sum("tx_payload", "packet") > 0
    for endpoint in outcome.record.endpoints:
        assert endpoint.sum("tx_payload", "udp") > 0


def exchange_address(made: Lab, node: str, address: str) -> str:
    """Gives the node's interface another Ethernet address. The one that it had."""
    enter = ["nsenter", f"--net={made.namespace_path(node)}", "--", "ip"]
    show = [*enter, "-o", "link", "show", "eth0"]
    told = subprocess.run(show, check=True, capture_output=True, text=True).stdout
    subprocess.run([*enter, "link", "set", "eth0", "address", address], check=True)
    return told.split("link/ether ")[1].split()[0]


@pytest.mark.parametrize("node", ["node1", "node2"])
def test_an_ethernet_address_that_changes(node: str, place: Cluster) -> None:
    """As when an interface fails over. Raw frames to the node are lost from then on; UDP finds it
    again, so that the job goes on before its peer would be given up."""
    made = lab_behind(place)
    had: list[str] = []

    def move(job: Onward) -> None:
        job.await_rounds(MANY)
        had.append(exchange_address(made, node, OTHER_ADDRESS))
        job.await_rounds(MANY)

    try:
        outcome = run_drill(place, move, GIVE_UP_S)
    finally:
        for address in had:
            exchange_address(made, node, address)
        for each in ("node1", "node2"):  # what they learned would hold up the next job's launcher
            enter = ["nsenter", f"--net={made.namespace_path(each)}", "--"]
            subprocess.run([*enter, "ip", "neigh", "flush", "dev", "eth0"], check=True)
    outcome.assert_went_on()
    assert outcome.record.sum("tx_payload", "packet") > 0
    assert outcome.record.sum("tx_payload", "udp") > 0


@pytest.mark.parametrize(
    ("silent", "mpi", "without_stderr"),
    [
        ("node1 node2", "openmpi", False),
        ("node1 node2", "openmpi", True),
        ("node1", "openmpi", False),
        ("node1", "mpich", False),
        pytest.param("node2", "openmpi", False, marks=pytest.mark.long),
    ],
)
def test_a_cut_that_stays(silent: str, mpi: Mpi, without_stderr: bool, place: Cluster) -> None:
    """Nothing that these nodes send arrives any more, the launcher's words neither: each rank is
    told in time, and not before; the job ends, says why once for each, wherever its stderr goes,
    and leaves nothing."""

    late: list[float] = []

    def cut(job: Onward) -> None:
        job.await_rounds(MANY)
        job.strike(dict.fromkeys(silent.split(), Shape(loss=1.0)))
        late.append(lateness(job.ended))

    outcome = run_drill(place, cut, GIVE_UP_S, mpi=mpi, without_stderr=without_stderr)
    (late_s,) = late
    print(f"told after {dict(outcome.told_s)} s, ended after {outcome.after_s:.1f} s")
    print(f"this machine was late by {late_s:.1f} s")
    # A rank may be ended by the launcher before its time, once the other one was told; and MPICH
    # ends one that finds the error among its completions itself, whatever its error handler is.
    ended = mpi == "mpich" and "OFI poll failed" in outcome.text
    assert outcome.told_s or ended, outcome.text
    for told_s in outcome.told_s.values():
        assert GIVE_UP_S - 1 < told_s < TOLD_S + late_s
    latest_s = min(outcome.told_s.values(), default=TOLD_S)
    assert GIVE_UP_S - 1 < outcome.after_s < latest_s + GRACE_S + SLACK_S
    assert outcome.record.exit_status != 0
    gone = r"beowire: (node[12]) \(node [0-9a-f]+\) engine \d+ is gone \(.+\): "
    found = re.findall(gone + "operations with it end with an error", outcome.text)
    assert found, outcome.text
    assert len(set(found)) == len(found), outcome.text
    assert left_behind(place) == []


def test_first_words_said_again(place: Cluster) -> None:
    """Each HELLO of a job comes twice more while it runs, in its sender's name and in that of a
    stranger, and during the next job once more, as it was and as if meant for its engines. Whoever
    is there is challenged, but nobody is taken for a peer: neither job leaves its path."""
    made = lab_behind(place)
    old: list[Hello] = []
    asked: list[Hello] = []

    with ExitStack() as stack:
        ears = [stack.enter_context(ear(made, node)) for node in ("node1", "node2")]
        other = stack.enter_context(stranger(made, "node3"))

        def again(job: Onward) -> None:
            job.await_rounds(MANY)
            old.extend(hello for each in ears for hello in each.heard())
            for _ in range(2):
                for hello in old:
                    other.repeat(hello)
                job.await_rounds(MANY)
            asked.extend(other.ear.heard())

        def later(job: Onward) -> None:
            for each in ears:
                each.heard()
            other.ear.heard()
            job.await_rounds(MANY)
            new = [hello for each in ears for hello in each.heard()]
            for hello in old:
                other.repeat(hello)
                other.repeat(hello.readdressed(next(each for each in new if each.answers(hello))))
            job.await_rounds(MANY)
            asked.extend(other.ear.heard())

        for drill in (again, later):
            # Long messages would go by rows over udp.
            outcome = run_drill(place, drill, GIVE_UP_S, {"BEOWIRE_UDP_OFFLOAD": "off"})
            outcome.assert_went_on()
            # A busy machine answers late at times, and a round goes by UDP. Whoever believed what
            # was said again would go by it from then on, for at least a third of the rounds.
            by_udp = outcome.record.sum("tx_payload", "udp")
            assert by_udp < outcome.record.sum("tx_payload", "packet") / 10
            assert "beowire: " not in outcome.text
            # The next job passes over answers, and the bridge may lose the one question by a link
            # on its way: it takes the receiver for the stranger, who spoke in its name.
            by = {hello.by_udp for hello in asked}
            assert by == {True, False} if drill is again else by
            asked.clear()
    assert {hello.by_udp for hello in old} == {True, False}
