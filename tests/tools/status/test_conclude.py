# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Conclusions from made-up states: which cause is named first, and who is blamed for it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from beowire.errors import BeowireError
from beowire.status import cluster, conclude, figures, job, processes, waits
from beowire.status.conclude import Case


def identity(rank: int) -> str:
    return f"{rank:016x}/1/00000001"


def peer(rank: int, **changes: Any) -> dict[str, Any]:
    """Another rank as it is seen, on a node of its own."""
    names = "tx_packets rx_packets losses retransmits exposed pulls inflight srtt_ns status"
    told: dict[str, Any] = dict.fromkeys(names.split(), 0)
    told |= {
        "waiting_since_s": None,
        "proven_s": 0.5,
        "unanswered_s": None,
        "exposed_since_s": None,
        "known": True,
        "stalled": False,
    }
    return {
        **told,
        "identity": identity(rank),
        "host": f"node{rank}",
        "link": "packet",
        **changes,
    }


def receive(rank: int | None, since_s: float = 10.0, tag: int = 7) -> dict[str, Any]:
    whom = None if rank is None else identity(rank)
    return {
        "kind": "receive",
        "peer": whom,
        "since_s": since_s,
        "tag": tag,
        "tagged": True,
    }


def endpoint(
    rank: int,
    peers: list[dict[str, Any]] | None = None,
    receives: list[dict[str, Any]] | None = None,
    called_s: float = 0.1,
    rate: float = 0.0,
) -> dict[str, Any]:
    rates = {
        "tx_messages": rate,
        "rx_messages": rate,
        "tx_payload": 0.0,
        "rx_payload": 0.0,
    }
    return {
        "identity": identity(rank),
        "host": f"node{rank}",
        "pid": 100 + rank,
        "asleep": 0,
        "called_s": called_s,
        "rates": rates,
        "peers": peers or [],
        "waits": receives or [],
    }


def process(rank: int, **changes: Any) -> dict[str, Any]:
    told = {
        "state": "R",
        "frozen": False,
        "running": 0.5,
        "starved": 0.1,
        "faults": 0.0,
    }
    told |= {"swapped_bytes": 0, "rank": rank, "size": None, "job": "j", "slurm": None}
    return {**told, **changes}


def conclusion(
    endpoints: list[dict[str, Any]],
    processes: dict[int, dict[str, Any]] | None = None,
    unreached: dict[str, str] | None = None,
) -> conclude.Conclusion:
    """For ranks that have an endpoint each, on nodes of their own."""
    told = {str(100 + i): (processes or {}).get(i, process(i)) for i in range(len(endpoints))}
    nodes = {
        each["host"]: {
            "endpoints": [each],
            "processes": {str(each["pid"]): told[str(each["pid"])]},
            "kernel": None,
        }
        for each in endpoints
    }
    state = cluster.joined(nodes, unreached or {})
    for each in state["processes"].values():
        each["slurm"] = "4711"
    members = job.members(state, 4711, "nowhere")
    return conclude.conclude(Case(members, waits.waits(members), unreached or {}))


def test_messages_that_flow() -> None:
    said = conclusion([endpoint(0, rate=5.0), endpoint(1, rate=5.0)])
    assert said.cause == "running"


def test_a_receive_without_a_send() -> None:
    said = conclusion([endpoint(0, receives=[receive(1)]), endpoint(1, called_s=60.0)])
    assert said.cause == "receive"
    assert said.says.startswith("rank 0 waits for a message of rank 1 with tag 7 since 10.0 s")
    assert "rank 1 is outside MPI for 1.0 min" in said.says


def test_the_end_of_a_chain_is_blamed() -> None:
    those = [endpoint(i, receives=[receive(i + 1, 20.0 - i)]) for i in range(3)]
    said = conclusion([*those, endpoint(3, called_s=60.0)])
    assert said.cause == "receive"
    assert said.says.startswith("rank 2 waits for a message of rank 3")


def test_what_is_waited_for_not_long_is_no_cause() -> None:
    said = conclusion([endpoint(0, receives=[receive(1, 3.0)]), endpoint(1, called_s=60.0)])
    assert said.cause == "computing"


def test_a_circle_of_receives() -> None:
    said = conclusion([endpoint(0, receives=[receive(1)]), endpoint(1, receives=[receive(0)])])
    assert said.cause == "deadlock"


def test_a_circle_that_is_not_old_enough_blames_nobody() -> None:
    """The one who has waited long waits for somebody who waits as well."""
    said = conclusion([endpoint(0, receives=[receive(1)]), endpoint(1, receives=[receive(0, 3.0)])])
    assert said.cause == "unknown"


