# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel host with each seeded defect of mutants.toml: the program named there must notice it,
or the guest's kernel. That a program did not end is no notice, as on a busy machine any may be
late; unless the defect is one by which something waits or spins for ever (`hangs`)."""

import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import kernel_drivers
import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.selftest import reports
from beowire.vm import debug, kernels, machine, module

HERE = Path(__file__).resolve().parent
LIMIT_S = {
    "": 400,
    kernels.NEWER: 400,
    "debug": 1500,
    "kcsan": 1500,
}  # of a guest, by kernel; its program has what is left


@dataclass(frozen=True)
class Mutant:
    """A defect: `old`, which occurs once in `file`, becomes `new`. In `arguments` of the program
    {modules} is where the modules with the defect are, {build} the build's own folder."""

    name: str
    file: str
    says: str
    program: str
    old: str
    new: str
    kernel: str = ""
    arguments: str = ""
    at_load: bool = False
    """The kernel complains of the module as it is loaded: nothing runs."""
    hangs: bool = False
    """Something waits or spins for ever: that the program does not end is what is to be noticed."""


@dataclass(frozen=True)
class Found:
    """What was seen of a host with a defect, or without."""

    noticed: list[str]
    late: list[str]
    """What did not end in time, or stood still for long: any program may, on a busy machine."""

    def tells(self, mutant: Mutant) -> list[str]:
        """What counts as having noticed this defect."""
        return [*self.noticed, *(self.late if mutant.hangs else [])]


MUTANTS = [Mutant(**row) for row in tomllib.loads((HERE / "mutants.toml").read_text())["mutant"]]
UNCHANGED = [
    Mutant("unchanged", "main.c", "nothing", "test_parting", "", ""),
    Mutant("unchanged-races", "main.c", "nothing", "test_races", "", "", debug.RACES, "500"),
]


