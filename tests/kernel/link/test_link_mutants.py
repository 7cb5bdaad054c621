# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel link of libbeowire with each seeded defect of mutants.toml beside this file: the
program named there must notice it. They need the module, and so a guest; all run in one."""

import importlib.util
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import alone
import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.vm import machine

HERE = Path(__file__).resolve().parent


def module_of_seeded_defects() -> Any:
    """tests/mutants/run.py, which is a program: its name is not for others to import."""
    path = places.root() / "tests" / "mutants" / "run.py"
    spec = importlib.util.spec_from_file_location("seeded_defects", path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found  # its dataclasses look themselves up there
    spec.loader.exec_module(found)
    return found


seeded = module_of_seeded_defects()
MUTANTS = seeded.load([HERE / "mutants.toml"])
LINKED = {f"link_{each}": f"{each}.c" for each in ("anew", "keys", "meets", "room", "strangers")}
"""Programs that are linked with libbeowire; all others load the provider."""
UNCHANGED = "unchanged"
LIMIT_S = 90  # of a program, which takes 2 to 30 s
GUEST_S = 60 + (LIMIT_S + 90) * (2 * len(MUTANTS))
ENDED_FOR_TIME = (124, 125)  # by tools/guest/limit.c
LIBRARIES = ("-lsodium", "-lpthread", "-lm", "-ldl")
pytestmark = pytest.mark.timeout(GUEST_S + 900)


class Workshop:
    """Objects of libbeowire and the provider, of which one at a time is exchanged."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._objects = self._compiled(
            [
                *sorted((seeded.ROOT / "engine").rglob("*.c")),
                *seeded.listed("hosts/user", seeded.USER_LIST),
                *seeded.COMMON,
                *(seeded.ROOT / "common" / name for name in ("keyed.c", "sealing.c")),
            ]
        )
        self._provider = self._compiled(seeded.listed("adapters/libfabric", seeded.PROVIDER_LIST))
        self._programs = self._compiled([HERE / file for file in LINKED.values()])

    def _compiled(self, sources: list[Path]) -> dict[str, Path]:
        names = [str(each.relative_to(seeded.ROOT)) for each in sources]
        objects = {name: self._place / f"{name.replace('/', '-')}.o" for name in names}
        for name, target in objects.items():
            if not target.exists():
                seeded.Workshop.compile(seeded.ROOT / name, target)
        return objects

    def call(self, name: str, program: str, mutant: Any) -> alone.Call:
        """The program with this defect (None: without), ready to run."""
        folder = self._place / name
        folder.mkdir()
        objects = dict(self._objects)
        if mutant:
            source, target = folder / Path(mutant.file).name, folder / "mutated.o"
            source.write_text(mutant.text())
            seeded.Workshop.compile(source, target, (seeded.ROOT / mutant.file).parent)
            objects[mutant.file] = target
        parts = [*objects.values()]
        if program in LINKED:
            made = folder / program
            parts.append(self._programs[f"tests/kernel/link/{LINKED[program]}"])
            seeded.cc(["-o", str(made), *map(str, parts), *LIBRARIES])
            return alone.Call(name, made, folder)
        parts += self._provider.values()
        plugin = str(folder / "libbeowire-fi.so")
        seeded.cc(["-shared", "-Wl,-Bsymbolic", "-o", plugin, *map(str, parts), *LIBRARIES])
        return alone.Call(name, places.product(f"tests/libfabric/{program}"), folder)


@pytest.fixture(scope="module")
def found() -> Iterator[dict[str, alone.Ended]]:
    """How each program ended, by the defect that it had; without one by "unchanged-PROGRAM"."""
    try:
        machine.find_kernel("")
    except BeowireError as error:
        pytest.skip(f"there are no guests here: {error}")
    with tempfile.TemporaryDirectory(dir=places.build_dir()) as name:
        workshop = Workshop(Path(name))
        calls = [
            workshop.call(f"{UNCHANGED}-{each}", each, None)
            for each in sorted({mutant.test for mutant in MUTANTS})
        ]
        calls += [workshop.call(mutant.name, mutant.test, mutant) for mutant in MUTANTS]
        yield alone.run(calls, LIMIT_S, GUEST_S)[0]


def test_the_table_fits() -> None:
    for mutant in MUTANTS:
        mutant.text()  # ValueError, if it does not
        assert (
            mutant.test in LINKED or (places.root() / f"tests/libfabric/{mutant.test}.c").exists()
        )


@pytest.mark.long
@pytest.mark.parametrize("program", sorted({mutant.test for mutant in MUTANTS}))
def test_without_a_defect_it_passes(program: str, found: dict[str, alone.Ended]) -> None:
    ended = found[f"{UNCHANGED}-{program}"]
    assert ended.status == 0, ended.said


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant(mutant: Any, found: dict[str, alone.Ended]) -> None:
    """That the program did not end is no notice, unless the defect is that something waits."""
    ended = found[mutant.name]
    print(ended.status, ended.said[-300:])
    nothing = (-1, 0) if mutant.sleeps else (-1, 0, *ENDED_FOR_TIME)
    assert ended.status not in nothing, f"{mutant.says}: {ended.status} {ended.said}"
