# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each check fails on its fault and passes on the good node; combinations are told apart."""

import contextlib
import os
import random
from collections.abc import Callable, Iterator

import beowire_cli
import pytest
from beowire.doctor import report
from beowire.doctor.check import Weight
from beowire.doctor.examine import Examination, State, examine
from beowire.doctor.node import Goal, Node
from beowire.doctor.registry import ALL
from beowire.doctor.setting import from_json, same, to_json
from faults import FAULTS, Fault
from world import PEER, World, world

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
    _leads_from_what_is(made, done)


def _is_told(done: Examination, name: str) -> None:
    """The verdict names the finding and how it is fixed; a machine gets the same."""
    text = report.verdict(done)
    assert f"  {name}" in text
    told = [each for each in report.as_json(done)["outcomes"] if each["check"] == name]
    bad = [each for each in told if each["state"] == "bad"]
    assert bad
    for each in bad:
        assert each["changes"] or each["advice"]
        for change in each["changes"]:
            assert change["command"] != change["undo"]
    for outcome in done.findings():
        for each in outcome.bad.changes if outcome.bad else ():
            assert from_json(to_json(each.setting)) == each.setting


def _leads_from_what_is(made: World, done: Examination) -> None:
    """What undoing would put back is what is there now."""
    for outcome in done.findings():
        for each in outcome.bad.changes if outcome.bad else ():
            assert same(made.run(each.setting.read, made.source), each.old), each.setting
            assert not same(each.old, each.new), each.setting


def _no_swap(made: World) -> None:
    made.good.sysctl("vm/swappiness", "60")
    made.good.files["/proc/meminfo"] = "MemTotal: 1000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"


def _no_rank(made: World) -> None:
    made.good.nice(5)
    made.good.files["/proc/4242/environ"] = "HOME=/root\0"
    made.good.files["/proc/4242/maps"] = "7f00-7f01 r--p 0 0:1 9 /usr/lib/libmpi.so.40\n"


def _ignored(made: World) -> None:
    made.good.ethtool["nic0"]["coalesce"]["adaptive-rx"] = 1
    made.good.targets["/sys/class/net/nic0/device/driver"] = "../../bus/netdevsim/drivers/netdevsim"


@pytest.mark.parametrize("plant", [_no_swap, _no_rank, _ignored], ids=lambda each: each.__name__)
def test_what_costs_nothing_is_no_finding(
    plant: Callable[[World], None], shared: dict[Goal, World]
) -> None:
    made = shared[Goal.LATENCY]
    made.renew()
    plant(made)
    assert made.found("memory.swappiness", "jobs.priority", "coalescing.adaptive") == set()


def test_nobody_knows_without_a_peer_whether_jumbo_frames_pass(shared: dict[Goal, World]) -> None:
    made = shared[Goal.LATENCY]
    made.renew()
    made.good.link("nic0")["mtu"] = 1500

    def weight(peer: str) -> Weight:
        node = Node(made.source, Goal.LATENCY, peer=peer)
        (found,) = examine(node, [ALL["link.mtu"]], ["nic0"]).findings()
        return found.weight

    assert made.run(weight, "") is Weight.SLIGHT
    assert made.run(weight, PEER) is Weight.COSTLY


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
