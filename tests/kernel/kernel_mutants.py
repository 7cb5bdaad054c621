# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel host with the seeded defects of mutants.toml: modules are built with them, guests run
the programs that must notice them, and this tells what was noticed.

Several defects share a guest, one after another, if the same program looks for them: most of what
one costs is the boot. A guest that shares is believed only if all in it went well, and the module
without a defect, which comes last, passed. Otherwise whoever ended it has a guest alone, and the
others share a new one.
"""

import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import kernel_drivers
from beowire import places
from beowire.selftest import reports
from beowire.vm import debug, kernels, machine, module

HERE = Path(__file__).resolve().parent
LIMIT_S = {
    "": 400,
    kernels.NEWER: 400,
    "debug": 1500,
    "kcsan": 1500,
}  # of a guest, by kernel; its program has what is left
SHARE = 8  # defects in a guest, at most
MORE_S = 150  # of the guest, for each of them
BEGUN = "[ RUN "  # what a program writes that has begun its first case


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

    def shares(self) -> bool:
        """Other defects may come after it in the same guest. What a kernel that looks for defects
        notices ends the guest, or cannot be told apart."""
        return not (self.kernel in debug.NAMES or self.at_load or self.hangs)


@dataclass(frozen=True)
class Found:
    """What was seen of a host with a defect, or without."""

    noticed: list[str]
    late: list[str]
    """What did not end in time, or stood still for long: any program may, on a busy machine."""
    broken: str = ""
    """Nothing could be seen: the module was not built, or no program ran."""

    def tells(self, mutant: Mutant) -> list[str]:
        """What counts as having noticed this defect."""
        return [*self.noticed, *(self.late if mutant.hangs else [])]


MUTANTS = [Mutant(**row) for row in tomllib.loads((HERE / "mutants.toml").read_text())["mutant"]]


def unchanged(like: Mutant) -> Mutant:
    """No defect, for the program that looks for this one."""
    return replace(like, name="unchanged", says="nothing", old="", new="")


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
        """The modules with this defect. They are its own, until they are discarded."""
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
        own = self._place / "built" / f"{mutant.name}{mutant.kernel}{Path(mutant.program).name}"
        own.mkdir(parents=True, exist_ok=True)
        return [
            Path(shutil.copy(stage / name, own)) for name in ("beowire.ko", "beowire_datagram.ko")
        ]

    @staticmethod
    def discard(modules: Sequence[Path]) -> None:
        """They are not wanted any more."""
        shutil.rmtree(modules[0].parent)


# ---- what a run tells ----

# The first line of a complaint about time: of the guest (tools/guest/limit.c, vm/machine.py), and
# of its kernel's watchdogs.
LATE = re.compile(
    r"did not end within|ended before its command did|cannot be killed|detected stall|"
    r"soft lockup|INFO: task .* blocked"
)
ENDED = re.compile(r"^status (?!12[45]$)\d+$", re.MULTILINE)
"""What guest.sh adds of a program that failed by itself: not of one that it ended."""
STATUS = re.compile(r"^status \d+$", re.MULTILINE)


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


# ---- guests ----


@dataclass(frozen=True)
class Said:
    """What a program wrote for one defect, in that defect's part of the guest."""

    out: str
    errors: str
    whole: bool
    """The program began and ended, and the module could be unloaded."""


