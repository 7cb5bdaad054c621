# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The order of load's runs, and the file that keeps their rounds so that measuring goes on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from beowire.bench.load import measure
from beowire.bench.load.runs import Carrier, Phase
from beowire.bench.load.store import Round, Store
from beowire.errors import BeowireError
from load_rounds import load

SETTING = {"pattern": "mixed", "loads": (0.5,)}


def figures(rounds: list[Round]) -> Mapping[str, Any]:
    return {"figures": [each["tcp"][0]["ns"] for each in rounds]}


class Runs:
    """Stands for the runs; the one of this place is interrupted."""

    def __init__(self, interrupted_at: int = 0) -> None:
        self.made: list[tuple[Carrier, int]] = []
        self.told: list[str] = []
        self.interrupted_at = interrupted_at

    def run(self, carrier: Carrier, number: int) -> list[Phase]:
        self.made.append((carrier, number))
        if len(self.made) == self.interrupted_at:
            raise KeyboardInterrupt
        return [load([8], [number])]


def test_both_take_turns(tmp_path: Path) -> None:
    runs, store = Runs(), Store(tmp_path / "f", SETTING, figures)
    assert measure.steps(store, 2) == 4
    measure.sweep(store, 2, runs.run, runs.told.append)
    assert runs.made == [("tcp", 1), ("beowire", 1), ("tcp", 2), ("beowire", 2)]
    assert runs.told[1] == "round 1 of 2, Beowire"
    assert measure.steps(store, 2) == 0


def test_it_goes_on_where_it_ended(tmp_path: Path) -> None:
    file = tmp_path / "rounds.json"
    with pytest.raises(KeyboardInterrupt):
        measure.sweep(Store(file, SETTING, figures), 3, Runs(4).run, lambda _: None)
    told = json.loads(file.read_text())
    assert (told["writer"], told["format"]) == ("beowire bench load", 1)
    assert (told["figures"], len(told["rounds"])) == ([[1]], 1)
    runs, store = Runs(), Store(file, SETTING, figures)
    measure.sweep(store, 3, runs.run, lambda _: None)
    assert runs.made == [("tcp", 2), ("beowire", 2), ("tcp", 3), ("beowire", 3)]
    assert json.loads(file.read_text())["figures"] == [[1], [2], [3]]


def spoiled(tmp_path: Path, **changed: Any) -> Path:
    file = tmp_path / "rounds.json"
    store = Store(file, SETTING, figures)
    measure.sweep(store, 1, Runs().run, lambda _: None)
    file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))
    return file


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"writer": "somebody"}, "is no file of"),
        ({"format": 2}, "has format 2, not 1"),
        ({"setting": None}, "another setting: pattern None, not mixed"),
        ({"setting": {"pattern": "mixed", "loads": [0.8]}}, r"loads \[0.8\], not \[0.5\]"),
        ({"rounds": [{"tcp": []}]}, "a round that cannot be read"),
        ({"rounds": [{"tcp": [], "beowire": []}]}, "a round that cannot be read"),
        ({"rounds": 5}, "a round that cannot be read"),
    ],
)
def test_other_files_are_refused(changed: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(BeowireError, match=why):
        Store(spoiled(tmp_path, **changed), SETTING, figures)


def test_what_is_no_json_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "letter"
    file.write_text("Dear")
    with pytest.raises(BeowireError, match="is no file of"):
        Store(file, SETTING, figures)
    assert file.read_text() == "Dear"
