# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench apps` as a user meets it: mistakes, what is missing, and a small run."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from beowire.bench.apps import catalogue, compiled, installed
from beowire.bench.apps.application import Source
from beowire.errors import BeowireError
from beowire.lab import lab
from beowire.run import cluster
from beowire_cli import beowire, no_pair


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--apps", "excel"), "--apps excel: there is no excel"),
        (("--ranks", "1"), "--ranks 1?"),
        (("--ranks", "2x4"), "--ranks 2x4?"),
        (("--json", "/nowhere/file"), "/nowhere/file cannot be written"),
        (("--plot", "ratios.txt"), "ratios.txt names no kind of drawing"),
        (("--lab", "nosuch"), "There is no lab nosuch"),
        (("--lab", "one", "--hosts", "two"), "Where to run?"),
    ],
)
def test_mistakes(words: tuple[str, ...], why: str) -> None:
    done = beowire("bench", "apps", *words)
    assert done.status == 1
    assert why in done.errors
    assert "Traceback" not in done.errors


def test_what_is_missing_is_named() -> None:
    one = replace(catalogue.APPLICATIONS["hpcc"], program="no-such-program", packages=("it",))
    assert installed.lacking(one, None) == "no-such-program is not installed: apt-get install it"
    there = replace(one, program="sh")
    assert not installed.lacking(there, None)
    shared = catalogue.APPLICATIONS["hdf5"]
    assert "do not share" in installed.lacking(shared, cluster.of_hosts(["a", "b"]))


def test_headers_that_are_not_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BEOWIRE_CACHE", str(tmp_path))
    one = replace(catalogue.APPLICATIONS["fftw"], source=Source("fftw", libraries=("nothere",)))
    assert "fftw cannot be compiled" in installed.lacking(one, None)
    with pytest.raises(BeowireError, match=r"no headers of no-such-library|pkg-config is not"):
        compiled.program(Source("fftw", packages=("no-such-library",)))


def test_what_was_compiled_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BEOWIRE_CACHE", str(tmp_path))
    made = compiled.ledger()
    before = made.stat().st_mtime_ns
    assert compiled.ledger() == made
    assert made.stat().st_mtime_ns == before
    assert made.parent == tmp_path / "apps"
    monkeypatch.setattr(compiled, "_LEDGER", (*compiled._LEDGER, "-DOTHER"))
    assert compiled.ledger() != made


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
def test_the_command(tmp_path: Path) -> None:
    file, drawing = tmp_path / "apps.json", tmp_path / "apps.svg"
    words = ("--apps", "tridiagonal", "--ranks", "2", "--rounds", "2", "--profile", "all")
    done = beowire("bench", "apps", *words, "--json", str(file), "--plot", str(drawing))
    assert done.status == 0, done.errors
    assert "Applications, the worst first" in done.output
    assert "endpoints: rounds" in done.output
    told = json.loads(file.read_text())
    (cell,) = told["cells"]
    assert (cell["figure"], cell["ranks"], cell["nodes"]) == ("tridiagonal", 2, 2)
    assert cell["ratio"] == pytest.approx(cell["beowire"] / cell["tcp"])
    assert cell["low"] < cell["ratio"] < cell["high"]
    (profile,) = told["profiles"]
    assert profile["tcp"]["mpi"]["Allgather"][0] == profile["beowire"]["mpi"]["Allgather"][0]
    assert told["failed"] == []
    assert drawing.read_bytes().startswith(b"<?xml")
    assert [name for name in lab.names() if name.startswith("apps-")] == []