def test_a_circle_through_a_rank_that_computes_is_none() -> None:
    said = conclusion(
        [
            endpoint(0, receives=[receive(1)]),
            endpoint(1, receives=[receive(0)], called_s=60.0),
        ]
    )
    assert said.cause == "receive"


def test_a_circle_of_sends() -> None:
    waiting = {"exposed": 1, "exposed_since_s": 9.0}
    said = conclusion(
        [
            endpoint(0, [peer(1, **waiting)]),
            endpoint(1, [peer(2, **waiting)]),
            endpoint(2, [peer(0, **waiting)]),
        ]
    )
    assert said.cause == "sends"
    assert "rank 0, rank 1 and rank 2" in said.says


def test_a_step_of_a_collective_is_no_tag() -> None:
    said = conclusion(
        [
            endpoint(0, receives=[receive(1, tag=0xFFFF_FFEF)]),
            endpoint(1, called_s=60.0),
        ]
    )
    assert "(a step of a collective operation)" in said.says


def test_a_stopped_rank_comes_first() -> None:
    late = {"unanswered_s": 30.0}
    said = conclusion(
        [endpoint(0, [peer(1, **late)], [receive(1)]), endpoint(1)],
        {1: process(1, state="T")},
    )
    assert said.cause == "stopped"
    assert "kill -CONT 101 on node1" in said.fix
    said = conclusion([endpoint(0), endpoint(1)], {1: process(1, frozen=True)})
    assert said.cause == "stopped"
    assert "control group" in said.fix


def test_a_rank_that_is_gone() -> None:
    told = {i: process(i, size=3) for i in range(2)}
    lost = [peer(2, status=-111)]
    assert conclusion([endpoint(0, lost), endpoint(1)], told).cause == "gone"
    assert "rank 2 is gone" in conclusion([endpoint(0, lost), endpoint(1)], told).says


def test_a_rank_of_a_node_that_was_not_asked_is_not_gone() -> None:
    """Nobody has lost it; that others wait says nothing about where it is."""
    told = {i: process(i, size=3) for i in range(2)}
    ends = [endpoint(0, receives=[receive(1)]), endpoint(1, called_s=60.0)]
    assert conclusion(ends, told).cause == "receive"
    ends = [endpoint(0, [peer(2)]), endpoint(1)]
    said = conclusion(ends, told)
    assert said.cause == "unreached"
    assert said.says.startswith("Ranks on node2 told nothing")


def test_a_lost_rank_does_not_make_living_ones_gone() -> None:
    told = {i: process(i, size=4) for i in range(2)}
    ends = [endpoint(0, [peer(2, status=-111), peer(3)]), endpoint(1, [peer(2)])]
    said = conclusion(ends, told)
    assert (said.cause, "node3" in said.says, "node2" in said.says) == (
        "unreached",
        True,
        False,
    )
    said = conclusion([endpoint(0, [peer(2, status=-111)]), endpoint(1)], told)
    assert said.says.startswith("Of rank 2 and rank 3, which are not found, 1 at least is gone")


@pytest.mark.parametrize("status", [0, -110])
@pytest.mark.parametrize(
    "seen", [{}, {"unanswered_s": 20.0, "tx_packets": 1000, "losses": 500, "inflight": 1}]
)
def test_who_speaks_to_a_rank_without_being_asked_is_no_rank(
    status: int, seen: dict[str, Any]
) -> None:
    """He hides no dead one, makes no missing one dead, and is not what the job waits for."""
    told = {i: process(i, size=3) for i in range(2)}
    stranger = peer(7, status=status, known=False, **seen)
    said = conclusion([endpoint(0, [stranger, peer(2, status=-111)]), endpoint(1)], told)
    assert said.says.startswith("rank 2 is gone")
    ends = [endpoint(0, [stranger], receives=[receive(1)]), endpoint(1, called_s=60.0)]
    assert conclusion(ends, told).cause == "receive"


@pytest.mark.parametrize("claimed", ["node0", 7, ["node0"]])
def test_where_something_is_told_is_not_for_the_node_to_say(claimed: Any) -> None:
    nodes = {
        f"node{rank}": {
            "endpoints": [endpoint(rank) | {"node": claimed}],
            "processes": {str(100 + rank): process(rank) | {"node": claimed, "pid": 100}},
            "kernel": None,
        }
        for rank in range(2)
    }
    state = cluster.joined(nodes, {})
    assert [each["node"] for each in state["endpoints"]] == ["node0", "node1"]
    assert {(key, each["node"], each["pid"]) for key, each in state["processes"].items()} == {
        ("node0:100", "node0", 100),
        ("node1:101", "node1", 101),
    }


