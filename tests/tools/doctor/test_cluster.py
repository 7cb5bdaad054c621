# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Many nodes side by side: what they have in common, the one that differs, those that fail."""

import json
from pathlib import Path
from typing import Any

import beowire_cli
import pytest
from beowire import __version__, lab, lab_up, namespaces
from beowire.cluster import of_hosts
from beowire.doctor.everywhere import ask
from beowire.doctor.uniformity import differences, findings
from pyroute2 import IPRoute


def told(facts: dict[str, str], **states: str) -> dict[str, Any]:
    """What a node tells: facts, and checks by name with what was read where they are bad."""
    outcomes = []
    for name, read in states.items():
        outcome: dict[str, Any] = {
            "check": name.replace("_", ".", 1),
            "interface": "",
            "state": "bad" if read else "good",
            "read": read,
        }
        if read:
            outcome |= {
                "good": "1",
                "weight": "severe" if name == "tcp_window" else "slight",
                "why": "because",
                "mend": "live",
                "changes": [],
                "advice": "do it",
            }
        outcomes.append(outcome)
    return {"version": __version__, "facts": facts, "outcomes": outcomes, "troubles": []}


def test_what_is_alike_is_no_difference_and_the_common_value_comes_first() -> None:
    nodes = {f"n{number}": told({"kernel": "6.1", "mtu": "9000"}) for number in range(1, 5)}
    nodes["n3"]["facts"]["mtu"] = "1500"
    (found,) = differences(nodes)
    assert found.what == "mtu"
    assert found.nodes == (("9000", "n[1-2,4]"), ("1500", "n3"))


def test_a_fact_that_a_node_does_not_tell_is_a_difference() -> None:
    nodes = {"n1": told({"eth1 mtu": "9000"}), "n2": told({})}
    (found,) = differences(nodes)
    assert dict(found.nodes) == {"9000": "n1", "nothing": "n2"}


def test_findings_are_folded_and_the_worst_come_first() -> None:
    nodes = {f"n{number}": told({}, tcp_window="", tcp_sack="0") for number in range(1, 6)}
    nodes["n4"] = told({}, tcp_window="it is 0", tcp_sack="0")
    worst, common = findings(nodes)
    assert (worst.check, worst.nodes, worst.count, worst.of) == ("tcp.window", "n4", 1, 5)
    assert worst.differs
    assert (common.check, common.nodes) == ("tcp.sack", "n[1-5]")
    assert not common.differs


@pytest.fixture
def agent(tmp_path: Path) -> str:
    """A stand-in for ssh, whose hosts answer as their names say."""
    script = tmp_path / "agent"
    good = json.dumps(told({"kernel": "6.1"}, tcp_sack=""))
    other = json.dumps(told({}) | {"version": "0.0.1"})
    script.write_text(
        f"""#!/bin/sh
case $1 in
good*) echo '{good}' ;;
other*) echo '{other}' ;;
down*) echo "ssh: connect to host $1 port 22: No route to host" >&2; exit 255 ;;
bare*) echo "sh: 1: beowire: not found" >&2; exit 127 ;;
mad*) echo 'Welcome!'; echo '{{"outcomes": 3' ;;
slow*) exec sleep 1000 ;;
esac
"""
    )
    script.chmod(0o755)
    return str(script)


def test_nodes_that_fail_are_named_with_the_reason_and_the_rest_goes_on(agent: str) -> None:
    hosts = "good[1-3],down1,other1,bare1,mad1,slow1"
    answers = ask(of_hosts([hosts], agent), ["--json"], fanout=64, timeout_s=5)
    assert set(answers.told) == {"good1", "good2", "good3"}
    assert {node: reason.partition("(")[0] for node, reason in answers.failed.items()} == {
        "down1": "it is not reached: ssh: connect to host down1 port 22: No route to host",
        "other1": f"it has version 0.0.1 of beowire, here is {__version__}",
        "bare1": answers.failed["bare1"].partition("(")[0],
        "mad1": "it told nothing; status 0",
        "slow1": "no answer within 5 s",
    }
    assert "is not there" in answers.failed["bare1"]


def test_the_command_tells_them_and_ends_with_status_2(agent: str) -> None:
    answer = beowire_cli.beowire("doctor", "cluster", "-w", "good[1-2],down[1-2]", "--ssh", agent)
    assert answer.status == 2
    assert "2 of 4 nodes examined" in answer.output
    for node in ("down1", "down2"):
        assert f"{node} cannot be examined: it is not reached" in answer.errors


def test_no_node_at_all_is_an_error(agent: str) -> None:
    answer = beowire_cli.beowire("doctor", "cluster", "-w", "down[1-2]", "--ssh", agent)
    assert answer.status == 2
    assert "No node could be examined" in answer.errors


@pytest.mark.skipif(
    bool(beowire_cli.NO_NAMESPACES), reason=f"namespaces: {beowire_cli.NO_NAMESPACES}"
)
def test_the_node_of_a_lab_that_differs_is_found(lab_name: str) -> None:
    made: lab.Lab = lab_up.up(lab_name, 3, 9000)

    def narrow() -> None:
        Path("/proc/sys/net/ipv4/tcp_sack").write_text("0")
        with IPRoute() as route:
            route.link("set", index=route.link_lookup(ifname="eth0")[0], mtu=1500)

    namespaces.within(made.namespace_path("node2"), narrow)
    answer = beowire_cli.beowire(
        "doctor", "cluster", "--lab", lab_name, "--only", "tcp.sack", "--only", "link", "--json"
    )
    assert answer.status == 1, answer.errors
    found = json.loads(answer.output)
    assert [each["what"] for each in found["differences"]] == ["eth0 mtu"]
    assert {(each["check"], each["nodes"], each["differs"]) for each in found["findings"]} == {
        ("tcp.sack", "node2", True),
        ("link.mtu", "node2", True),
    }