class Workshop:
    """A copy of the kernel host, of which one file at a time is changed."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._source = place / "hosts" / "kernel"
        root = places.root()
        shutil.copytree(root / "hosts" / "kernel", self._source)
        for room in ("engine", "common"):
            shutil.copytree(root / room, place / room)

    def modules(self, mutant: Mutant) -> list[Path]:
        """The modules with this defect."""
        file = self._source / mutant.file
        before = file.read_text()
        assert not mutant.old or before.count(mutant.old) == 1, "the table does not fit any more"
        file.write_text(before.replace(mutant.old, mutant.new) if mutant.old else before)
        kernel = machine.find_kernel(mutant.kernel)
        stage = self._place / f"stage{mutant.kernel}"
        command = [places.program("make", "make"), "-s", "-C", str(self._source)]
        command += [f"KDIR={module.headers(kernel)}", f"STAGE={stage}", "KCFLAGS=-w"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        finally:
            file.write_text(before)
        assert done.returncode == 0, done.stderr
        return [stage / "beowire.ko", stage / "beowire_datagram.ko"]


@pytest.fixture(scope="module")
def workshop() -> Iterator[Workshop]:
    with tempfile.TemporaryDirectory(dir=places.build_dir()) as name:
        yield Workshop(Path(name))


# The first line of a complaint about time: of the guest (tools/guest/limit.c, vm/machine.py), and
# of its kernel's watchdogs.
LATE = re.compile(
    r"did not end within|ended before its command did|cannot be killed|detected stall|"
    r"soft lockup|INFO: task .* blocked"
)
ENDED = re.compile(r"^status (?!12[45]$)\d+$", re.MULTILINE)
"""What guest.sh adds of a program that failed by itself: not of one that it ended."""


def judged(cases: list[reports.Case], errors: str, complaints: list[str]) -> Found:
    """What a program's cases say, and what the kernel complains of. A case that began and did not
    end is late, unless its program ended by itself: by a signal, for example."""
    failed = [each for each in cases if each.verdict == "failed"]
    late = [each for each in failed if each.reason == reports.NO_END and not ENDED.search(errors)]
    slow = [each for each in complaints if LATE.search(each.partition("\n")[0])]
    return Found(
        [f"{each.name}: {each.reason}" for each in failed if each not in late]
        + [each for each in complaints if each not in slow],
        [f"{each.name}: {each.reason}" for each in late] + slow,
    )


def what_is_found(modules: list[Path], mutant: Mutant) -> Found:
    """By the program, and by the kernel; of data races what the kernel says of them counts alone.
    Nothing for a host without defects."""
    limit_s = LIMIT_S[mutant.kernel]
    program = places.product(f"tests/kernel/{mutant.program}")
    arguments = mutant.arguments.format(modules=modules[0].parent, build=places.build_dir())
    short = Path(mutant.program).name
    kernel_drivers.build(machine.find_kernel(mutant.kernel))
    needs = subprocess.run(
        [places.program("modinfo", "kmod"), "-F", "depends", str(modules[0])],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    with tempfile.TemporaryDirectory(dir=places.build_dir()) as name:
        script = f"insmod {modules[0]} && insmod {modules[1]} && exec {HERE}/guest.sh {name} "
        script += f"{limit_s} {program} {arguments}"
        guest = machine.Guest(
            ["sh", "-c", script],
            mutant.kernel,
            memory_mb=2048,
            limit_s=limit_s,
            shares=[Path(name)],
            load=needs.strip().replace(",", " ").split(),
            boot=kernel_drivers.BOOT,
        )
        outcome = machine.run(guest)
        said, errors = (Path(name) / f"{short}.{each}" for each in ("out", "err"))
        text = said.read_text() if said.exists() else ""
        if unloaded := re.findall("beowire: .* gives wrong numbers", outcome.console):
            return Found(unloaded, [])
        if mutant.at_load and "[ RUN " not in text:
            return judged([], "", outcome.complaints)
        assert "[ RUN " in text, f"it did not run: {outcome.console}"
        complaints = errors.read_text()
        cases = reports.cmocka_cases(short, text, complaints)
    if mutant.kernel == debug.RACES:
        return Found([each for each in outcome.complaints if "KCSAN: data-race" in each], [])
    if mutant in UNCHANGED:
        assert all(each.verdict == "passed" for each in cases), cases
    return judged(cases, complaints, outcome.complaints)


def test_the_table_fits() -> None:
    for mutant in MUTANTS:
        text = (places.root() / "hosts" / "kernel" / mutant.file).read_text()
        assert text.count(mutant.old) == 1, mutant.name
        assert (HERE / f"{mutant.program}.c").exists(), mutant.name


BEGUN = "[ RUN      ] test_a\n[       OK ] test_a\n[ RUN      ] test_b\n"
FAILED = "[  ERROR   ] --- 1 != 2\n[  FAILED  ] test_b\nstatus 1\n"
WAITS = [each for each in MUTANTS if each.hangs][:1]
OTHERS = [each for each in MUTANTS if not each.hangs][:1]


@pytest.mark.parametrize("mutant", [*WAITS, *OTHERS], ids=lambda mutant: mutant.name)
@pytest.mark.parametrize(
    ("errors", "complaints"),
    [
        ("status 124\n", ["test_x did not end within 370 s\nprocess 7: test_x\n  BUG: words"]),
        ("status 125\n", ["test_x did not end within 9 s", "test_x cannot be killed"]),
        ("", ["the job did not end within 370 s of the guest"]),
        ("", ["the guest did not end within 400 s"]),
        ("", ["the guest ended before its command did"]),
        ("", ["[ 130.1] watchdog: BUG: soft lockup - CPU#0 stuck for 134s! [test_x:7]"]),
        ("", ["[ 130.1] rcu: INFO: rcu_preempt self-detected stall on CPU"]),
    ],
)
def test_what_is_late_has_noticed_nothing(
    errors: str, complaints: list[str], mutant: Mutant
) -> None:
    """Unless the defect is that something does not end."""
    found = judged(reports.cmocka_cases("test_x", BEGUN, errors), errors, complaints)
    assert not found.noticed
    assert found.late == ["test_x: test_b: did not end", *complaints]
    assert bool(found.tells(mutant)) == mutant.hangs


@pytest.mark.parametrize(
    ("errors", "complaints", "what"),
    [
        (FAILED, [], "test_x: test_b: 1 != 2"),
        ("status 139\n", [], "test_x: test_b: did not end"),  # a signal ended it
        (FAILED, ["test_x did not end within 370 s"], "test_x: test_b: 1 != 2"),
        ("", ["[ 9.1] BUG: KASAN: use-after-free in bwk_x"], "[ 9.1] BUG: KASAN: use-after-free"),
        ("", ["the guest did not end within 400 s", "WARNING: CPU: 0"], "WARNING: CPU: 0"),
    ],
)
def test_what_failed_has_noticed(errors: str, complaints: list[str], what: str) -> None:
    found = judged(reports.cmocka_cases("test_x", BEGUN, errors), errors, complaints)
    assert len(found.noticed) == 1
    assert found.noticed[0].startswith(what)


def test_what_was_skipped_has_noticed_nothing() -> None:
    said = "[ RUN      ] test_a\nthere is no such device\n[  SKIPPED ] test_a\n"
    assert judged(reports.cmocka_cases("test_x", said, ""), "", []) == Found([], [])


@pytest.mark.long
@pytest.mark.parametrize("mutant", [*UNCHANGED, *MUTANTS], ids=lambda mutant: mutant.name)
def test_mutant(mutant: Mutant, workshop: Workshop) -> None:
    try:
        machine.find_kernel(mutant.kernel)
    except BeowireError as error:
        pytest.skip(f"there are no guests with this kernel here: {error}")
    found = what_is_found(workshop.modules(mutant), mutant)
    print(found.noticed[:3], found.late[:3])
    if mutant in UNCHANGED:
        assert found == Found([], [])
    else:
        assert found.tells(mutant), f"{mutant.says}; it was only late: {found.late[:3]}"
