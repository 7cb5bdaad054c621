# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel host with each seeded defect of mutants.toml: the program named there must notice it,
or the guest's kernel."""

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


def what_is_noticed(modules: list[Path], mutant: Mutant) -> list[str]:
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
            return unloaded
        assert "[ RUN " in text, f"it did not run: {outcome.console}"
        cases = reports.cmocka_cases(short, text, errors.read_text())
    if mutant.kernel == debug.RACES:
        return [each for each in outcome.complaints if "KCSAN: data-race" in each]
    noticed = [f"{each.name}: {each.reason}" for each in cases if each.verdict != "passed"]
    return noticed + outcome.complaints


def test_the_table_fits() -> None:
    for mutant in MUTANTS:
        text = (places.root() / "hosts" / "kernel" / mutant.file).read_text()
        assert text.count(mutant.old) == 1, mutant.name
        assert (HERE / f"{mutant.program}.c").exists(), mutant.name


@pytest.mark.long
@pytest.mark.parametrize("mutant", [*UNCHANGED, *MUTANTS], ids=lambda mutant: mutant.name)
def test_mutant(mutant: Mutant, workshop: Workshop) -> None:
    try:
        machine.find_kernel(mutant.kernel)
    except BeowireError as error:
        pytest.skip(f"there are no guests with this kernel here: {error}")
    noticed = what_is_noticed(workshop.modules(mutant), mutant)
    print(noticed[:3])
    assert bool(noticed) == (mutant not in UNCHANGED), noticed or mutant.says
