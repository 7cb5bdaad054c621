# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The entries of the papers: complete, well-formed, and able to fail."""

import json

import pytest
from beowire.evidence.criterion import (
    Criterion,
    Flat,
    Knee,
    Monotone,
    Order,
    Peak,
    Ratio,
    Together,
    Within,
)
from beowire.evidence.entry import Entry
from beowire.evidence.experiment import EXPERIMENTS
from beowire.evidence.figures import Figures, MissingError, decode
from beowire.evidence.outcome import AGREES, CANNOT, DIFFERS, judge
from beowire.evidence.registry import ENTRIES, PAPERS
from made_up import parts, worlds

# Of the papers' findings those that have a table, a figure or a number of their own.
LABELS = {
    *("A8", "A10", "A11", "B1", "B2", "B6", "C2", "C3"),
    *("D1", "D2", "D3", "D4", "D5", "D6", "E1", "E2", "E3", "E5"),
}
LEAST = 30


def test_every_finding_with_a_figure_has_entries() -> None:
    assert {each.label for each in ENTRIES} == LABELS
    assert {each.label[0] for each in ENTRIES} == set(PAPERS)
    assert len(ENTRIES) >= LEAST


def test_identifiers_are_unique_and_begin_with_their_label() -> None:
    names = [each.id for each in ENTRIES]
    assert len(set(names)) == len(names)
    assert all(each.id.startswith(f"{each.label}-") for each in ENTRIES)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda each: each.id)
def test_an_entry_is_well_formed(entry: Entry) -> None:
    assert entry.title
    assert entry.paper.where
    assert entry.paper.says
    assert not entry.paper.says.endswith(".")
    measures = [entry.measure]
    if entry.explanation is not None and entry.explanation.measure is not None:
        measures.append(entry.explanation.measure)
    for each in measures:
        assert each.experiment in EXPERIMENTS
        # The state knows an experiment by its parameters as JSON.
        json.dumps([dict(each.quick), dict(each.full)])
    told = json.loads(json.dumps(entry.paper.values.as_json()))
    assert decode(told) == Figures(
        entry.paper.values.numbers, entry.paper.values.curves, entry.paper.values.spread
    )


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda each: each.id)
def test_each_part_of_a_criterion_can_fail(entry: Entry) -> None:
    for part in parts(entry.criterion):
        alone = Entry(entry.id, entry.label, entry.title, entry.paper, entry.measure, part)
        found = {judge(alone, each, None, 0).outcome for each in worlds(part)}
        assert DIFFERS in found, part.text()
        assert found <= {AGREES, DIFFERS}


@pytest.mark.parametrize(
    "entry", [each for each in ENTRIES if each.explanation is not None], ids=lambda each: each.id
)
def test_an_explanation_can_fail_and_hold(entry: Entry) -> None:
    assert entry.explanation is not None
    for part in parts(entry.explanation.criterion):
        assert {part.judge(each).holds for each in worlds(part)} >= {False}


CURVE = Figures(
    {"one": 1.0, "two": 2.0},
    {"up": ((1, 10.0), (2, 20.0), (4, 29.0), (8, 30.0)), "down": ((1, 3.0), (2, 1.0))},
    {"two": (0.5, 3.0)},
)


@pytest.mark.parametrize(
    ("criterion", "holds"),
    [
        (Within("two", 2.0, 2.0), True),
        (Within("two", 2.1), False),
        (Within("two", high=1.9), False),
        (Within("up@most", 30, 30), True),
        (Within("up@first", 10, 10), True),
        (Within("up@2", 20, 20), True),
        (Within("down@least", 1, 1), True),
        (Ratio("two", "one", 2, 2), True),
        (Ratio("two", "one", high=1.99), False),
        (Monotone("up", rises=True, factor=3), True),
        (Monotone("up", rises=True, factor=3.1), False),
        (Monotone("up", rises=False), False),
        (Monotone("down", rises=False, factor=3), True),
        (Knee("up", 4, 4), True),
        (Knee("up", 8, 9), False),
        (Knee("up", 1, 3), False),
        (Flat("up", 4, 8, 1.1), True),
        (Flat("up", 2, 8, 1.1), False),
        (Flat("up", 8, 9, 1.1), False),
        (Peak("up", 8, 8), True),
        (Peak("down", 2, 2), False),
        (Order(("one", "two")), True),
        (Order(("two", "one")), False),
        (Together((Within("one", 1, 1), Within("two", 2, 2))), True),
        (Together((Within("one", 1, 1), Within("two", 3, 3))), False),
    ],
    ids=lambda each: each.text() if not isinstance(each, bool) else "",
)
def test_a_criterion(criterion: Criterion, holds: bool) -> None:
    assert criterion.judge(CURVE).holds is holds


def test_neighbours_may_scatter_and_no_more() -> None:
    near = Figures(curves={"c": ((1, 1.0), (2, 0.96), (3, 2.0))})
    far = Figures(curves={"c": ((1, 1.0), (2, 0.94), (3, 2.0))})
    assert Monotone("c", rises=True).judge(near).holds
    assert not Monotone("c", rises=True).judge(far).holds


def test_an_interval_that_reaches_into_the_bounds_is_told() -> None:
    found = Within("two", 2.5, 4).judge(CURVE)
    assert not found.holds
    assert "these rounds do not settle it" in found.why
    assert "settle" not in Within("two", 3.5, 4).judge(CURVE).why


def test_what_was_not_measured_is_named() -> None:
    for each in (Within("three"), Within("up@3"), Ratio("one", "none"), Monotone("none", True)):
        with pytest.raises(MissingError, match=r"three|up@3|none"):
            each.judge(CURVE)
    entry = ENTRIES[0]
    assert judge(entry, Figures(), None, 0).outcome == CANNOT
