# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Seeded defects of beowired and of its clients, each of which tests must notice: see
tests/mutants/service.py."""

import json
import random
import subprocess
import sys
import tomllib
from typing import Any

import pytest
from beowire import places

MUTANTS = places.root() / "tests" / "mutants"
FEW = 3
"""So many defects, others each time, are tried in a normal run."""


def tried(*words: str) -> tuple[int, dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, str(MUTANTS / "service.py"), "--json", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout) if done.stdout else {}
    return done.returncode, told, done.stderr


def test_a_few_defects_are_noticed() -> None:
    rows = tomllib.loads((MUTANTS / "service.toml").read_text())["mutant"]
    names = random.sample([row["name"] for row in rows], FEW)
    status, told, errors = tried("--only", ",".join(names))
    assert status == 0, errors + json.dumps(told, indent=1)
    assert told["passed"] == FEW


@pytest.mark.long
def test_every_defect_is_noticed() -> None:
    status, told, errors = tried()
    assert status == 0, errors + json.dumps(told, indent=1)
    assert told["passed"] >= 25