def _needs(built: Path) -> list[str]:
    """The modules of the kernel that this one needs."""
    command = [places.program("modinfo", "kmod"), "-F", "depends", str(built)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return said.strip().replace(",", " ").split()


def _part(mutant: Mutant, modules: Sequence[Path], out: Path) -> str:
    """The command that runs the program of one defect. What others had the kernel say is gone."""
    program = places.product(f"tests/kernel/{mutant.program}")
    arguments = mutant.arguments.format(modules=modules[0].parent, build=places.build_dir())
    script = f"dmesg -C && insmod {modules[0]} && insmod {modules[1]} && "
    return script + f"{HERE}/guest.sh {out} {LIMIT_S[mutant.kernel]} {program} {arguments}"


def _said(mutant: Mutant, out: Path) -> Said:
    def text(end: str) -> str:
        file = out / f"{Path(mutant.program).name}.{end}"
        return file.read_text() if file.exists() else ""

    said = text("out")
    return Said(said, text("err"), BEGUN in said and (out / "whole").exists())


def _guest(script: str, out: Path, mutant: Mutant, built: Path, limit_s: float) -> machine.Outcome:
    kernel_drivers.build(machine.find_kernel(mutant.kernel))
    guest = machine.Guest(
        ["sh", "-c", script],
        mutant.kernel,
        memory_mb=2048,
        limit_s=limit_s,
        shares=[out],
        load=_needs(built),
        boot=kernel_drivers.BOOT,
    )
    return machine.run(guest)


def found_alone(mutant: Mutant, modules: Sequence[Path]) -> Found:
    """By the program, and by the kernel, in a guest of its own; of data races what the kernel says
    of them counts alone. Nothing for a host without defects."""
    with tempfile.TemporaryDirectory(dir=places.build_dir()) as name:
        out = Path(name)
        script = _part(mutant, modules, out)
        outcome = _guest(script, out, mutant, modules[0], LIMIT_S[mutant.kernel])
        said = _said(mutant, out)
    if unloaded := re.findall("beowire: .* gives wrong numbers", outcome.console):
        return Found(unloaded, [])
    begun = BEGUN in said.out
    if mutant.at_load and not begun:
        return judged([], "", outcome.complaints)
    if not begun:
        return Found([], [], f"it did not run: {outcome.console}")
    if mutant.kernel == debug.RACES:
        return Found([each for each in outcome.complaints if "KCSAN: data-race" in each], [])
    if not mutant.old and not passed(mutant, said):
        return Found([], [], f"{said.out}\n{said.errors}")
    return judged(_cases(mutant, said), said.errors, outcome.complaints)


def passed(mutant: Mutant, said: Said) -> bool:
    """Each case of its program, none left out, and the program itself."""
    cases = _cases(mutant, said)
    good = all(each.verdict == "passed" for each in cases)
    return bool(cases) and good and not STATUS.search(said.errors)


def _cases(mutant: Mutant, said: Said) -> list[reports.Case]:
    return reports.cmocka_cases(Path(mutant.program).name, said.out, said.errors)


# Closed ports may linger for a minute, and need the module.
UNLOAD = "for i in $(seq 90); do rmmod beowire_datagram beowire 2>/dev/null && break; sleep 1; done"
UNLOAD += " && [ ! -e /sys/module/beowire ]"


def found_together(built: dict[Mutant, list[Path]], passes: list[Path]) -> dict[Mutant, Found]:
    """As found_alone(), of defects that share a guest as long as it can be believed. `passes` are
    the modules without a defect."""
    mutants = list(built)
    if len(mutants) == 1:
        return {mutants[0]: found_alone(mutants[0], built[mutants[0]])}
    control = unchanged(mutants[0])
    with tempfile.TemporaryDirectory(dir=places.build_dir()) as name:
        out, parts, rows = Path(name), [], [*built.items(), (control, passes)]
        for number, (mutant, modules) in enumerate(rows):
            own = out / str(number)
            own.mkdir()
            parts.append(f"{_part(mutant, modules, own)} && {UNLOAD} && touch {own}/whole")
        limit_s = LIMIT_S[control.kernel] + MORE_S * len(rows)
        outcome = _guest(" && ".join(parts), out, control, passes[0], limit_s)
        said = {mutant: _said(mutant, out / str(i)) for i, (mutant, _) in enumerate(rows)}
    return decided(said, outcome.complaints, built, passes)


def decided(
    said: dict[Mutant, Said],
    complaints: list[str],
    built: dict[Mutant, list[Path]],
    passes: list[Path],
) -> dict[Mutant, Found]:
    """What a shared guest told, if it can be believed; of others new guests are asked."""
    *mutants, control = said
    found = {each: judged(_cases(each, said[each]), said[each].errors, []) for each in said}
    broke = next((each for each in said if not said[each].whole or found[each].late), None)
    if broke is None and not complaints and passed(control, said[control]):
        # That nothing is noticed may be the others' doing as well.
        return {
            each: found[each] if found[each].noticed else found_alone(each, built[each])
            for each in mutants
        }
    alone = mutants if broke in (None, control) else [broke]
    others = {each: built[each] for each in mutants if each not in alone}
    return {
        **{each: found_alone(each, built[each]) for each in alone},
        **(found_together(others, passes) if others else {}),
    }


def shared_guests(mutants: Iterable[Mutant]) -> list[list[Mutant]]:
    """Which defects share one, in the order given."""
    by_program: dict[Mutant, list[Mutant]] = {}
    for each in mutants:
        if each.shares():
            by_program.setdefault(replace(unchanged(each), file=""), []).append(each)
    return [
        rows[first : first + SHARE]
        for rows in by_program.values()
        for first in range(0, len(rows), SHARE)
    ]
