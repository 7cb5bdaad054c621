# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs built with sanitizers in the place of the build's: the actor of the tests of libbeowire,
and with it the links by packet sockets and what runs beside them, beowire-pingpong and the other
small ones, and the link emulator."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from beowire import places
from test_sanitizers import ADDRESS, OPTIONS, configured, run

PROGRAMS = (
    "emulator/beowire-link",
    "programs/beowire-example",
    "programs/beowire-info",
    "programs/beowire-pingpong",
    "tests/user/actor",
    "tests/user/homes",
    "tests/user/show_settings",
    "tests/user/test_close",
    "tests/user/test_threads",
)
TESTS = ("tests/user", "tests/emulator", "tests/local/test_local_programs.py")
# Libraries with a sanitizer in programs without one do not load; the guest's first program, which
# is linked statically, cannot be built with one; and how much each of two interfaces carries is a
# matter of speed.
LEFT_OUT = (
    "tests/user/test_user_library.py",
    "tests/user/test_user_links.py::test_vlan",
    "tests/user/test_user_links.py::test_frames_that_a_switch_tags_pass",
    "tests/user/test_user_stripe.py::test_long_messages_travel_by_both",
    "tests/local/test_local_programs.py::test_info_hears_a_signal_that_comes_as_it_falls_asleep",
)
LEAST = 350
"""Tests that run, at least."""
LIMIT_S = 1500
pytestmark = [pytest.mark.long, pytest.mark.timeout(LIMIT_S + 600)]


@pytest.fixture(scope="module")
def build() -> Path:
    made = configured(ADDRESS)
    run([places.program("ninja", "ninja-build"), "-C", str(made), *PROGRAMS])
    return made


def reports(place: Path) -> list[str]:
    """A word of a thread that was not suspended is no complaint by itself."""
    said = [each.read_text(errors="replace") for each in sorted(place.glob("report.*"))]
    return [each for each in said if re.search("Sanitizer|runtime error", each)]


def options(place: Path) -> dict[str, str]:
    """Whatever a sanitizer complains of, also of a program whose end nobody looks at, is there."""
    said = f":log_path={place / 'report'}"
    return {name: value + said for name, value in OPTIONS.items()}


def test_no_complaint_of_programs(build: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2"]
    words += ["--dist", "loadfile", "-c", "tools/pyproject.toml", "--rootdir", ".", *TESTS]
    words += [f"--deselect={each}" for each in LEFT_OUT]
    environment = os.environ | options(tmp_path) | {"BEOWIRE_BUILD": str(build)}
    environment.pop("BEOWIRE_TEST_LONG", None)  # of the others
    done = subprocess.run(
        words,
        cwd=places.root(),
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert reports(tmp_path) == []
    assert done.returncode == 0, done.stdout[-20000:]
    last = done.stdout.splitlines()[-1]
    passed = re.fullmatch(r"(\d+) passed(, \d+ deselected)?(, \d+ warnings?)? in .*", last)
    assert passed, last
    assert int(passed[1]) >= LEAST


def test_what_a_program_is_blamed_for_is_found(build: Path, tmp_path: Path) -> None:
    """Also if its end is not looked at: one that overruns, by the library that all have."""
    run([places.program("ninja", "ninja-build"), "-C", str(build), "tests/sanitizers/planted"])
    environment = os.environ | options(tmp_path)
    subprocess.run([build / "tests/sanitizers/planted", "overrun"], env=environment, check=False)
    assert [bool(re.search("heap-buffer-overflow", each)) for each in reports(tmp_path)] == [True]
    sanitized = [
        each
        for each in PROGRAMS
        if "libasan" in subprocess.run(["ldd", build / each], capture_output=True, text=True).stdout
    ]
    assert sanitized == list(PROGRAMS)
