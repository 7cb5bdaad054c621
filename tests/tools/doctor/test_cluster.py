# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Many nodes side by side: what they have in common, the one that differs, those that fail."""

import json
import time
from pathlib import Path
from typing import Any

import beowire_cli
import pytest
from beowire import __version__, namespaces
from beowire.doctor import answers, report
from beowire.doctor.cli import app
from beowire.doctor.everywhere import ask
from beowire.doctor.examine import examine
from beowire.doctor.node import Goal, Node
from beowire.doctor.registry import ALL
from beowire.doctor.sensible import sensible
from beowire.doctor.source import Source
from beowire.doctor.uniformity import differences, duplicates, findings
from beowire.errors import BeowireError
from beowire.lab import lab, up
from beowire.run.cluster import of_hosts
from pyroute2 import IPRoute
from terminal import on_terminal
from typer.testing import CliRunner

_PATIENCE_S = 240
NONSENSE = "it tells what makes no sense"


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
                "fix": "live",
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


def test_good_settings_that_are_not_alike_are_a_difference() -> None:
    nodes = {f"n{number}": told({}) for number in range(1, 5)}
    for name, value in (("n1", "cubic"), ("n2", "cubic"), ("n3", "reno")):
        nodes[name]["settings"] = {"net.ipv4.tcp_congestion_control": value}
    (found,) = differences(nodes)
    assert found.what == "net.ipv4.tcp_congestion_control"
    assert found.nodes == (("cubic", "n[1-2]"), ("reno", "n3"))


