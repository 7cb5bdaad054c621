# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel host with each seeded defect of mutants.toml: the program named there must notice it,
or the guest's kernel. That a program did not end is no notice, as on a busy machine any may be
late; unless the defect is one by which something waits or spins for ever (`hangs`)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import kernel_mutants
import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.selftest import reports
from beowire.vm import debug, machine
from kernel_mutants import HERE, MUTANTS, Found, Mutant, Said, Workshop, judged
from remembered import remembered

UNCHANGED = [
    Mutant("unchanged", "main.c", "nothing", "test_parting", "", ""),
    Mutant("unchanged-races", "main.c", "nothing", "test_races", "", "", debug.RACES, "500"),
]


@pytest.fixture(scope="module")
def workshop() -> Iterator[Workshop]:
    with tempfile.TemporaryDirectory(dir=places.build_dir()) as name:
        yield Workshop(Path(name))


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


# ---- guests that several share ----

A, B, C = (Mutant(name, "a.c", name, "test_x", "old", "new") for name in "abc")
CONTROL = kernel_mutants.unchanged(A)
BUILT = {each: [Path(each.name)] for each in (A, B, C)}
UNHARMED = [Path("unchanged")]
PASSES = Said("[ RUN      ] test_a\n[       OK ] test_a\n", "", True)
NOTICES = Said(BEGUN, FAILED, True)
NEVER = Said("", "", False)
NOTICED = judged(reports.cmocka_cases("test_x", BEGUN, FAILED), FAILED, [])
ALONE = Found(["alone"], [])
AGAIN = Found(["together again"], [])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which guests are asked for besides."""
    names: list[str] = []

    def alone(mutant: Mutant, modules: list[Path]) -> Found:
        assert modules == BUILT[mutant]
        names.append(mutant.name)
        return ALONE

    def together(built: dict[Mutant, list[Path]], passes: list[Path]) -> dict[Mutant, Found]:
        assert passes == UNHARMED
        names.append("".join(each.name for each in built))
        return dict.fromkeys(built, AGAIN)

    monkeypatch.setattr(kernel_mutants, "found_alone", alone)
    monkeypatch.setattr(kernel_mutants, "found_together", together)
    return names


def decided(a: Said, b: Said, c: Said, control: Said, complaints: list[str]) -> list[Found]:
    said = {A: a, B: b, C: c, CONTROL: control}
    found = kernel_mutants.decided(said, complaints, BUILT, UNHARMED)
    return [found[each] for each in (A, B, C)]


def test_all_went_well(asked: list[str]) -> None:
    assert decided(NOTICES, NOTICES, NOTICES, PASSES, []) == [NOTICED] * 3
    assert not asked


def test_who_is_not_noticed_is_looked_at_alone(asked: list[str]) -> None:
    assert decided(NOTICES, PASSES, NOTICES, PASSES, []) == [NOTICED, ALONE, NOTICED]
    assert asked == ["b"]


@pytest.mark.parametrize(
    "end",
    [
        NEVER,  # the module could not be loaded, or the guest has ended before
        Said(BEGUN, "", False),  # the guest ended, or the module was in use
        Said(BEGUN, "status 124\n", True),  # late
    ],
)
def test_whoever_ended_it_has_a_guest_alone(asked: list[str], end: Said) -> None:
    assert decided(NOTICES, end, NEVER, NEVER, ["a complaint"]) == [AGAIN, ALONE, AGAIN]
    assert asked == ["b", "ac"]


@pytest.mark.parametrize(
    ("control", "complaints"),
    [
        (NOTICES, []),
        (NEVER, ["it panicked"]),
        (PASSES, ["a lock"]),
        (Said(PASSES.out, "status 1\n", True), []),
        (Said("[ RUN      ] test_a\nno device\n[  SKIPPED ] test_a\n", "", True), []),
    ],
)
def test_nobody_is_believed(asked: list[str], control: Said, complaints: list[str]) -> None:
    """The module without a defect fails after them, or the kernel complains of whomever."""
    assert decided(NOTICES, PASSES, NOTICES, control, complaints) == [ALONE, ALONE, ALONE]
    assert asked == ["a", "b", "c"]


def test_who_shares() -> None:
    shared = kernel_mutants.shared_guests(MUTANTS)
    assert sum(map(len, shared)) > len(MUTANTS) / 2
    for guest in shared:
        assert 1 <= len(guest) <= kernel_mutants.SHARE
        assert len({(each.program, each.kernel, each.arguments) for each in guest}) == 1
        assert not any(each.hangs or each.at_load for each in guest)


# ---- all of them ----


@remembered
def found_in(guest: tuple[Mutant, ...], workshop: Workshop) -> dict[Mutant, Found]:
    """What is found of those that share a guest, of which each test asks for its own."""
    passes = workshop.modules(kernel_mutants.unchanged(guest[0]))
    built, broken = {}, {}
    for each in guest:
        try:
            built[each] = workshop.modules(each)
        except AssertionError as error:
            broken[each] = Found([], [], str(error))
    found = kernel_mutants.found_together(built, passes) if built else {}
    for modules in (passes, *built.values()):
        workshop.discard(modules)
    return found | broken


@pytest.mark.long
@pytest.mark.parametrize("mutant", [*UNCHANGED, *MUTANTS], ids=lambda mutant: mutant.name)
def test_mutant(mutant: Mutant, workshop: Workshop, request: pytest.FixtureRequest) -> None:
    try:
        machine.find_kernel(mutant.kernel)
    except BeowireError as error:
        pytest.skip(f"there are no guests with this kernel here: {error}")
    if mutant in UNCHANGED:
        assert kernel_mutants.found_alone(mutant, workshop.modules(mutant)) == Found([], [])
        return
    chosen = [
        item.callspec.params["mutant"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == "test_mutant"
    ]
    shared = kernel_mutants.shared_guests(each for each in chosen if each in MUTANTS)
    guest = next((each for each in shared if mutant in each), [mutant])
    found = found_in(tuple(guest), workshop)[mutant]
    assert not found.broken, found.broken
    print(found.noticed[:3], found.late[:3])
    assert found.tells(mutant), f"{mutant.says}; it was only late: {found.late[:3]}"
