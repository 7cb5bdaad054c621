# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Mixed load for a while: peers, socket programs and services that are killed, cables that are cut.
No byte is lost, everybody is told of what concerns him, and nothing is left behind.

BEOWIRE_TEST_SEED, as the test prints it, makes the same things happen once more."""

import os
import random

import mixed
import pytest


def seed(otherwise: int) -> int:
    return int(os.environ.get("BEOWIRE_TEST_SEED") or otherwise)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_three_minutes_of_mixed_load() -> None:
    happened = mixed.run(180, seed(1))
    assert happened["messages"] >= 60, happened


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(6))
def test_an_hour_of_mixed_load(part: int) -> None:
    mixed.run(600, seed(random.randrange(1 << 30)) + part)