def test_addresses_of_two_nodes_are_found() -> None:
    nodes = {f"n{number}": told({}) for number in range(1, 4)}
    for number, (hardware, address) in enumerate(
        (("02::1", "10.0.0.1/24"), ("02::2", "10.0.0.1/8"), ("02::2", "10.0.0.3/24")), 1
    ):
        own = [address, "fe80::1/64"]
        nodes[f"n{number}"]["interfaces"] = [{"hardware": hardware, "addresses": own}]
    found = {each.address: each.nodes for each in duplicates(nodes)}
    assert found == {"10.0.0.1": "n[1-2]", "02::2": "n[2-3]"}


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
ill*) cat {tmp_path}/"$1" ;;
flood*) exec head -c 64M /dev/zero ;;
slow*) echo "$1" >>{tmp_path}/asked; echo $$ >{tmp_path}/slow; exec sleep 1000 ;;
esac
"""
    )
    script.chmod(0o755)
    return str(script)


def test_nodes_that_fail_are_named_with_the_reason_and_the_rest_goes_on(agent: str) -> None:
    hosts = "good[1-3],down1,other1,bare1,mad1"
    found = ask(of_hosts([hosts], agent), ["--json"], fanout=64, timeout_s=_PATIENCE_S)
    assert set(found.told) == {"good1", "good2", "good3"}
    assert {node: reason.partition("(")[0] for node, reason in found.failed.items()} == {
        "down1": "it is not reached: ssh: connect to host down1 port 22: No route to host",
        "other1": f"it has version 0.0.1 of beowire, here is {__version__}",
        "bare1": found.failed["bare1"].partition("(")[0],
        "mad1": NONSENSE,
    }
    assert "is not there" in found.failed["bare1"]


def test_a_node_that_does_not_answer_in_time_is_given_up(agent: str, tmp_path: Path) -> None:
    """And what was to reach it is ended, if it had begun at all by then."""
    found = ask(of_hosts(["slow1"], agent), ["--json"], fanout=64, timeout_s=5)
    assert found.told == {}
    assert found.failed == {"slow1": "no answer within 5 s"}
    begun = tmp_path / "slow"
    assert not (begun.exists() and Path("/proc", begun.read_text().strip()).exists())


def ill(name: str, told: str, place: Path) -> str:
    """The name of a host that answers so."""
    host = f"ill-{name}"
    (place / host).write_text(told)
    return host


def with_finding(**changed: Any) -> dict[str, Any]:
    """What a node tells that has a finding, some of which is wrong."""
    wrong = told({"kernel": "6.1"}, tcp_sack="0")
    wrong["outcomes"][0] |= changed
    return wrong


def without(name: str) -> dict[str, Any]:
    whole = told({"kernel": "6.1"})
    del whole[name]
    return whole


WELL = told({"kernel": "6.1"})
ILL: dict[str, Any] = {
    "outcomes": WELL | {"outcomes": 3},
    "outcome": WELL | {"outcomes": [{"check": "tcp.sack"}]},
    "check": with_finding(check=["tcp.sack"]),
    "weight": with_finding(weight="huge"),
    "changes": with_finding(changes=[{"setting": "x"}]),
    "facts": WELL | {"facts": []},
    "fact": WELL | {"facts": {"kernel": 6}},
    "unlike": WELL | {"facts": {"kernel": ["6.1"]}},
    "settings": WELL | {"settings": ["x"]},
    "interfaces": WELL | {"interfaces": [{"hardware": "02::1", "addresses": 1}]},
    "no-troubles": without("troubles"),
    "trouble": WELL | {"troubles": [1]},
    "no-version": without("version"),
    "version": WELL | {"version": ["0.0.1"]},
    "long-version": WELL | {"version": "0" * 1000},
    "version-of-lines": WELL | {"version": "0\nbeowire: all is well"},
    "list": [WELL],
    "below": WELL | {"more": json.loads("[" * 60 + "]" * 60)},
    "no-text": WELL | {"facts": {"kernel": "\udcff"}},
}
TEXTS = {
    "deep": "[" * 100_000,
    "no-number": json.dumps(WELL | {"more": float("nan")}),
    "beyond": json.dumps(WELL | {"more": "@"}).replace('"@"', "1e999"),
    **{name: json.dumps(each) for name, each in ILL.items()},
}


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("name", TEXTS)
def test_a_malformed_answer_is_its_nodes_own_matter(
    agent: str, tmp_path: Path, name: str, as_json: bool
) -> None:
    host = ill(name, TEXTS[name], tmp_path)
    words = ["cluster", "-w", f"good[1-2],{host}", "--ssh", agent, "--timeout", str(_PATIENCE_S)]
    result = CliRunner().invoke(app, [*words, "--json"] if as_json else words)
    assert (type(result.exception), result.exit_code) == (SystemExit, 2), result.exception
    assert f"{host} cannot be examined: {NONSENSE}" in result.stderr
    if as_json:
        found = json.loads(result.stdout, parse_constant=pytest.fail)
        assert (list(found["nodes"]), found["failed"]) == (["good1", "good2"], {host: NONSENSE})
    else:
        assert "2 of 3 nodes examined" in result.stdout


def test_malformed_answers_of_many_nodes(agent: str, tmp_path: Path) -> None:
    """As a user sees them."""
    hosts = [ill(name, text, tmp_path) for name, text in TEXTS.items()]
    words = ("doctor", "cluster", "-w", ",".join([*hosts, "good[1-2]"]), "--ssh", agent)
    answer = beowire_cli.beowire(*words, "--timeout", str(_PATIENCE_S))
    assert answer.status == 2
    assert f"2 of {len(hosts) + 2} nodes examined" in answer.output
    assert "Traceback" not in answer.errors
    (line,) = (each for each in answer.errors.splitlines() if NONSENSE in each)
    assert all(host in line for host in hosts)


def test_an_answer_without_end_is_not_read(agent: str) -> None:
    found = ask(of_hosts(["good1,flood1"], agent), ["--json"], fanout=64, timeout_s=_PATIENCE_S)
    assert list(found.told) == ["good1"]
    assert found.failed == {"flood1": "it tells more than 8 MiB"}


def test_ctrl_c_asks_no_more_nodes(agent: str, tmp_path: Path) -> None:
    words = ["doctor", "cluster", "-w", "slow[1-3]", "--ssh", agent, "--fanout", "1"]
    begun, temporary = tmp_path / "slow", tmp_path / "temporary"
    temporary.mkdir()
    with on_terminal(temporary, *words) as terminal:
        until = time.monotonic() + _PATIENCE_S
        while not (begun.exists() and begun.read_text().strip()):
            assert time.monotonic() < until, terminal.output
            time.sleep(0.05)
        terminal.press_ctrl_c()
        assert terminal.wait() in (130, -2), terminal.output
        assert "Traceback" not in terminal.output
        assert terminal.left() == []
    assert len((tmp_path / "asked").read_text().splitlines()) == 1


def test_an_interrupted_agent_is_the_last_one(tmp_path: Path) -> None:
    """Ctrl-C may end an agent before the command hears of it."""
    agent = tmp_path / "agent"
    agent.write_text(f'#!/bin/sh\necho "$1" >>{tmp_path}/asked\nkill -INT $$\n')
    agent.chmod(0o755)
    found = ask(of_hosts(["n[1-3]"], str(agent)), ["--json"], fanout=1, timeout_s=_PATIENCE_S)
    assert (tmp_path / "asked").read_text().split() == ["n1"]
    assert found.told == {}
    assert found.failed["n3"] == "it was not asked: interrupted"


def test_an_agent_that_is_not_there_is_named(tmp_path: Path) -> None:
    agent = str(tmp_path / "none")
    found = ask(of_hosts(["n[1-2]"], agent), ["--json"], fanout=1, timeout_s=_PATIENCE_S)
    assert found.told == {}
    assert set(found.failed.values()) == {f"{agent} cannot be executed: No such file or directory"}


def test_what_a_node_tells_makes_sense() -> None:
    """Of this one, and of one with a finding."""
    source = Source()
    try:
        done = examine(Node(source, Goal.LATENCY), ALL.values())
        assert sensible(json.loads(json.dumps(report.as_json(done))))
    finally:
        source.close()
    assert sensible(with_finding())
    assert sensible(with_finding(changes=[{"command": "sysctl -w x=1"}]))


def test_the_command_tells_them_and_ends_with_status_2(agent: str) -> None:
    answer = beowire_cli.beowire("doctor", "cluster", "-w", "good[1-2],down[1-2]", "--ssh", agent)
    assert answer.status == 2
    assert "2 of 4 nodes examined" in answer.output
    for node in ("down1", "down2"):
        assert f"{node} cannot be examined: it is not reached" in answer.errors


@pytest.mark.parametrize(
    "options",
    [(), ("-w", "n1", "--lab", "x"), ("-w", "n[1-"), ("--hostfile", "/nowhere"), ("--lab", "none")],
    ids=str,
)
def test_what_cannot_be_examined_as_asked_is_no_finding(options: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, ["cluster", *options])
    assert isinstance(result.exception, BeowireError)
    assert result.exception.code == 2
    assert "--hosts " not in str(result.exception)


def test_no_node_at_all_is_an_error(agent: str) -> None:
    answer = beowire_cli.beowire("doctor", "cluster", "-w", "down[1-2]", "--ssh", agent)
    assert answer.status == 2
    assert "No node could be examined" in answer.errors


@pytest.mark.skipif(
    bool(beowire_cli.NO_NAMESPACES), reason=f"namespaces: {beowire_cli.NO_NAMESPACES}"
)
def test_a_nodes_copy_and_one_without_ipv6_are_found(lab_name: str) -> None:
    made: lab.Lab = up.up(lab_name, 3, 1500)

    def link() -> tuple[str, list[str]]:
        (found,) = (each for each in answers.links() if each["name"] == "eth0")
        four = [each for each in found["addresses"] if "." in each]
        return found["address"], four

    hardware, (address,) = namespaces.within(made.namespace_path("node1"), link)

    def copy() -> None:
        with IPRoute() as route:
            index = route.link_lookup(ifname="eth0")[0]
            route.flush_addr(index=index)
            route.link("set", index=index, address=hardware)
            host, bits = address.split("/")
            route.addr("add", index=index, address=host, prefixlen=int(bits))

    def without_six() -> None:
        Path("/proc/sys/net/ipv6/conf/eth0/disable_ipv6").write_text("1")
        Path("/proc/sys/net/ipv4/tcp_retries2").write_text("9")

    namespaces.within(made.namespace_path("node2"), copy)
    namespaces.within(made.namespace_path("node3"), without_six)
    words = ["doctor", "cluster", "--lab", lab_name, "--only", "tcp.retries"]
    answer = beowire_cli.beowire(*words, "--json")
    assert answer.status == 1, answer.errors
    found = json.loads(answer.output)
    assert {(each["address"], each["nodes"]) for each in found["duplicates"]} == {
        (hardware, "node[1-2]"),
        (address.partition("/")[0], "node[1-2]"),
    }
    different = {each["what"]: dict(each["nodes"]) for each in found["differences"]}
    assert different["eth0 IPv6"] == {"on": "node[1-2]", "off": "node3"}
    assert different["net.ipv4.tcp_retries2"]["9"] == "node3"


@pytest.mark.skipif(
    bool(beowire_cli.NO_NAMESPACES), reason=f"namespaces: {beowire_cli.NO_NAMESPACES}"
)
def test_the_node_of_a_lab_that_differs_is_found(lab_name: str) -> None:
    made: lab.Lab = up.up(lab_name, 3, 9000)

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