def test_a_number_of_ranks_beyond_all_measure() -> None:
    """It is what an environment says, whoever wrote it."""
    told = {i: process(i, size=10**15) for i in range(2)}
    ends = [endpoint(0, [peer(2, status=-111)]), endpoint(1)]
    assert conclusion(ends, told).cause == "gone"


def test_a_dead_process_is_gone_if_others_wait() -> None:
    told = {1: process(1, state="Z")}
    said = conclusion([endpoint(0, receives=[receive(1)]), endpoint(1)], told)
    assert said.cause == "gone"
    assert said.says.startswith("rank 1 is gone")


def test_a_rank_on_a_node_that_cannot_be_asked_is_not_gone() -> None:
    told = {i: process(i, size=3) for i in range(2)}
    lost = [peer(2, status=-110)]
    said = conclusion([endpoint(0, lost), endpoint(1)], told, {"node2": "no answer"})
    assert said.cause == "unreached"


def test_the_node_that_all_silent_pairs_have_in_common() -> None:
    late = {"unanswered_s": 8.0}
    said = conclusion(
        [
            endpoint(0, [peer(1), peer(2, **late)]),
            endpoint(1, [peer(0), peer(2, **late)]),
            endpoint(2, [peer(0, **late)]),
        ]
    )
    assert said.cause == "cut-off"
    assert said.says == "node2 is cut off: it has answered nothing for 8.0 s."


def test_two_nodes_that_do_not_hear_one_another() -> None:
    late = {"unanswered_s": 8.0}
    said = conclusion([endpoint(0, [peer(1, **late)]), endpoint(1, [peer(0, **late)])])
    assert said.cause == "cut-off"
    assert said.says == "node0 and node1 have not heard one another for 8.0 s."


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (2.5, None, None),
        (2.5, 1.5, "node2 is cut off: it has answered nothing for 2.5 s."),
        (4.5, None, "node1 and node2 have not heard one another for 4.5 s."),
        (4.5, 0.5, "node1 and node2 have not heard one another for 4.5 s."),
        (4.5, 1.5, "node2 is cut off: it has answered nothing for 4.5 s."),
    ],
)
def test_others_soon_notice_which_node_it_is(
    first: float, second: float | None, says: str | None
) -> None:
    said = conclusion(
        [
            endpoint(0, [peer(2, unanswered_s=second)], [receive(2)]),
            endpoint(1, [peer(2, unanswered_s=first)], [receive(0)]),
            endpoint(2, receives=[receive(1)]),
        ]
    )
    assert said.cause == ("unknown" if says is None else "cut-off")
    assert says in (None, said.says)


def test_a_lossy_link() -> None:
    bad = {"tx_packets": 1000, "losses": 50}
    said = conclusion(
        [
            endpoint(0, [peer(1), peer(2, **bad)], rate=9.0),
            endpoint(1, [peer(2, **bad)]),
            endpoint(2, [peer(0, **bad)]),
        ]
    )
    assert said.cause == "lossy"
    assert said.says == "The link of node2 loses packets: 5 % of them."


def test_what_is_lost_and_sent_again_is_lost_once() -> None:
    bad = {"tx_packets": 1000, "retransmits": 19, "losses": 19}
    said = conclusion([endpoint(0, [peer(1, **bad)], rate=9.0), endpoint(1)])
    assert said.cause == "running"
    assert figures.trouble(peer(1, **bad)) == []
    bad = {"tx_packets": 1000, "retransmits": 40, "losses": 20}
    said = conclusion([endpoint(0, [peer(1, **bad)], rate=9.0), endpoint(1)])
    assert (said.cause, " 2 % of them" in said.says) == ("lossy", True)
    assert figures.trouble(peer(1, **bad)) == ["lossy (2 %)"]


def test_what_is_sent_again_in_doubt_is_no_loss() -> None:
    """A peer without a processor answers late, and gets everything twice."""
    late = {"tx_packets": 1000, "retransmits": 500, "losses": 1}
    ends = [endpoint(0, [peer(1, **late)], rate=9.0), endpoint(1)]
    assert conclusion(ends).cause == "running"
    assert figures.trouble(peer(1, **late)) == []


def test_few_losses_are_chance() -> None:
    bad = {"tx_packets": 100, "losses": 10}
    assert conclusion([endpoint(0, [peer(1, **bad)], rate=9.0), endpoint(1)]).cause == "running"


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"swapped_bytes": 1 << 20, "faults": 100.0}, "swapping"),
        ({"swapped_bytes": 1 << 20, "faults": 1.0}, "unknown"),
        ({"starved": 0.9, "running": 0.01}, "starved"),
        ({"starved": 0.9, "running": 0.5}, "unknown"),
    ],
)
def test_a_rank_without_what_it_needs(changes: dict[str, Any], cause: str) -> None:
    assert conclusion([endpoint(0), endpoint(1)], {1: process(1, **changes)}).cause == cause


