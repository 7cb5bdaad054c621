# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tests that ask more of the kernel than this machine's has run in a guest with a stock one.

All of a file's tests that need it run in one guest, which is booted once; each then asks for its
own verdict there.
"""

import os
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.vm import machine
from remembered import remembered

INSIDE = "BEOWIRE_TEST_IN_GUEST"


def elsewhere(test: str, tests: tuple[str, ...], why: str) -> None:
    """This test of `tests` (names of functions in test_user_links.py) passes in a guest.

    `why` is what this kernel lacks. Skips where there are no guests; in a guest nothing may lack.
    """
    assert INSIDE not in os.environ, f"a stock kernel lacks something: {why}"
    try:
        verdicts = _verdicts(tests)
    except BeowireError as error:
        pytest.skip(f"this kernel has no such interfaces ({why}), and there is no guest: {error}")
    assert verdicts.get(test) == "passed", f"in a guest: {verdicts.get(test)}"


@remembered
def _verdicts(tests: tuple[str, ...]) -> dict[str, str]:
    root = places.root()
    with tempfile.TemporaryDirectory(dir=places.build_dir()) as name:
        share = Path(name)
        report = share / "report.xml"
        command = [
            *(
                "env",
                f"{INSIDE}=1",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1",  # what they load takes long under emulation
                sys.executable,
                "-P",
                "-m",
                "pytest",
                "-p",
                "no:cacheprovider",
                "-p",
                "pytest_timeout",
            ),
            *("-c", str(root / "tools" / "pyproject.toml"), f"--junitxml={report}"),
            *(f"{root}/tests/user/test_user_links.py::{each}" for each in tests),
        ]
        with (share / "output").open("w+") as output:
            guest = machine.Guest(command=command, memory_mb=2048, shares=[share])
            outcome = machine.run(guest, output.fileno())
            output.seek(0)
            print(output.read())
        assert not outcome.complaints, outcome.complaints
        assert report.exists(), f"the guest ended with {outcome.exit_status}"
        return dict(_verdict(case) for case in ElementTree.parse(report).iter("testcase"))


def _verdict(case: ElementTree.Element) -> tuple[str, str]:
    for bad in ("failure", "error", "skipped"):
        if (found := case.find(bad)) is not None:
            return case.get("name", ""), f"{bad}: {found.get('message', '')}"
    return case.get("name", ""), "passed"
