# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PostgreSQL's suite: what its runner says, what is recorded of a run with many parts, and that a
run by TCP is none over Beowire."""

import argparse
import os
import sys
from pathlib import Path
from queue import Queue

import database
import network
import pytest
import record
import run
import sandbox
import trial
from beowire.bench import postgres as server
from beowire.errors import BeowireError
from beowire.lab.up import choose_mode
from beowire.run.cluster import of_hosts
from case import Case, Verdict
from command import Bench
from suites import postgres

SCHEDULE = "# words: none\ntest: setup\n\ntest: a b # late\nignore: b\ntest: long_one\n"
SAID = """test setup                        ... ok         1208 ms
parallel group (2 tests):  b a
     a                            ... ok           84 ms
     b                            ... FAILED       90 ms
"""


def test_what_its_runner_says() -> None:
    assert postgres.listed(SCHEDULE) == ["setup", "a", "b", "long_one"]
    said = [postgres.judge_part(name, SAID) for name in postgres.listed(SCHEDULE)]
    assert said == ["passed", "passed", "failed", "failed"]
    assert postgres.judge_part("a", f"{SAID}{database.BY_TCP}\n") == "failed"
    assert postgres.by_parts(0, " All 217 tests passed. \n") == "passed"
    assert postgres.by_parts(3, " All 217 tests passed. \n") == "failed"
    assert postgres.by_parts(0, " 1 of 217 tests failed. \n") == "failed"


def test_sources_of_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = tmp_path / "src" / "test" / "regress"
    tests.mkdir(parents=True)
    with pytest.raises(BeowireError, match="is not PostgreSQL's source"):
        postgres.version(tmp_path)
    (tests / "parallel_schedule").touch()
    program = tmp_path / "postgres"
    program.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 15.7 (Debian 15.7-0+deb12u1)'\n")
    program.chmod(0o755)
    monkeypatch.setattr(server, "programs", lambda: tmp_path)
    monkeypatch.setattr(server, "lacking", lambda: "")
    (tmp_path / "configure").write_text("PACKAGE_VERSION='15.18'\n")
    assert postgres.version(tmp_path) == "PostgreSQL 15.7"
    (tmp_path / "configure").write_text("PACKAGE_VERSION='16.1'\n")
    with pytest.raises(BeowireError, match="another version"):
        postgres.version(tmp_path)
    monkeypatch.setattr(server, "lacking", lambda: "there is none")
    with pytest.raises(BeowireError, match="there is none"):
        postgres.version(tmp_path)


def whole(directory: Path) -> Case:
    parts = tuple(postgres.listed(SCHEDULE))
    return Case(
        "postgres",
        "schedule",
        [],
        postgres.by_parts,
        directory=directory,
        parts=parts,
        judge_part=postgres.judge_part,
    )


@pytest.mark.parametrize(("ended", "silent"), [("failed", "failed"), ("hung", "hung")])
def test_parts_end_each_for_itself(
    ended: Verdict, silent: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what came to no end, those that had ended keep their word."""
    monkeypatch.setattr(trial, "_once", lambda *_: (ended, SAID))
    made = trial.run(whole(tmp_path), "", Bench(of_hosts(["n1"])), 0, both=False)
    told = {name: each.verdicts for name, each in made.by_name(whole(tmp_path)).items()}
    last = {"setup": "passed", "a": "passed", "b": silent, "long_one": silent}
    assert told == {name: {"beowire": each, "tcp": each} for name, each in last.items()}


def test_parts_are_recorded_and_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as one of them is not known, all run again."""
    ran = []

    def fake(case: Case, *_: object) -> trial.Trial:
        ran.append(case.name)
        made = trial.Trial({"beowire": "passed"})
        for name in case.parts:
            made.parts[name] = trial.Trial({"beowire": "passed"})
        return made

    monkeypatch.setattr(trial, "run", fake)
    monkeypatch.setattr(run, "_commit", lambda: "c1")
    options = argparse.Namespace(
        keep=[], again=False, both=False, limit=0, match=None, shuffle=None
    )
    benches: Queue[Bench] = Queue()
    benches.put(Bench(of_hosts(["n1"])))
    suite = run.Suite("postgres", "", "PostgreSQL 15", [whole(tmp_path)])
    results = tmp_path / "results.jsonl"
    for _ in range(2):
        assert run.run_suite(suite, "raw", benches, options, results)
    assert [each.name for each in record.read(results)] == ["setup", "a", "b", "long_one"]
    lines = results.read_text().splitlines(keepends=True)
    results.write_text("".join(lines[:3]))
    assert run.run_suite(suite, "raw", benches, options, results)
    assert ran == ["schedule"] * 2


ASK = """
out=${3#--outputdir=}
n=0
while [ $n -lt 400 ]; do
	echo "select repeat('x', 1000);"
	n=$((n + 1))
done >$out/asks
until grep -qs '"tx_beowire": *[1-9]' "$BEOWIRE_SOCKETS_STATS"/*; do
	psql "$1" "$2" -U beowire -XAtq -f $out/asks postgres >$out/got || exit
	[ "$BEOWIRE_SOCKETS" = off ] && break
done
grep -c xxx $out/got
"""
"""Instead of the runner: a client asks until its bytes have left TCP, or once if they cannot."""


@pytest.mark.parametrize(
    ("switch", "status", "last"), [("on", 0, "}"), ("off", 3, database.BY_TCP)]
)
def test_a_run_by_tcp_is_none_over_beowire(
    switch: str, status: int, last: str, tmp_path: Path
) -> None:
    if choose_mode()[0] == "loopback" or server.lacking():
        pytest.skip(server.lacking() or "namespaces are refused here")
    with network.lab("raw", 0) as cluster:
        assert cluster.lab is not None
        words = [sys.executable, database.__file__, cluster.lab.name, "beowire"]
        settings = {"BEOWIRE_SOCKETS": switch, "PATH": os.environ["PATH"]}
        ended, text = sandbox.run([*words, "sh", "-c", ASK, "sh"], 600, tmp_path, settings)
    assert ended == status, text
    assert "400" in text.split("\n")
    assert text.rstrip().endswith(last)
