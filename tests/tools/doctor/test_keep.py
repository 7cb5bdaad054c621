# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Trials of fixes on a recorded node, with a ping-pong whose figures follow the settings: what
helps is kept, what does nothing or harm goes back, whatever an earlier trial kept."""

import contextlib
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from beowire.doctor import journal, keep
from beowire.doctor.examine import examine
from beowire.doctor.journal import Journal
from beowire.doctor.node import Goal, Node
from beowire.doctor.registry import ALL
from beowire.doctor.series import Key, Turn
from faults import FAULTS
from good_node import GoodNode
from world import Layered

HELPS, IDLE, HARMS = "cpu.governor", "memory.huge_pages", "clock.source"
FILES = {
    HELPS: "/sys/devices/system/cpu/cpufreq/policy2/scaling_governor",
    IDLE: "/sys/kernel/mm/transparent_hugepage/enabled",
    HARMS: "/sys/devices/system/clocksource/clocksource0/current_clocksource",
}
ROUNDS = 8


class FakeMeasurer:
    """Tells a latency by the settings as they are, and some noise, which is the same in each run of
    the tests."""

    def __init__(self, good: GoodNode) -> None:
        self.good = good
        self.seen: list[tuple[bool, ...]] = []
        self._numbers = count()

    def run(self, turn: Turn) -> dict[Key, float]:
        governor, pages, clock = (self.good.files[path].strip() for path in FILES.values())
        self.seen.append((governor == "performance", pages == "madvise", clock == "tsc"))
        time_s = 10e-6 * (1 + 0.01 * (next(self._numbers) * 7 % 5))
        time_s *= 0.5 if governor == "performance" else 1
        time_s *= 2 if clock == "tsc" else 1
        return {Key("tcp", turn.mode, turn.wait, turn.size): time_s}


def test_what_helps_is_kept_and_the_rest_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEOWIRE_STATE", str(tmp_path / "state"))
    good = GoodNode("latency")
    plants: Any = SimpleNamespace(good=good)
    for name in FILES:
        FAULTS[name].plant(plants)
    before = good.files[FILES[HARMS]]
    source = Layered(good)
    done = examine(Node(source, Goal.LATENCY), [ALL[name] for name in FILES], ["nic0"])
    assert {each.check.name for each in done.findings()} == set(FILES)
    measurer: Any = FakeMeasurer(good)
    order = {name: number for number, name in enumerate(FILES)}
    lots = sorted(keep.together(done.findings(), "check"), key=lambda lot: order[lot[0].subject])
    log = Journal(source, "fix --measure")
    with contextlib.closing(log):
        trials = list(
            keep.attempt(
                source,
                done.node,
                lots,
                log,
                measurer,
                keep.turns(Goal.LATENCY),
                ROUNDS,
                lambda _: None,
            )
        )
    assert {each.names: each.kept for each in trials} == {
        (HELPS,): True,
        (IDLE,): False,
        (HARMS,): False,
    }
    factors = {each.names[0]: each.factors["TCP latency"] for each in trials}
    assert factors[HELPS].value == pytest.approx(2, rel=0.05)
    assert factors[HARMS].value == pytest.approx(0.5, rel=0.05)
    assert good.files[FILES[HELPS]].strip() == "performance"
    assert good.files[FILES[IDLE]] == "never"
    assert good.files[FILES[HARMS]] == before
    # Each was off as often as on, on top of what was kept before, and the order turned.
    for number, start in enumerate(range(0, len(measurer.seen), 2 * ROUNDS)):
        turns = measurer.seen[start : start + 2 * ROUNDS]
        ons = [each[number] for each in turns]
        assert ons == [True, False, False, True] * (ROUNDS // 2)
        assert all(each[0] for each in turns) or number == 0
    assert len(journal.pending()) == 1


def test_a_trial_that_ends_early_leaves_nothing_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEOWIRE_STATE", str(tmp_path / "state"))
    good = GoodNode("latency")
    plants: Any = SimpleNamespace(good=good)
    FAULTS[HELPS].plant(plants)
    before = dict(good.files)
    source = Layered(good)
    done = examine(Node(source, Goal.LATENCY), [ALL[HELPS]], ["nic0"])

    def run(_: Turn) -> dict[Key, float]:
        raise KeyboardInterrupt

    measurer: Any = SimpleNamespace(run=run)
    log = Journal(source, "fix --measure")
    with contextlib.closing(log), pytest.raises(KeyboardInterrupt):
        list(
            keep.attempt(
                source,
                done.node,
                [done.findings()],
                log,
                measurer,
                keep.turns(Goal.LATENCY),
                ROUNDS,
                lambda _: None,
            )
        )
    assert good.files == before
