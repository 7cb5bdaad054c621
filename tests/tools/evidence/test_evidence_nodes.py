# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Experiments by other commands: whether these exist is found at run time."""

import time
from pathlib import Path
from typing import Any

import pytest
from beowire.evidence.experiment import CannotRunError, Context
from beowire.evidence.experiments import nodes

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
    return {"figures": figures, "missing": {} if len(measures) > 1 else {"all": "not allowed"}}


def test_activation_is_told_with_measures_and_without(
    monkeypatch: pytest.MonkeyPatch, context: Context
) -> None:
    monkeypatch.setattr(nodes, "knows", lambda *_, **__: True)
    monkeypatch.setattr(nodes, "_told", lambda *_: told(("none", "all")))
    numbers = nodes.activation(PARAMETERS, context).numbers
    assert numbers == {
        **{"plain average": 2.0, "plain most": 7.0},
        **{"optimized average": 2.0, "optimized most": 7.0},
    }
    monkeypatch.setattr(nodes, "_told", lambda *_: told(("none",)))
    with pytest.raises(CannotRunError, match="not allowed"):
        nodes.activation(PARAMETERS, context)
