# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The MPI programs of tests/mpi over the kernel module, in a guest.

The same tests run there as here; where the module is loaded the nodes of their labs use it, and a
run counts only if all that crossed the nodes' borders went by the kernel link. Some run with a node
that does not use the module: one job then spans both kinds.
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

SEMANTICS = "tests/mpi/test_semantics.py"
QUICK = [f"{SEMANTICS}::test_between_nodes[{name}-openmpi]" for name in ("truncation", "overlap")]
ALL = [f"{SEMANTICS}::test_between_nodes", f"{SEMANTICS}::test_one_rank_on_each_of_four_nodes"]
LIMIT_S = 6000.0


@remembered
def run(
    tests: tuple[str, ...], without: int, variables: tuple[str, ...] = (), part: int = 0
) -> dict[str, str]:
    """The verdict of each test in the guest, where so many nodes of a lab do not use the module.
    Each part of the same tests is a run of its own."""
    assert part >= 0
    root = places.root()
    with tempfile.TemporaryDirectory(dir=places.build_dir()) as name:
        share = Path(name)
        settings = ["BEOWIRE_STATE=/tmp/state", "HOME=/tmp", f"PYTHONPATH={root}/tools"]
        settings += [f"BEOWIRE_TEST_NODES_WITHOUT_MODULE={without}", *variables]
        command = ["env", "--chdir=/tmp", *settings, sys.executable, "-P", "-m", "pytest", "-q"]
        command += ["-p", "no:cacheprovider", "-c", str(root / "tools" / "pyproject.toml")]
        command += [f"--junitxml={share}/report.xml", *(f"{root}/{each}" for each in tests)]
        with (share / "output").open("w+") as output:
            guest = machine.Guest(
                command, memory_mb=4096, limit_s=LIMIT_S, shares=[share], modules=True
            )
            outcome = machine.run(guest, output.fileno())
            output.seek(0)
            print(output.read())
        assert not outcome.complaints, outcome.complaints
        report = share / "report.xml"
        assert report.exists(), f"the guest ended with {outcome.exit_status}"
        return dict(verdict(case) for case in ElementTree.parse(report).iter("testcase"))


def verdict(case: ElementTree.Element) -> tuple[str, str]:
    for bad in ("failure", "error", "skipped"):
        if (found := case.find(bad)) is not None:
            return case.get("name", ""), f"{bad}: {found.get('message', '')}"
    return case.get("name", ""), "passed"


@pytest.fixture(scope="module", autouse=True)
def kernel() -> None:
    try:
        machine.find_kernel("")
    except BeowireError as error:
        pytest.skip(f"there are no guests here: {error}")


@pytest.mark.long
@pytest.mark.parametrize(
    ("tests", "without"),
    [
        pytest.param(tuple(QUICK), 0, id="quick"),
        pytest.param(tuple(QUICK), 1, id="mixed"),
        pytest.param(tuple(ALL), 0, id="all"),
    ],
)
def test_mpi_programs_over_the_module(tests: tuple[str, ...], without: int) -> None:
    assert os.environ.get("BEOWIRE_LINKS", "") == ""
    verdicts = run(tests, without)
    assert len(verdicts) >= len(tests)
    assert {name: told for name, told in verdicts.items() if told != "passed"} == {}
