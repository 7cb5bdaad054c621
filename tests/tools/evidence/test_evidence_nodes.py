# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Experiments by other commands: whether these exist is found at run time."""

import time
from pathlib import Path
from typing import Any

import pytest
from beowire.evidence.criterion import references
from beowire.evidence.experiment import CannotRunError, Context
from beowire.evidence.experiments import nodes
from beowire.evidence.registry import ENTRIES

MEASURES = ("none", "pinned", "realtime", "replicate", "huge", "all")
PARAMETERS = {"more": ("--quick",)}


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


def told(measures: tuple[str, ...]) -> dict[str, Any]:
    figures = [
        {"measure": each, "step": step, "mean": {"us": [9.0, 1.0, 2.0]}, "max": {"us": [7.0]}}
        for each in measures
        for step in ("first", "second")
    ]
    return {"figures": figures, "missing": {"huge": "no large pages"}}


@pytest.mark.parametrize("name", ["activation", "replicate"])
def test_activation_is_told_by_each_measure(
    monkeypatch: pytest.MonkeyPatch, context: Context, name: str
) -> None:
    asked: list[str] = []

    def answer(_: Context, *words: str) -> dict[str, Any]:
        asked.extend(words)
        return told(("none", "all"))

    monkeypatch.setattr(nodes, "knows", lambda *_, **__: True)
    monkeypatch.setattr(nodes, "memory_nodes", lambda: 2)
    monkeypatch.setattr(nodes, "_told", answer)
    found = getattr(nodes, name)(PARAMETERS, context)
    assert found.numbers == {
        **{"none, average us": 2.0, "none, most us": 7.0},
        **{"all, average us": 2.0, "all, most us": 7.0},
    }
    assert "huge was refused: no large pages" in found.remarks
    assert asked[:2] == ["bench", "activation"]
    assert asked[-1] == "--quick"


@pytest.mark.parametrize("label", ["E2", "E3", "E5"])
def test_entries_ask_for_what_is_told(label: str) -> None:
    names = {f"{each}, {what} us" for each in MEASURES for what in ("average", "most")}
    for entry in ENTRIES:
        if entry.label == label:
            assert set(references(entry.criterion)) <= names
