# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel module, tested by programs that run in a guest.

All programs beside this file run in one guest, which is booted once; each of their tests then asks
for its own verdict here. Nothing is skipped where guests exist. The long tests run them under the
newest kernel, and under the one that looks for defects, where the lines that run are counted, and
some for an hour: BEOWIRE_TEST_HOUR_S says how long an hour is.
"""

import os
import re
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import kernel_drivers
import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.selftest import reports
from beowire.vm import coverage, debug, kernels, machine
from remembered import remembered

HERE = Path(__file__).resolve().parent
ALL_PROGRAMS = tuple(sorted(source.stem for source in HERE.glob("test_*.c")))
LIMIT_S = 400  # of one program, if so much is left of the guest's time
GUEST_S = 1500  # of them all, 350 where the machine has nothing else to do
TEST_S = GUEST_S + 100  # of the test that starts it: the guest tells before what it does
LAST_LINES = 40
HOUR_S = int(os.environ.get("BEOWIRE_TEST_HOUR_S", "3600"))
SLOWER = 10  # the kernel that looks for defects, at most
COVERAGE_LEAST = 0.8
NOT_UNDER_DEBUG = ("test_compat",)  # no programs of 32 bits there
ONLY_UNDER_DEBUG = ("test_failing",)  # it alone fails allocations
PROGRAMS = tuple(each for each in ALL_PROGRAMS if each not in ONLY_UNDER_DEBUG)
DEBUG_PROGRAMS = tuple(each for each in ALL_PROGRAMS if each not in NOT_UNDER_DEBUG)


@dataclass(frozen=True)
class Run:
    """What came out of a guest."""

    cases: dict[str, reports.Case]
    errors: dict[str, str]
    """What each program wrote to its standard error."""
    complaints: list[str]
    lines: dict[Path, coverage.Lines] = field(default_factory=dict)
    console: str = ""

    def check(self, program: str, test: str) -> None:
        """This test passed."""
        case = self.cases.get(f"{program}: {test}")
        assert case is not None, f"it did not run: {self.errors[program]}\n{self.told()}"
        assert case.verdict == "passed", f"{case.reason}\n{self.errors[program]}\n{self.told()}"

    def told(self) -> str:
        """What may have kept others from running: tests that did not end, where all processes
        were then, and what the kernel said last."""
        stuck = [name for name, each in self.cases.items() if each.reason == reports.NO_END]
        last = self.console.splitlines()[-LAST_LINES:]
        return "\n".join([*(f"{name} did not end" for name in stuck), *self.complaints, *last])


def cases_of(program: str) -> list[str]:
    """The tests that a program registers, by name."""
    text = (HERE / f"{program}.c").read_text()
    return re.findall(r"(?<!#define )\bkt_(?:counting_)?test\((\w+)\)", text)


CASES = [(program, test) for program in PROGRAMS for test in cases_of(program)]
DEBUG_CASES = [(program, test) for program in DEBUG_PROGRAMS for test in cases_of(program)]


@remembered
def run(
    kernel: str,
    commands: tuple[str, ...],
    limit_s: int = LIMIT_S,
    guest_s: int = GUEST_S,
    with_coverage: bool = False,
) -> Run:
    """These programs, each with its arguments, one after another in a guest with this kernel. One
    that takes longer than `limit_s`, or than what is left to the guest, is ended."""
    try:
        kernel_drivers.build(machine.find_kernel(kernel))
    except BeowireError as error:
        pytest.skip(f"there are no guests with this kernel here: {error}")
    with (
        tempfile.TemporaryDirectory(dir=places.build_dir()) as name,
        tempfile.TemporaryDirectory(dir=places.build_dir()) as counts,
    ):
        out = Path(name)
        words = [str(HERE / "guest.sh"), name, str(limit_s)]
        for command in commands:
            program, *arguments = command.split()
            words += [str(places.product(f"tests/kernel/{program}")), *arguments, "--"]
        guest = machine.Guest(
            words,
            kernel,
            memory_mb=2048,
            limit_s=guest_s,
            shares=[out],
            modules=True,
            coverage=Path(counts) if with_coverage else None,
            boot=kernel_drivers.BOOT,
        )
        outcome = machine.run(guest)
        read = {each.name: each.read_text(errors="replace") for each in out.iterdir()}
        lines = coverage.read(Path(counts)) if with_coverage else {}
    cases: dict[str, reports.Case] = {}
    errors = {}
    for program in (Path(command.split()[0]).name for command in commands):
        said = read.get(f"{program}.out", "")
        errors[program] = read.get(f"{program}.err", "it did not run")
        for case in reports.cmocka_cases(program, said, errors[program]):
            cases[case.name] = case
    return Run(cases, errors, outcome.complaints, lines, outcome.console)


@pytest.mark.timeout(TEST_S)
@pytest.mark.parametrize(("program", "test"), CASES)
def test_in_a_guest(program: str, test: str) -> None:
    run("", PROGRAMS).check(program, test)


@pytest.mark.timeout(TEST_S)
def test_the_kernel_complains_of_nothing() -> None:
    assert run("", PROGRAMS).complaints == []


@pytest.mark.long
@pytest.mark.parametrize(("program", "test"), CASES)
def test_under_the_newest_kernel(program: str, test: str) -> None:
    run(kernels.NEWER, PROGRAMS).check(program, test)


@pytest.mark.long
def test_the_newest_kernel_complains_of_nothing() -> None:
    assert run(kernels.NEWER, PROGRAMS).complaints == []


@remembered
def under_the_debug_kernel() -> Run:
    """All programs, and the one of protocol servers, with lines counted. The modules are loaded
    anew at the very end, so that one pair of them does all the counting."""
    try:
        release = machine.find_kernel(debug.NAME).release
    except BeowireError as error:
        pytest.skip(f"there are no guests with this kernel here: {error}")
    server = places.product("hosts/kernel/server/beowire-server")
    commands = [each for each in DEBUG_PROGRAMS if each != "test_loading"]
    commands.append(f"server/test_server {server}")
    commands.append(f"test_loading 10 {places.build_dir()}/kernel/{release}-counting")
    return run(debug.NAME, tuple(commands), LIMIT_S * SLOWER, GUEST_S * SLOWER, True)


@pytest.mark.long
@pytest.mark.parametrize(("program", "test"), DEBUG_CASES)
def test_under_a_kernel_that_looks_for_defects(program: str, test: str) -> None:
    under_the_debug_kernel().check(program, test)


@pytest.mark.long
def test_that_kernel_complains_of_nothing() -> None:
    assert under_the_debug_kernel().complaints == []


@pytest.mark.long
def test_most_lines_of_the_module_run() -> None:
    lines = under_the_debug_kernel().lines
    told = "\n".join(coverage.table(lines))
    (places.build_dir() / "kernel-coverage.txt").write_text(f"{told}\n")
    own = [each for name, each in lines.items() if name.parent == Path("hosts/kernel")]
    share = sum(len(each.ran) for each in own) / sum(len(each.all) for each in own)
    assert share >= COVERAGE_LEAST, told


@pytest.mark.long
@pytest.mark.parametrize(
    ("kernel", "command", "test"),
    [
        (debug.NAME, f"test_random {HOUR_S} {int(time.time())}", "test_random_calls"),
        (debug.RACES, f"test_random {HOUR_S} {int(time.time())}", "test_random_calls"),
        (debug.NAME, f"test_frames {HOUR_S // 2} {int(time.time())}", "test_invented_frames"),
        (debug.NAME, "test_loading 200", "test_again_and_again_under_traffic"),
    ],
    ids=["random calls", "random calls, races", "invented frames", "loading"],
)
def test_for_long(kernel: str, command: str, test: str) -> None:
    print(command)
    limit_s = 2 * HOUR_S + LIMIT_S * SLOWER
    found = run(kernel, (command,), limit_s, limit_s + GUEST_S)
    found.check(command.split()[0], test)
    assert found.complaints == [], command
