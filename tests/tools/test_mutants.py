# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Seeded defects of the tools, each of which its tests must notice: see tests/mutants/tools.py. And
which of a table a sample has: see tests/mutants/run.py."""

import json
import os
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


GIT_ENVIRONMENT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
ALL_FILES = {"first.c", "second.c", "third.c", "fourth.c"}
SAMPLE_OF = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(MUTANTS)!r})
import run
run.ROOT = Path(sys.argv[1])
mutants = [run.Mutant(name, name, "", "word", "") for name in {sorted(ALL_FILES)}]
print(*(each.file for each in run.sample_now(mutants, 10**9)))
"""
"""Of tables with one defect in each file of a repository, those of changed files."""


def git(repository: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(
        ["git", "-C", str(repository), *who, *words],
        env={**os.environ, **GIT_ENVIRONMENT},
        check=True,
        capture_output=True,
    )


def sampled(repository: Path) -> tuple[set[str], str]:
    """The files of the sample, and what was said."""
    done = subprocess.run(
        [sys.executable, "-c", SAMPLE_OF, str(repository)],
        env={**os.environ, **GIT_ENVIRONMENT},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split()), done.stderr


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A repository with a commit for each file."""
    made = tmp_path / "made"
    made.mkdir()
    git(made, "init", "-b", "main")
    for name in ("fourth.c", "first.c", "second.c", "third.c"):
        (made / name).write_text("word\n")
        git(made, "add", ".")
        git(made, "commit", "-m", name)
    return made


def test_without_an_upstream_the_last_commit_has_what_changed(history: Path) -> None:
    assert sampled(history) == ({"third.c"}, "")
    (history / "first.c").write_text("word and more\n")
    assert sampled(history) == ({"first.c", "third.c"}, "")


def test_all_commits_of_a_branch_have_what_changed(history: Path, tmp_path: Path) -> None:
    """Not the last one alone; and nothing that its upstream has got since."""
    clone = tmp_path / "clone"
    git(tmp_path, "clone", str(history), str(clone))
    assert sampled(clone) == ({"third.c"}, "")  # no commits of its own
    for name in ("first.c", "second.c"):
        (clone / name).write_text("word and more\n")
        git(clone, "commit", "-am", name)
    assert sampled(clone) == ({"first.c", "second.c"}, "")
    (history / "fourth.c").write_text("word and more\n")
    git(history, "commit", "-am", "others")
    git(clone, "fetch")
    assert sampled(clone) == ({"first.c", "second.c"}, "")
    git(clone, "checkout", "--detach")
    assert sampled(clone) == ({"first.c", "second.c"}, "")


def test_a_shallow_clone_says_that_it_is_one(history: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--depth", "1", history.as_uri(), str(clone))
    found, said = sampled(clone)
    assert found == ALL_FILES
    assert "shallow clone" in said


def test_without_history_nothing_counts_as_changed_and_that_is_said(tmp_path: Path) -> None:
    for name in ALL_FILES:
        (tmp_path / name).write_text("word\n")
    found, said = sampled(tmp_path)
    assert len(found) <= 1
    assert "no history" in said
