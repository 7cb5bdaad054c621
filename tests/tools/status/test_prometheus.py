# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The text for Prometheus: its grammar, and that the dashboard asks for what there is."""

import json
import re
from pathlib import Path
from typing import Any

import board_bytes
import pytest
from beowire.status import cluster, layout, node, prometheus, tables
from beowire.status.boards import Found
from beowire.terminal import out

ROOT = Path(__file__).resolve().parents[3]
DASHBOARD = ROOT / "tools" / "grafana-beowire.json"
_LABELS = r'\{(?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"(?:,(?!\})|(?=\})))*\}'
_SAMPLE = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*){_LABELS} [0-9.e+-]+")


def endpoint(peers: list[bytes], program: str = "program", **head: int) -> dict[str, Any]:
    """One that a process of number 1 has."""
    whole = layout.head(board_bytes.board(peers, **head))
    named = layout.Head(whole.numbers, "host", program, ["eth0"], whole.drop_names)
    sheet = layout.sheet(whole, board_bytes.sheet(peers), 10)
    return node.endpoint(None, Found(0, 1, named, sheet))


def joined(*endpoints: dict[str, Any]) -> dict[str, Any]:
    told = {"endpoints": list(endpoints), "processes": {}, "kernel": None}
    return cluster.joined({"host": told}, {"other": "no answer"})


def state(program: str = "program") -> dict[str, Any]:
    """Of one endpoint with a peer that lost something."""
    peer = board_bytes.peer(way=1, tx_packets=1000, losses=100, srtt_ns=2_000_000, flags=3)
    return joined(endpoint([peer], program))


def samples(told: dict[str, Any]) -> list[str]:
    """Names of metrics with their labels, without values."""
    lines = prometheus.text(told).splitlines()
    return [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]


def test_each_line_is_one_of_the_formats() -> None:
    names = {metric.name for metric in prometheus.METRICS}
    for line in prometheus.text(state()).splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP \S+ .+|TYPE \S+ (counter|gauge))", line), line
        else:
            found = _SAMPLE.fullmatch(line)
            assert found, line
            assert found[1] in names


def test_a_metric_stands_once_and_its_samples_follow_it() -> None:
    present, seen = "", set()
    for line in prometheus.text(state()).splitlines():
        if line.startswith("# HELP"):
            present = line.split()[2]
            assert present not in seen
            seen.add(present)
        elif not line.startswith("#"):
            assert line.startswith(present + "{")


def test_endpoints_of_one_process_are_told_apart() -> None:
    """As are all that one speaks with: two of one process, two dead ones of one number."""
    two = [endpoint([], engine=3, incarnation=n) for n in (3, 4)]
    ours = [board_bytes.peer(node=0xABC, engine=3, incarnation=n) for n in (3, 4)]
    dead = [board_bytes.peer(node=0xDEF, engine=5, incarnation=n, status=-111) for n in (6, 7)]
    found = samples(joined(*two, endpoint([*ours, *dead])))
    assert len(found) == len(set(found))
    assert sum(each.startswith("beowire_endpoint_info{") for each in found) == 3
    assert sum(each.startswith("beowire_peer_losses_total{") for each in found) == 4


def test_boards_that_are_alike_spoil_nothing() -> None:
    """Some user writes what others have written, of another namespace of processes, too."""
    peer = board_bytes.peer(node=0xDEF, losses=1)
    found = samples(joined(endpoint([peer]), endpoint([peer, peer])))
    assert found == samples(joined(endpoint([peer])))


def test_counters_say_so_by_their_names() -> None:
    for metric in prometheus.METRICS:
        assert (metric.kind == "counter") == metric.name.endswith("_total"), metric


def test_what_is_wrong_is_told() -> None:
    text = prometheus.text(state())
    labels = 'node="host",endpoint="host:1",engine="9",identity="0000000000000abc/9/00000007",'
    labels += 'peer="other engine 0",link="packet",peer_identity="0000000000000000/0/00000000"'
    assert f"beowire_peer_losses_total{{{labels}}} 100\n" in text
    assert f"beowire_peer_round_trip_seconds{{{labels}}} 0.002\n" in text
    assert f'beowire_peer_problem{{{labels},problem="lossy"}} 1\n' in text
    assert 'beowire_up{node="host"} 1\n' in text
    assert 'beowire_up{node="other"} 0\n' in text


def test_no_text_of_others_ends_a_label() -> None:
    lines = prometheus.text(state('x"} 1\n# bad \\')).splitlines()
    assert len(lines) == len(prometheus.text(state()).splitlines())
    for line in lines:
        assert line.startswith("# ") or _SAMPLE.fullmatch(line), line


def test_no_text_of_others_commands_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    told = state("x\x1b[2Jy\x9b[bold]")
    told["endpoints"][0]["peers"][0]["name"] = "p\x1b]0;q"
    out().print(tables.whole(told), width=300)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert "p?]0;q" in shown


def test_the_dashboard_asks_for_what_there_is() -> None:
    known = {metric.name for metric in prometheus.METRICS}
    board = json.loads(DASHBOARD.read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [each["query"] for each in board["templating"]["list"]]
    named = {name for text in asked for name in re.findall(r"\bbeowire_\w+", text)}
    assert len(named) > 10
    assert named <= known
    assert all(panel["targets"] for panel in board["panels"])
