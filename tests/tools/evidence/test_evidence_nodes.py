# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Experiments by other commands: whether these exist is found at run time."""

import time
from pathlib import Path
from typing import Any

import pytest
from beowire.evidence.criterion import references
from beowire.evidence.entry import Entry
from beowire.evidence.experiment import CannotRunError, Context
from beowire.evidence.experiments import nodes
from beowire.evidence.figures import Figures
from beowire.evidence.registry import ENTRIES

MEASURES = ("none", "pinned", "realtime", "replicate", "huge", "all")
PARAMETERS = {"more": ("--quick",)}
ACTIVATIONS = [each for each in ENTRIES if each.measure.experiment in ("activation", "replicate")]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(lambda _: None, tmp_path, time.monotonic() + 600)


def test_commands_and_their_options_are_found() -> None:
    assert nodes.knows("bench", "idle", option="--json")
    assert not nodes.knows("bench", "idle", option="--no-such-thing")
    assert not nodes.knows("no-such-command")


@pytest.mark.parametrize("name", ["activation", "place", "replicate"])
def test_what_is_not_there_cannot_be_run(
    monkeypatch: pytest.MonkeyPatch, context: Context, name: str
) -> None:
    monkeypatch.setattr(nodes, "knows", lambda *_, **__: False)
    with pytest.raises(CannotRunError, match="in this version"):
        getattr(nodes, name)(PARAMETERS, context)


@pytest.mark.parametrize("name", ["place", "replicate"])
def test_one_memory_node_has_nothing_far(
    monkeypatch: pytest.MonkeyPatch, context: Context, name: str
) -> None:
    monkeypatch.setattr(nodes, "knows", lambda *_, **__: True)
    monkeypatch.setattr(nodes, "memory_nodes", lambda: 1)
    with pytest.raises(CannotRunError, match="one memory node"):
        getattr(nodes, name)(PARAMETERS, context)


def run(first: list[int], queued: list[int], work: int = 3000) -> dict[str, Any]:
    """What a run of the program tells: ways of so many nanoseconds."""
    whole = [way + 500 + 2 * work for way in first]
    return {
        "first_ns": first,
        "second_ns": [500] * len(first),
        "whole_ns": whole,
        "queued_ns": queued,
    }


