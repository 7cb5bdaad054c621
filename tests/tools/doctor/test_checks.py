# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each check fails on its fault and passes on the good node; combinations are told apart."""

import contextlib
import os
import random
from collections.abc import Iterator

import beowire_cli
import pytest
from beowire.doctor import report
from beowire.doctor.examine import Examination, State
from beowire.doctor.node import Goal
from beowire.doctor.registry import ALL
from faults import FAULTS, Fault
from world import World, world

pytestmark = pytest.mark.skipif(
    bool(beowire_cli.NO_NAMESPACES), reason=f"namespaces: {beowire_cli.NO_NAMESPACES}"
)

_COMBINATIONS = 200 if os.environ.get("BEOWIRE_TEST_LONG") else 20


def test_every_check_has_a_fault() -> None:
    assert set(FAULTS) == set(ALL)


def test_there_are_as_many_checks_and_real_faults_as_promised() -> None:
    assert len(ALL) >= 45
    assert len([each for each in FAULTS.values() if not each.recorded]) >= 40


@pytest.mark.parametrize("goal", list(Goal))
def test_the_good_node_passes_every_check_of_its_goal(goal: Goal) -> None:
    with world(goal) as made:
        done = made.examine()
    wrong = {
        each.subject: each.said
        for each in done.outcomes
        if each.state not in (State.GOOD, State.ABSENT)
    }
    assert not wrong
    passed = {each.check.name for each in done.of(State.GOOD)}
    assert passed == {check.name for check in ALL.values() if goal in check.goals}


@pytest.fixture(scope="module")
def shared() -> Iterator[dict[Goal, World]]:
    """A namespace for each goal, for faults that are recorded and leave no trace in it."""
    with contextlib.ExitStack() as stack:
        yield {goal: stack.enter_context(world(goal)) for goal in Goal}


def _fails_and_passes(made: World, fault: Fault) -> None:
    assert made.examine(fault.check).of(State.GOOD)
    assert not made.found(fault.check)
    fault.plant(made)
    done = made.examine()
    assert {each.check.name for each in done.findings()} == {fault.check, *fault.also}
    assert not done.of(State.DENIED)
    assert not done.of(State.FAILED)
    _is_told(done, fault.check)


def _is_told(done: Examination, name: str) -> None:
    """The verdict names the finding and how it is mended; a machine gets the same."""
    text = report.verdict(done)
    assert f"  {name}" in text
    told = [each for each in report.as_json(done)["outcomes"] if each["check"] == name]
    bad = [each for each in told if each["state"] == "bad"]
    assert bad
    for each in bad:
        assert each["changes"] or each["advice"]
        for change in each["changes"]:
            assert change["command"] != change["undo"]


_REAL = [each for each in FAULTS.values() if not each.recorded]
_RECORDED = [each for each in FAULTS.values() if each.recorded]


@pytest.mark.parametrize("fault", _REAL, ids=lambda each: each.check)
def test_a_real_fault_is_found(fault: Fault) -> None:
    with world(min(fault.goals)) as made:
        _fails_and_passes(made, fault)


@pytest.mark.parametrize("fault", _RECORDED, ids=lambda each: each.check)
def test_a_recorded_fault_is_found(fault: Fault, shared: dict[Goal, World]) -> None:
    made = shared[min(fault.goals)]
    made.renew()
    _fails_and_passes(made, fault)


@pytest.mark.parametrize("seed", range(_COMBINATIONS))
def test_a_combination_of_faults_is_found_exactly(seed: int) -> None:
    chance = random.Random(seed)
    goal = chance.choice(list(Goal))
    candidates = [each for each in FAULTS.values() if goal in each.goals]
    chance.shuffle(candidates)
    chosen: list[Fault] = []
    for fault in candidates[: chance.randint(2, 12)]:
        if not any(fault.touches & each.touches for each in chosen):
            chosen.append(fault)
    with world(goal) as made:
        for fault in chosen:
            fault.plant(made)
        found = made.found()
    planted = {name for fault in chosen for name in (fault.check, *fault.also)}
    assert found == planted
