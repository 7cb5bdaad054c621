# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel module, tested by programs that run in a guest.

All programs beside this file run in one guest, which is booted once; each of their tests then asks
for its own verdict here. Nothing is skipped where guests exist. The long tests run them under the
kernel that looks for defects, and for long.
"""

import re
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from beowire import places, selftest, vm, vm_debug
from beowire.errors import BeowireError

HERE = Path(__file__).resolve().parent
PROGRAMS = tuple(sorted(source.stem for source in HERE.glob("test_*.c")))
LIMIT_S = 240  # of one program
HOUR_S = 3600
SLOWER = 10  # the kernel that looks for defects, at most


@dataclass(frozen=True)
class Run:
    """What came out of a guest."""

    cases: dict[str, selftest.Case]
    errors: dict[str, str]
    """What each program wrote to its standard error."""
    complaints: list[str]

    def check(self, program: str, test: str) -> None:
        """This test passed."""
        case = self.cases.get(f"{program}: {test}")
        assert case is not None, f"it did not run: {self.errors[program]} {self.complaints}"
        assert case.verdict == "passed", f"{case.reason}\n{self.errors[program]}"


def cases_of(program: str) -> list[str]:
    """The tests that a program registers, by name."""
    return re.findall(r"^\t\tkt_test\((\w+)\)", (HERE / f"{program}.c").read_text(), re.MULTILINE)


CASES = [(program, test) for program in PROGRAMS for test in cases_of(program)]


@cache
def run(kernel: str, commands: tuple[str, ...], limit_s: int) -> Run:
    """These programs, each with its arguments, one after another in a guest with this kernel."""
    try:
        vm.find_kernel(kernel)
    except BeowireError as error:
        pytest.skip(f"there are no guests with this kernel here: {error}")
    programs = [command.split()[0] for command in commands]
    with tempfile.TemporaryDirectory(dir=places.build_dir()) as name:
        out = Path(name)
        words = [str(HERE / "guest.sh"), name, str(limit_s)]
        for program, command in zip(programs, commands, strict=True):
            words += [str(places.product(f"tests/kernel/{program}")), *command.split()[1:], "--"]
        total_s = 60 * SLOWER + limit_s * len(commands)
        guest = vm.Guest(words, kernel, memory_mb=2048, limit_s=total_s, shares=[out], modules=True)
        outcome = vm.run(guest)
        read = {each.name: each.read_text(errors="replace") for each in out.iterdir()}
    cases: dict[str, selftest.Case] = {}
    errors = {}
    for program in programs:
        said = read.get(f"{program}.out", "")
        errors[program] = read.get(f"{program}.err", "it did not run")
        for case in selftest.cmocka_cases(program, said, errors[program]):
            cases[case.name] = case
    return Run(cases, errors, outcome.complaints)


@pytest.mark.parametrize(("program", "test"), CASES)
def test_in_a_guest(program: str, test: str) -> None:
    run("", PROGRAMS, LIMIT_S).check(program, test)


def test_the_kernel_complains_of_nothing() -> None:
    assert run("", PROGRAMS, LIMIT_S).complaints == []


@pytest.mark.long
@pytest.mark.parametrize(("program", "test"), CASES)
def test_under_a_kernel_that_looks_for_defects(program: str, test: str) -> None:
    run(vm_debug.NAME, PROGRAMS, LIMIT_S * SLOWER).check(program, test)


@pytest.mark.long
def test_that_kernel_complains_of_nothing() -> None:
    assert run(vm_debug.NAME, PROGRAMS, LIMIT_S * SLOWER).complaints == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "test"),
    [
        (f"test_random {HOUR_S} 1000", "test_random_calls"),
        (f"test_frames {HOUR_S // 2} 1000", "test_invented_frames"),
        ("test_loading 200", "test_again_and_again_under_traffic"),
    ],
)
def test_for_long(command: str, test: str) -> None:
    found = run(vm_debug.NAME, (command,), 2 * HOUR_S)
    found.check(command.split()[0], test)
    assert found.complaints == []