def test_an_unknown_job() -> None:
    with pytest.raises(BeowireError):
        job.members(cluster.joined({}, {}), 1 << 30)


def test_silence_is_missing_what_is_expected() -> None:
    assert figures.silence(peer(1, unanswered_s=5.0)) == 5.0
    assert figures.silence(peer(1, unanswered_s=0.2)) is None
    assert figures.silence(peer(1, unanswered_s=5.0, status=-110)) is None
    assert figures.silence(peer(1, waiting_since_s=None, proven_s=70.0)) is None


def test_who_has_not_looked_for_answers_blames_nobody() -> None:
    """A rank that computes since a minute has its last sheet from then."""
    old = {"waiting_since_s": 60.0, "proven_s": 60.3, "unanswered_s": 0.1}
    said = conclusion([endpoint(0, [peer(1, **old)], called_s=60.0), endpoint(1, [peer(0)])])
    assert said.cause == "computing"


def test_an_answer_of_who_has_no_processor_may_take_longer() -> None:
    told = {1: process(1, starved=0.9, running=0.02)}
    ends = [endpoint(0, [peer(1, unanswered_s=4.0)]), endpoint(1, [peer(0)])]
    assert conclusion(ends, told).cause == "starved"
    ends = [endpoint(0, [peer(1, unanswered_s=11.0)]), endpoint(1, [peer(0)])]
    assert conclusion(ends, told).cause == "cut-off"


def test_who_waits_while_answers_are_missing_is_in_no_deadlock() -> None:
    """What is waited for may be lost: as long as that is not known, the program is not blamed."""
    told = {1: process(1, starved=0.6)}
    again = {"tx_packets": 100, "losses": 30, "inflight": 1}
    for late, cause in ((0.5, "deadlock"), (4.5, "unknown"), (11.0, "cut-off")):
        ends = [
            endpoint(0, [peer(1, unanswered_s=late)], [receive(1)]),
            endpoint(1, [peer(0)], [receive(0)]),
        ]
        assert conclusion(ends, told).cause == cause
        ends[0]["peers"] = [peer(1, unanswered_s=late, **again)]
        assert conclusion(ends, told).cause == (cause if late > 1 else "lossy")


def test_who_is_slow_is_seen_beside_others() -> None:
    trips = [100_000, 110_000, 120_000, 900_000]
    endpoints = [endpoint(0, [peer(i + 1, srtt_ns=trip) for i, trip in enumerate(trips)])]
    figures.add_verdicts(endpoints)
    assert [each["verdicts"] for each in endpoints[0]["peers"]] == [
        [],
        [],
        [],
        ["slow (round trip 0.9 ms)"],
    ]


@pytest.mark.parametrize("inherited", [True, False])
def test_the_nodes_of_an_allocation(inherited: bool, tmp_path: Path) -> None:
    """They are those of the processes below the number, too: of srun itself they are not."""
    names = ",".join(f"a-long-name-of-a-node-{n}" for n in range(99))
    variables = os.environ | {"SLURM_JOB_NODELIST": names}
    child = "import subprocess, sys; subprocess.run([*sys.argv[1:]])"
    command = [sys.executable, "-c", child, "env", f"SLURM_JOB_NODELIST={names}"]
    command += ["sh", "-c", "echo begun; read x"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=variables if inherited else None,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        assert job.hosts_of(process.pid) == [names]
        process.communicate(b"\n")


def test_ranks_by_the_variables_of_launchers() -> None:
    openmpi = {
        "OMPI_COMM_WORLD_RANK": "3",
        "OMPI_COMM_WORLD_SIZE": "8",
        "PMIX_NAMESPACE": "j",
    }
    assert processes.rank_of(openmpi) == {
        "rank": 3,
        "size": 8,
        "job": "j",
        "slurm": None,
    }
    mpich = {"PMI_RANK": "1", "PMI_SIZE": "2"}
    assert processes.rank_of(mpich) == {
        "rank": 1,
        "size": 2,
        "job": None,
        "slurm": None,
    }
    slurm = {"SLURM_PROCID": "5", "SLURM_NTASKS": "6", "SLURM_JOB_ID": "77"}
    for step in ({}, {"SLURM_STEP_ID": "4294967291"}):
        assert processes.rank_of(slurm | step)["rank"] is None, "a batch script is no rank"
    assert processes.rank_of(slurm | {"SLURM_STEP_ID": "0"}) == {
        "rank": 5,
        "size": 6,
        "job": None,
        "slurm": "77",
    }
    assert processes.rank_of({"PMI_RANK": "x" * 9})["rank"] is None