def told(measures: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    runs = [{"measure": name, "rounds": rounds} for name, rounds in measures.items()]
    return {"runs": runs, "missing": {"huge": "no large pages"}}


WITHOUT = [run([1000, 9000], [0, 8000]), run([2000, 2000], [1000, 1000]), run([9000], [0])]
PROMPT = [run([1000, 3000], [0, 0]), run([1000], [0]), run([2000, 2000], [0, 0])]


@pytest.mark.parametrize("name", ["activation", "replicate"])
def test_activation_is_told_by_each_measure(
    monkeypatch: pytest.MonkeyPatch, context: Context, name: str
) -> None:
    asked: list[str] = []

    def answer(_: Context, *words: str) -> dict[str, Any]:
        asked.extend(words)
        return told({"none": WITHOUT, "all": PROMPT})

    monkeypatch.setattr(nodes, "knows", lambda *_, **__: True)
    monkeypatch.setattr(nodes, "memory_nodes", lambda: 2)
    monkeypatch.setattr(nodes, "_told", answer)
    found = getattr(nodes, name)(PARAMETERS, context)
    assert found.numbers == {
        **{"none, average us": 5.0, "none, most us": 9.0},
        **{"none, queued us": 1.0, "none, prompt us": 1.0, "none, work us": 3.0},
        "none, queued of the most": 0.5,
        **{"all, average us": 2.0, "all, most us": 2.0},
        **{"all, queued us": 0.0, "all, prompt us": 2.0, "all, work us": 3.0},
        "all, queued of the most": 0.0,
        # averages 5, 2 and 9 less 2, 1 and 2; queued 4, 1 and 0 less nothing
        "all, queued of the difference": pytest.approx(5 / 11),
    }
    assert "huge was refused: no large pages" in found.remarks
    assert asked[:2] == ["bench", "activation"]
    assert asked[-1] == "--quick"


def test_a_measure_alone_is_compared_with_nothing(
    monkeypatch: pytest.MonkeyPatch, context: Context
) -> None:
    monkeypatch.setattr(nodes, "_told", lambda *_: told({"all": PROMPT}))
    monkeypatch.setattr(nodes, "knows", lambda *_, **__: True)
    found = nodes.activation(PARAMETERS, context)
    assert "all, queued of the difference" not in found.numbers


def test_no_difference_has_no_part_in_a_queue(
    monkeypatch: pytest.MonkeyPatch, context: Context
) -> None:
    monkeypatch.setattr(nodes, "_told", lambda *_: told({"none": PROMPT, "all": PROMPT}))
    monkeypatch.setattr(nodes, "knows", lambda *_, **__: True)
    found = nodes.activation(PARAMETERS, context)
    assert found.numbers["all, queued of the difference"] == 0


def known() -> set[str]:
    """What the measurement may be asked for."""
    parts = ("average us", "most us", "queued us", "prompt us", "work us", "queued of the most")
    names = {f"{each}, {what}" for each in MEASURES for what in parts}
    return names | {f"{each}, queued of the difference" for each in MEASURES if each != "none"}


@pytest.mark.parametrize("entry", ACTIVATIONS, ids=lambda each: each.id)
def test_entries_ask_for_what_is_told(entry: Entry) -> None:
    assert set(references(entry.criterion)) <= known()
    if entry.explanation is not None:
        assert set(references(entry.explanation.criterion)) <= known()


@pytest.mark.parametrize("quick", [True, False], ids=["quick", "full"])
@pytest.mark.parametrize("entry", ACTIVATIONS, ids=lambda each: each.id)
def test_explanations_measure_what_they_compare(entry: Entry, quick: bool) -> None:
    """Of the measures only those that are asked for are run."""
    if entry.explanation is None:
        return
    assert entry.explanation.measure is not None
    more = entry.explanation.measure.parameters(quick)["more"]
    run_ = more[more.index("--measures") + 1].split(",")
    named = {each.partition(", ")[0] for each in references(entry.explanation.criterion)}
    assert named <= set(run_)


EXPLAINED = {
    "E5-activation": {
        **{"none, average us": 60.0, "realtime, average us": 10.0, "all, average us": 9.0},
        "all, queued of the difference": 0.95,
    },
    "E5-activation-most": {
        **{"none, most us": 4000.0, "realtime, most us": 90.0, "none, queued of the most": 0.99},
    },
    "E2-large-pages": {
        **{"none, average us": 60.0, "none, queued us": 50.0},
        **{"none, prompt us": 10.0, "huge, prompt us": 10.5},
    },
}
"""A world in which each explanation holds."""
SPOILED = {
    "E5-activation": [
        ("all, queued of the difference", 0.5),
        ("all, queued of the difference", 1.5),
        ("realtime, average us", 30.0),
        ("all, average us", 3.0),
    ],
    "E5-activation-most": [("none, queued of the most", 0.5), ("realtime, most us", 3000.0)],
    "E2-large-pages": [
        ("none, queued us", 10.0),
        ("huge, prompt us", 15.0),
        ("huge, prompt us", 5.0),
    ],
}
"""What would be otherwise if the explanation were not true."""


@pytest.mark.parametrize("name", EXPLAINED)
def test_explanations_hold_and_fail(name: str) -> None:
    entry = next(each for each in ENTRIES if each.id == name)
    assert entry.explanation is not None
    holds = EXPLAINED[name]
    assert entry.explanation.criterion.judge(Figures(holds)).holds
    for what, value in SPOILED[name]:
        assert not entry.explanation.criterion.judge(Figures({**holds, what: value})).holds, what
