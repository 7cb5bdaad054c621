# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `beowire bench sockets` reads and refuses, and one short run in a lab of its own."""

import argparse
import dataclasses
import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from beowire import places
from beowire.bench import postgres, samples, sockets, sockets_programs
from beowire.bench.sockets import Measured, Report
from beowire.bench.sockets_figures import FIGURES, Figure
from beowire.errors import BeowireError
from beowire.lab import lab
from beowire_cli import beowire

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="root is needed for network namespaces")

REDIS = """"test","rps","avg","min","p50","p95","p99","max"
"GET","19071.84","0.049","0.024","0.047","0.071","0.087","1.135"
"""


def figure(name: str) -> Figure:
    return next(each for each in FIGURES if each.name == name)


def test_what_programs_print() -> None:
    assert figure("redis-1").value(REDIS) == pytest.approx(47)
    assert figure("redis-50").value(REDIS) == pytest.approx(19071.84)
    told = json.dumps({"end": {"sum_received": {"bits_per_second": 8e9}}})
    assert figure("iperf3").value(told) == pytest.approx(1000)
    assert figure("short").value('{"connections": 2, "ns_each": 1500}') == pytest.approx(1.5)
    said = "sockperf: ---> percentile 50.000 =    6.234\n"
    assert figure("sockperf").value(said) == pytest.approx(6.234)
    said = "latency average = 0.1 ms\ntps = 7086.03 (without initial connection time)\n"
    assert figure("pgbench-8").value(said) == pytest.approx(7086.03)
    for each in FIGURES:
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


@pytest.mark.parametrize(
    ("installed", "root", "mapped", "why"),
    [
        (False, True, 1 << 32, "not installed"),
        (True, False, 1 << 32, "refuses root"),
        (True, True, 1, "refuses root"),
        (True, True, 1 << 32, ""),
    ],
)
def test_where_there_is_no_postgresql(
    installed: bool,
    root: bool,
    mapped: int,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A version without all programs is none, and the newest counts. A namespace with one user has
    nobody else."""
    for number in ("9", "10", "11", "common"):
        (tmp_path / number / "bin").mkdir(parents=True)
    for number in ("9", "10", "common") if installed else ():
        for name in ("initdb", "postgres", "pgbench", "pg_isready"):
            (tmp_path / number / "bin" / name).touch()
    (tmp_path / "11" / "bin" / "pgbench").touch()
    (tmp_path / "users").write_text(f"{0:10} {0:10} {mapped:10}\n")
    monkeypatch.setattr(postgres, "_INSTALLED", tmp_path)
    monkeypatch.setattr(postgres, "_MAPPED", tmp_path / "users")
    monkeypatch.setattr(postgres.shutil, "which", lambda _: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    assert postgres.programs() == (tmp_path / "10" / "bin" if installed else None)
    told = figure("pgbench-1").lacking()
    assert why in told
    assert bool(why) == bool(told)


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets.labs, "load_ready", lambda _: argparse.Namespace(nodes=2))
    monkeypatch.setattr(postgres, "programs", lambda: None)
    report = sockets.measure(sockets.chosen("pgbench-1,pgbench-8"), "lab", 1, lambda _: None)
    assert set(report.missing) == {"pgbench-1", "pgbench-8"}
    assert "PostgreSQL: not installed" in report.missing["pgbench-8"]
    assert report.figures == []


@needs_root
def test_root_follows_no_link_of_the_server_s_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes nothing where he could have put one."""
    with tempfile.TemporaryDirectory() as place:
        programs = Path(place)
        programs.chmod(0o755)
        target = programs / "root-s-own"
        target.write_text("as it was")
        initdb = programs / "initdb"
        initdb.write_text(f'#!/bin/sh\nmkdir "$2" && ln -s {target} "$2/pg_hba.conf"\n')
        initdb.chmod(0o755)
        monkeypatch.setattr(postgres, "programs", lambda: programs)
        monkeypatch.setattr(postgres.places, "product", lambda _: initdb)
        with pytest.raises(BeowireError, match=r"pg_hba\.conf"), postgres.made(tables=False):
            pass
        assert target.read_text() == "as it was"
        initdb.write_text('#!/bin/sh\nmkdir "$2"\n')
        with postgres.made(tables=False) as server:
            rules = server.data / "pg_hba.conf"
            assert rules.read_text() == "".join(f"{line}\n" for line in postgres.BELIEVED)
            assert {rules.owner(), server.directory("other").owner()} == {postgres.USER}


def test_a_server_that_listens_may_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked until it answers."""
    listening, asked = iter([False, False, True, True, True]), []

    def answers() -> bool:
        asked.append(True)
        return len(asked) == 3

    monkeypatch.setattr(sockets_programs, "_listens", lambda *_: next(listening))
    monkeypatch.setattr(sockets_programs.preloading, "where", lambda *_: [])
    with sockets_programs.serving("lab", "node1", ["sleep", "600"], "sleep", 1, answers):
        assert len(asked) == 3


@needs_root
def test_postgresql_is_measured() -> None:
    """Few transactions; more, if the last ones were over before their connections had left TCP.
    Each server is a new one with the same data."""
    if postgres.lacking():
        pytest.skip(postgres.lacking())
    short = "no connection left TCP"
    with sockets.own_lab(9000) as name:
        for count in (1000, 4000, 16000, 64000):
            figures = tuple(few(each, count) for each in sockets.chosen("pgbench-1,pgbench-8"))
            try:
                report = sockets.measure(figures, name, 1, lambda _: None)
            except BeowireError as error:
                if short not in str(error):
                    raise
            else:
                break
        else:
            pytest.fail(short)
    assert [each.figure.name for each in report.figures] == ["pgbench-1", "pgbench-8"]
    assert all(each.tcp[0] > 0 and each.beowire[0] > 0 for each in report.figures)


def few(figure: Figure, count: int) -> Figure:
    """With so many transactions of a client, in place of its own."""
    at = figure.client.index("-t") + 1
    client = (*figure.client[:at], str(count), *figure.client[at + 1 :])
    return dataclasses.replace(figure, client=client)


@needs_root
@pytest.mark.usefixtures("own_shm")
def test_a_run_by_tcp_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is there, but no connection leaves TCP."""
    monkeypatch.setenv("BEOWIRE_SOCKETS", "off")
    done = beowire("bench", "sockets", "--figures", "pingpong", "--rounds", "1")
    assert done.status == 4
    assert "no connection left TCP" in done.errors
