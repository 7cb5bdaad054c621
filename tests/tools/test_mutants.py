# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Seeded defects of the tools, each of which its tests must notice: see tests/mutants/tools.py."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from beowire import places

MUTANTS = places.root() / "tests" / "mutants"
EVERY = 15
"""Of so many defects one is tried in a normal run, and those of files that changed last."""

NOTICES = "tests/tools/run/test_host_names.py::test_names_that_are_none[a;id]"
GOOD = f"""
[[mutant]]
name = "at-in-names"
file = "tools/beowire/run/host_names.py"
function = "check"
says = "every text is a name"
old = 'raise BeowireError'
new = 'return text or BeowireError'
tests = ["{NOTICES}"]
"""


def tried(*words: str) -> tuple[int, dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, str(MUTANTS / "tools.py"), "--json", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout) if done.stdout else {}
    return done.returncode, told, done.stderr


def test_a_sample_of_defects_is_noticed() -> None:
    status, told, errors = tried("--sample", str(EVERY))
    assert status == 0, errors + json.dumps(told, indent=1)
    assert told["passed"] == len(told["mutants"]) > 0


@pytest.mark.long
def test_every_defect_is_noticed() -> None:
    status, told, errors = tried()
    assert status == 0, errors + json.dumps(told, indent=1)
    assert told["passed"] >= 50


def test_only_a_test_that_fails_has_noticed(tmp_path: Path) -> None:
    """Not one that passes, nor a package that cannot be read, nor a text that is not there."""
    table = tmp_path / "table.toml"
    wrong = {
        "harmless": ("return text or BeowireError", "raise (BeowireError)"),
        "unreadable": ("return text or BeowireError", "raise raise"),
        "stale": ("old = 'raise BeowireError'", "old = 'raise NoSuchError'"),
        "nowhere": ('function = "check"', 'function = "check_all"'),
    }
    rows = [GOOD]
    for name, (old, new) in wrong.items():
        assert old in GOOD
        rows.append(GOOD.replace("at-in-names", name).replace(old, new))
    table.write_text("".join(rows))
    status, told, errors = tried("--table", str(table))
    assert status == 1, errors
    found = {each["name"]: each for each in told["mutants"]}
    assert {name for name, each in found.items() if each["passed"]} == {"at-in-names"}
    assert found["harmless"]["problem"].endswith("passes")
    assert "invalid syntax" in found["unreadable"]["problem"]
    assert "contains the text 0 times" in found["stale"]["problem"]
    assert "has no check_all any more" in found["nowhere"]["problem"]
    status, told, errors = tried("--table", str(table), "--sample", "1000")
    assert status == 1, errors
    assert {each["name"] for each in told["mutants"]} >= {"stale", "nowhere"}


def test_the_kernel_hosts_table_fits_its_sources() -> None:
    """Its defects are tried by --long only."""
    table = places.root() / "tests" / "kernel" / "mutants.toml"
    host = places.root() / "hosts" / "kernel"
    for defect in tomllib.loads(table.read_text())["mutant"]:
        assert (host / defect["file"]).read_text().count(defect["old"]) == 1, defect["name"]


def test_tests_that_fail_anyway_or_are_skipped_prove_nothing(tmp_path: Path) -> None:
    table = tmp_path / "table.toml"
    for words, why in (
        ("import pytest\npytestmark = pytest.mark.skip('why')\ndef test_it(): pass\n", "SKIPPED"),
        ("def test_it(): assert False\n", "FAILED"),
    ):
        file = tmp_path / "test_made.py"
        file.write_text(words)
        table.write_text(GOOD.replace(NOTICES, f"{file}::test_it"))
        status, told, errors = tried("--table", str(table))
        assert (status, told) == (1, {})
        assert why in errors
