# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Seeded defects of beowired and of its clients, each of which tests must notice: see
tests/mutants/service.py."""

import json
import subprocess
import sys
from typing import Any

import pytest
from beowire import places

MUTANTS = places.root() / "tests" / "mutants"
SAMPLE = ("--sample", "28", "--changed-most", "3")
"""In a normal run: three of the files that changed last, and three others or so, which differ from
commit to commit."""


def tried(*words: str) -> tuple[int, dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, str(MUTANTS / "service.py"), "--json", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout) if done.stdout else {}
    return done.returncode, told, done.stderr


def test_a_sample_of_defects_is_noticed() -> None:
    status, told, errors = tried(*SAMPLE)
    assert status == 0, errors + json.dumps(told, indent=1)
    assert told["passed"] == len(told["mutants"]) >= 2


def test_the_sample_follows_from_the_commit() -> None:
    """What fails once fails again."""
    command = [sys.executable, str(MUTANTS / "service.py"), *SAMPLE, "--list"]
    one, other = (subprocess.run(command, capture_output=True, text=True) for _ in range(2))
    assert one.returncode == 0, one.stderr
    assert one.stdout == other.stdout
    assert 2 <= len(one.stdout.splitlines()) <= 7


@pytest.mark.long
def test_every_defect_is_noticed() -> None:
    status, told, errors = tried()
    assert status == 0, errors + json.dumps(told, indent=1)
    assert told["passed"] >= 25
