# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Seeded defects of beowired and of its clients, each of which tests must notice: see
tests/mutants/service.py."""

import json
import subprocess
import sys
from typing import Any

import pytest
from beowire import places

EVERY = 9
"""Of so many defects one is tried in a normal run, and those of files that changed last."""


def tried(*words: str) -> tuple[int, dict[str, Any], str]:
    program = places.root() / "tests" / "mutants" / "service.py"
    done = subprocess.run(
        [sys.executable, str(program), "--json", *words],
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
    assert told["passed"] >= 25
