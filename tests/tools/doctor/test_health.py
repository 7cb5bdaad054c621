# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`doctor check`: the line for a batch system, and the file for Prometheus."""

import csv
import io
import json
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from beowire.doctor import health
from beowire.doctor.check import Bad, Weight
from beowire.doctor.cli import app
from beowire.doctor.examine import Examination, Outcome, State
from beowire.doctor.node import Goal, Node
from beowire.doctor.registry import ALL
from beowire.doctor.source import Recorded
from beowire.errors import BeowireError
from typer.testing import CliRunner, Result

_LINK = {
    "name": "eth0", "index": 2, "up": True, "arp": True, "addresses": ["10.0.0.1/24"], "mtu": 1500,
    "kind": None, "below": None, "max_mtu": 9000, "txqlen": 1000, "master": None, "carrier": 1,
    "counters": {}, "address": "02:00:00:00:00:01",
}  # fmt: skip
_SYSCTLS = {"net/ipv4/tcp_sack": "1\n", "net/ipv4/tcp_timestamps": "1\n"}


def tree_at(place: Path, **sysctls: str) -> Path:
    """A recorded node of one interface and a few settings."""
    (place / "answers").mkdir(parents=True)
    (place / "answers" / "links.json").write_text(json.dumps([_LINK]))
    for name, text in (
        _SYSCTLS | {f"net/ipv4/{key}": each for key, each in sysctls.items()}
    ).items():
        file = place / "proc" / "sys" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (place / "proc" / "sys" / "kernel").mkdir()
    (place / "proc" / "sys" / "kernel" / "hostname").write_text("n1\n")
    return place


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def found(tmp_path: Path, *weights: Weight, troubles: tuple[str, ...] = ()) -> Examination:
    """An examination with findings of these weights."""
    bad = Bad("0", "1")
    outcomes = [
        Outcome(each, "eth0", State.BAD, "0", replace(bad, weight=weight))
        for each, weight in zip(ALL.values(), weights, strict=False)
    ]
    outcomes.append(Outcome(ALL["tcp.sack"], "", State.GOOD, "1"))
    return Examination(Node(Recorded(tmp_path), Goal.LATENCY), outcomes, list(troubles))


def test_the_line_tells_what_makes_a_node_unfit(tmp_path: Path) -> None:
    mixed = found(tmp_path, Weight.SLIGHT, Weight.SEVERE, Weight.COSTLY)
    names = [each.subject for each in mixed.findings()]
    assert health.line(mixed, Weight.SEVERE) == f"beowire doctor: 1 finding: {names[0]} (0)"
    assert health.line(mixed, Weight.COSTLY).startswith(f"beowire doctor: 2 findings: {names[0]}")
    fit = found(tmp_path, Weight.SLIGHT)
    assert health.line(fit, Weight.SEVERE) == (
        "beowire doctor: fit: 2 looked at, 1 finding of less weight"
    )
    assert health.line(found(tmp_path), Weight.SEVERE) == "beowire doctor: fit: 1 looked at"
    trouble = found(tmp_path, Weight.SEVERE, troubles=("no\nsuch \x1b[2J interface",))
    assert health.line(trouble, Weight.SEVERE) == (
        "beowire doctor: not examined: no such ?[2J interface"
    )
    many = found(tmp_path, *[Weight.SEVERE] * 60)
    assert len(health.line(many, Weight.SEVERE)) == health.LINE_MAX


@pytest.mark.parametrize(
    ("sack", "arguments", "status"),
    [
        ("1", ["--nhc"], 0),
        ("0", ["--nhc", "--least", "slight"], 1),
        ("0", [], 1),
        ("1", [], 0),
        ("1", ["--nhc", "-i", "none"], 2),
        ("0", ["-i", "none"], 2),
    ],
)
def test_the_exit_status(sack: str, arguments: list[str], status: int, tmp_path: Path) -> None:
    tree = tree_at(tmp_path / "n", tcp_sack=f"{sack}\n")
    told = doctor("check", "--root", str(tree), "--only", "tcp.sack", *arguments)
    assert told.exit_code == status
    if "--nhc" in arguments:
        assert re.fullmatch(r"beowire doctor: [^\n]+\n", told.stdout)


def test_less_than_the_least_is_no_reason(tmp_path: Path) -> None:
    tree = tree_at(tmp_path / "n", tcp_sack="0\n")
    weight = ALL["tcp.sack"].weight
    arguments = ["check", "--root", str(tree), "--only", "tcp.sack", "--nhc", "--least"]
    for each in Weight:
        told = doctor(*arguments, each.name.lower())
        assert told.exit_code == (1 if weight >= each else 0), told.stdout


def test_the_rows(tmp_path: Path) -> None:
    tree = tree_at(tmp_path / "n", tcp_sack="0\n")
    arguments = ["check", "--root", str(tree), "--only", "tcp.sack", "--only", "tcp.timestamps"]
    rows = list(csv.DictReader(io.StringIO(doctor(*arguments, "--format", "csv").stdout)))
    assert [(each["check"], each["state"]) for each in rows] == [
        ("tcp.sack", "bad"),
        ("tcp.timestamps", "good"),
    ]
    assert json.loads(doctor(*arguments, "--format", "json").stdout)[0]["check"] == "tcp.sack"
    assert "outcomes" in json.loads(doctor(*arguments, "--json").stdout)


def test_a_node_that_takes_long_is_given_up() -> None:
    with pytest.raises(BeowireError, match=r"within 0\.01 s") as late, health.limited(0.01):
        time.sleep(600)
    assert late.value.code == 2
    with health.limited(0):
        time.sleep(0.02)
    time.sleep(0.02)  # nothing is left that would end this


def test_the_file_for_prometheus(tmp_path: Path) -> None:
    file = tmp_path / "beowire.prom"
    file.write_text("old\n")
    file.chmod(0o600)
    health.write_textfile(file, found(tmp_path, Weight.SEVERE, Weight.SLIGHT))
    lines = file.read_text().splitlines()
    assert file.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in tmp_path.iterdir()] == ["beowire.prom"]
    metric = r'[a-z_]+\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\} [0-9.e+]+'
    for each in lines:
        assert re.fullmatch(rf"# (HELP|TYPE) .+|{metric}", each), each
    assert 'beowire_doctor_examined{goal="latency"} 1' in lines
    assert 'beowire_doctor_findings{goal="latency",weight="severe"} 1' in lines
    assert 'beowire_doctor_findings{goal="latency",weight="costly"} 0' in lines
    assert 'beowire_doctor_outcomes{goal="latency",state="bad"} 2' in lines
    assert sum(each.startswith("beowire_doctor_finding{") for each in lines) == 2
    samples = [each.rpartition(" ")[0] for each in lines if not each.startswith("#")]
    assert len(samples) == len(set(samples))


def test_what_is_being_written_is_not_read_and_follows_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    done = found(tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    file = tmp_path / "beowire.prom"
    monkeypatch.setattr(health.os, "getpid", lambda: 7)
    (tmp_path / ".beowire.prom.7.part").symlink_to(victim)
    real = health.os.fsync

    def look(number: int) -> None:
        seen.extend(each.name for each in tmp_path.iterdir())
        real(number)

    monkeypatch.setattr(health.os, "fsync", look)
    health.write_textfile(file, done)
    assert victim.read_text() == "mine"
    assert not [each for each in seen if each.endswith(".prom")]
    assert file.exists()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(BeowireError, match="cannot be written") as refused:
        health.write_textfile(tmp_path / "none" / "x.prom", found(tmp_path))
    assert refused.value.code == 2
