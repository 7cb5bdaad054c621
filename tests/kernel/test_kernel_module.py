# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel module, tested by programs that run in a guest.

All programs beside this file run in one guest, which is booted once; each of their tests then asks
for its own verdict here. Nothing is skipped where guests exist.
"""

import re
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from beowire import places, selftest, vm
from beowire.errors import BeowireError

HERE = Path(__file__).resolve().parent
PROGRAMS = sorted(source.stem for source in HERE.glob("test_*.c"))
LIMIT_S = 120  # of one program


@dataclass(frozen=True)
class Run:
    """What came out of a guest."""

    cases: dict[str, selftest.Case]
    errors: dict[str, str]
    """What each program wrote to its standard error."""
    complaints: list[str]


def cases_of(program: str) -> list[str]:
    """The tests that a program registers, by name."""
    return re.findall(r"^\t\tkt_test\((\w+)\)", (HERE / f"{program}.c").read_text(), re.MULTILINE)


@cache
def run(kernel: str) -> Run:
    """All programs in a guest with this kernel."""
    programs = [places.product(f"tests/kernel/{name}") for name in PROGRAMS]
    command = [str(HERE / "guest.sh")]
    with tempfile.TemporaryDirectory(dir=places.build_dir()) as name:
        out = Path(name)
        command += [name, str(LIMIT_S)]
        for path in programs:
            command += [str(path), "--"]
        guest = vm.Guest(command, kernel, memory_mb=2048, limit_s=900, shares=[out], modules=True)
        outcome = vm.run(guest)
        read = {each.name: each.read_text(errors="replace") for each in out.iterdir()}
    cases: dict[str, selftest.Case] = {}
    errors = {}
    for program in PROGRAMS:
        said = read.get(f"{program}.out", "")
        errors[program] = read.get(f"{program}.err", "it did not run")
        for case in selftest.cmocka_cases(program, said, errors[program]):
            cases[case.name] = case
    return Run(cases, errors, outcome.complaints)


@pytest.fixture(scope="session")
def stock() -> Run:
    try:
        vm.find_kernel("")
    except BeowireError as error:
        pytest.skip(f"there are no guests here: {error}")
    return run("")


@pytest.mark.parametrize(
    ("program", "test"), [(program, test) for program in PROGRAMS for test in cases_of(program)]
)
def test_in_a_guest(program: str, test: str, stock: Run) -> None:
    case = stock.cases.get(f"{program}: {test}")
    assert case is not None, f"it did not run: {stock.errors[program]} {stock.complaints}"
    assert case.verdict == "passed", f"{case.reason}\n{stock.errors[program]}"


def test_the_kernel_complains_of_nothing(stock: Run) -> None:
    assert stock.complaints == []
