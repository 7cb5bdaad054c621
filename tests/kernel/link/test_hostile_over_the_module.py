# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Hostile frames into a verified MPI job over the kernel module, in a guest.

tests/mpi/over_the_module.py says what happens there. The programs that speak are those of
tests/mpi/test_stranger.py; the job's nodes have ports of the module, theirs has none.
"""

import pytest
from test_mpi_over_the_module import kernel as kernel
from test_mpi_over_the_module import run

TESTS = "tests/mpi/over_the_module.py"
KINDS = [
    f"{who}-{kind}" for who in ("stranger", "member") for kind in ("plain", "key", "encrypted")
]
PARTS = range(1, 11)
"""Of a part each: so many frames, with seeds of its own."""
PART_FRAMES = 50_000


def hostile(part: int, frames: int) -> dict[str, str]:
    """The verdict of each test, with so many frames that ports have looked at."""
    variables = (f"BEOWIRE_TEST_FRAMES={frames}", "PYTEST_ADDOPTS=-rP")
    return run((f"{TESTS}::test_hostile_frames",), 1, variables, part)


@pytest.mark.long
def test_hostile_frames_over_the_module() -> None:
    """A stranger, and a member of the cluster; without a key, with one, encrypted."""
    expected = {f"test_hostile_frames[{kind}]": "passed" for kind in KINDS}
    assert hostile(0, 3000) == expected


@pytest.mark.long
@pytest.mark.parametrize("part", PARTS)
def test_hostile_frames_over_the_module_for_long(part: int) -> None:
    """The same with more of them."""
    verdicts = hostile(part, PART_FRAMES)
    assert set(verdicts.values()) == {"passed"}, verdicts
