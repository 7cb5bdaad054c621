# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `beowire bench sockets` reads and refuses, and one short run in a lab of its own."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from beowire import places
from beowire.bench import samples, sockets
from beowire.bench.sockets import Figure, Measured, Report
from beowire.errors import BeowireError
from beowire.lab import lab
from beowire_cli import beowire

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="root is needed for network namespaces")

REDIS = """"test","rps","avg","min","p50","p95","p99","max"
"GET","19071.84","0.049","0.024","0.047","0.071","0.087","1.135"
"""


def figure(name: str) -> Figure:
    return next(each for each in sockets.FIGURES if each.name == name)


def test_what_programs_print() -> None:
    assert figure("redis-1").value(REDIS) == pytest.approx(47)
    assert figure("redis-50").value(REDIS) == pytest.approx(19071.84)
    told = json.dumps({"end": {"sum_received": {"bits_per_second": 8e9}}})
    assert figure("iperf3").value(told) == pytest.approx(1000)
    assert figure("short").value('{"connections": 2, "ns_each": 1500}') == pytest.approx(1.5)
    said = "sockperf: ---> percentile 50.000 =    6.234\n"
    assert figure("sockperf").value(said) == pytest.approx(6.234)
    for each in sockets.FIGURES:
        with pytest.raises((ValueError, KeyError)):
            each.value("")


@pytest.mark.parametrize("text", ["", "redis", "redis-1,x", ","])
def test_figures_that_are_none(text: str) -> None:
    with pytest.raises(BeowireError, match="--figures"):
        sockets.chosen(text)


def test_figures_keep_their_order() -> None:
    assert [each.name for each in sockets.chosen("iperf3, pingpong")] == ["pingpong", "iperf3"]


def test_everything_is_in_the_file() -> None:
    report = Report(2, missing={"iperf3": "iperf3: not installed"}, load=[0.5, 1.5])
    measured = Measured(figure("short"), [1.0, 4.0], [2.0, 8.0], samples.ratio([2, 8], [1, 4]))
    report.figures.append(measured)
    told = json.loads(json.dumps(report.as_json()))
    assert told["figures"][0]["ratio"]["value"] == pytest.approx(2)
    assert told["figures"][0]["figure"] == "short"
    assert told["missing"] == {"iperf3": "iperf3: not installed"}
    assert sockets.both(measured) == pytest.approx((2, 4))


def test_the_program_says_what_it_takes() -> None:
    done = subprocess.run(
        [places.example("connects"), "short", "127.0.0.1"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "HOST PORT CONNECTIONS" in done.stderr


@needs_root
@pytest.mark.usefixtures("own_shm")
def test_a_short_run(tmp_path: Path) -> None:
    file = tmp_path / "sockets.json"
    words = ["--figures", "pingpong,short-plain", "--rounds", "1", "--json", str(file)]
    done = beowire("bench", "sockets", *words)
    assert done.status == 0, done.errors
    assert "too few rounds" in done.output
    told = json.loads(file.read_text())
    assert [each["figure"] for each in told["figures"]] == ["pingpong", "short-plain"]
    for each in told["figures"]:
        assert len(each["tcp"]) == len(each["beowire"]) == 1
        assert each["ratio"]["value"] == pytest.approx(each["beowire"][0] / each["tcp"][0])
    assert not [each for each in lab.names() if each.startswith("sockets-")]


@needs_root
@pytest.mark.usefixtures("own_shm")
def test_a_run_by_tcp_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is there, but no connection leaves TCP."""
    monkeypatch.setenv("BEOWIRE_SOCKETS", "off")
    done = beowire("bench", "sockets", "--figures", "pingpong", "--rounds", "1")
    assert done.status == 4
    assert "no connection left TCP" in done.errors
