# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The matrix of `beowire bench matrix`: what comes of values, the file of cells,
tables and maps."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from beowire.bench.matrix import cells, figures, plot, tables
from beowire.bench.matrix.cells import Cell
from beowire.bench.matrix.figures import FIGURES
from beowire.bench.matrix.grid import Key
from beowire.bench.matrix.store import Store
from beowire.bench.samples import ratio
from beowire.errors import BeowireError
from matrix_runs import GRID, SETTING, Runs


def cell(beowire: list[float], figure: str = "latency", **others: list[float]) -> Cell:
    return Cell(Key(figure, 8, "raw", 1500, "openmpi"), beowire, others)


def test_values_are_those_of_the_figure() -> None:
    told = {"bytes": 1000, "window": 64, "ranks": 8, "p50_ns": 2000.0}
    assert {name: each.of(told) for name, each in FIGURES.items()} == {
        "latency": 1.0,  # us, half a round trip
        "bandwidth": 500.0,  # MB/s
        "bidirectional": 1000.0,
        "rate": 32_000_000.0,  # messages/s of windows
        "pairs": 2000.0,  # of four pairs together
        "allreduce": 2.0,
        "alltoall": 2.0,
        "broadcast": 2.0,
    }


def test_what_is_moved_at_least() -> None:
    told = {"bytes": 100, "window": 64, "ranks": 4, "units": 10}
    moved = {
        name: (each.moved_bytes(told, "between"), each.moved_bytes(told, "within"))
        for name, each in FIGURES.items()
    }
    assert moved == {
        "latency": (2000, 2000),
        "bandwidth": (1000, 1000),
        "bidirectional": (2000, 2000),
        "rate": (64000, 64000),
        "pairs": (4000, 4000),
        "allreduce": (2000, 4000),
        "alltoall": (8000, 12000),
        "broadcast": (1000, 3000),
    }


def test_the_fastest_other_is_compared_with() -> None:
    times = cell([1.0, 2.0], native=[4.0, 8.0], ucx=[2.0, 5.0], ofi=[9.0, 9.0])
    assert times.stack == "ucx"
    assert times.ratio.value == pytest.approx(math.sqrt(1 / 2 * 2 / 5))
    rates = cell([1.0, 2.0], "bandwidth", native=[4.0, 8.0], ucx=[2.0, 5.0])
    assert rates.stack == "native"


def test_ratios_are_those_of_rounds() -> None:
    # Each round is twice as slow as the one before; that is no doubt about the ratio.
    steady = cell([1.0, 2.0, 4.0], native=[2.0, 4.0, 8.0])
    assert (steady.ratio.low, steady.ratio.high) == pytest.approx((0.5, 0.5))
    assert steady.verdict == "ahead"
    beowire, native = [1.0, 1.3, 1.1], [2.0, 2.1, 1.9]
    told = cell(beowire, native=native).as_json()
    wanted = ratio(beowire, native)
    assert (told["ratio"], told["low"], told["high"]) == (wanted.value, wanted.low, wanted.high)
    assert told["ratio"] == pytest.approx(told["beowire"] / told["tcp"])


@pytest.mark.parametrize(
    ("values", "figure", "verdict"),
    [
        ([0.5, 0.51, 0.49], "latency", "ahead"),
        ([0.5, 0.51, 0.49], "bandwidth", "behind"),
        ([2.0, 2.1, 1.9], "allreduce", "behind"),
        ([2.0, 2.1, 1.9], "rate", "ahead"),
        ([2.0, 0.5, 1.9], "rate", "even"),
        ([1.0, 1.0, 1.0], "latency", "even"),
        ([0.1], "latency", "even"),
    ],
)
def test_verdicts(values: list[float], figure: str, verdict: str) -> None:
    assert cell(values, figure, native=[1.0] * len(values)).verdict == verdict


def test_one_round_carries_no_interval(tmp_path: Path) -> None:
    told = cell([0.1], native=[1.0]).as_json()
    assert (told["low"], told["high"], told["rounds"]) == (None, None, 1)
    file = tmp_path / "cells.json"
    store = Store(file, SETTING)
    store.add(Key("latency", 8, "raw", 1500, "openmpi"), 0.1, {"native": 1.0})
    store.save()
    assert "Infinity" not in file.read_text()
    (kept,) = Store(file, SETTING).cells.values()
    assert kept.beowire == [0.1]
    assert "[-]" in shown(tables.worst([kept], 0))


def shown(table: Any) -> str:
    from rich.console import Console

    # As beowire.terminal prints: strings as they are.
    console = Console(width=200, record=True, markup=False, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table)
    return console.export_text()


def test_the_keys_of_a_cell() -> None:
    told = cell([1.0, 1.1], native=[2.0, 2.1]).as_json()
    assert list(told) == [
        *("figure", "bytes", "link", "mtu", "mpi", "ratio", "low", "high", "verdict"),
        *("unit", "lower_is_better", "beowire", "tcp", "stack", "rounds", "values"),
    ]
    again = cells.of_json(json.loads(json.dumps(told)))
    assert again == cell([1.0, 1.1], native=[2.0, 2.1])


@pytest.mark.parametrize(
    "spoiled",
    [
        {"figure": "speed"},
        {"values": {"beowire": [1.0]}},
        {"values": {"beowire": [1.0], "native": [1.0, 2.0]}},
        {"values": {"beowire": [], "native": []}},
        {"values": {"beowire": [0.0], "native": [1.0]}},
        {"values": None},
    ],
)
def test_a_file_with_a_bad_cell_is_refused(spoiled: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "cells.json"
    store = Store(file, SETTING)
    store.add(Key("latency", 8, "raw", 1500, "openmpi"), 1.0, {"native": 1.0})
    store.save()
    told = json.loads(file.read_text())
    told["cells"][0] |= spoiled
    file.write_text(json.dumps(told))
    with pytest.raises(BeowireError, match="a cell that cannot be read"):
        Store(file, SETTING)


def test_files_of_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "cells.json"
    file.write_text('{"cells": []}')
    with pytest.raises(BeowireError, match="is no file of `beowire bench matrix`"):
        Store(file, SETTING)
    assert file.read_text() == '{"cells": []}'
    mine = tmp_path / "mine.json"
    Store(mine, SETTING).save()
    with pytest.raises(BeowireError, match="another setting: cell_ms 1, not 2"):
        Store(mine, {**SETTING, "cell_ms": 2})


def test_the_worst_come_first() -> None:
    rows = [
        cell([2.0, 0.1], "rate", native=[1.0, 1.0]),  # who knows
        cell([0.5, 0.5], native=[1.0, 1.0]),  # ahead
        cell([1.5, 1.5], native=[1.0, 1.0]),  # behind
        cell([0.1, 0.1], "bandwidth", native=[1.0, 1.0]),  # far behind
    ]
    found = sorted(rows, key=lambda each: each.badness)
    assert found == [rows[3], rows[2], rows[0], rows[1]]
    text = shown(tables.worst(rows, 3))
    assert text.index("bandwidth") < text.index("latency") < text.index("rate")
    assert text.count("behind") == 2
    assert "ahead" not in text
    last = shown(tables.summary(rows)).splitlines()[-2]
    assert [each.strip() for each in last.split("│")][-4:-1] == ["2", "1", "1"]


def test_a_cell_by_size_is_its_ratio_and_verdict() -> None:
    rows = [cell([0.5, 0.5], native=[1.0, 1.0]), cell([1.5, 1.5], "rate", native=[1.0, 1.0])]
    text = shown(tables.by_size(rows))
    assert "│ 0.50 ahead │" in text
    assert "[" not in text


@pytest.mark.parametrize("name", ["cells.svg", "cells.png", "cells.pdf"])
def test_plots(name: str, tmp_path: Path) -> None:
    store = Store(None, SETTING)
    Runs().sweep(GRID, store)
    file = tmp_path / name
    # One cell of the grid is not there.
    plot.draw(list(store.cells.values())[1:], file)
    start = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[file.suffix[1:]]
    assert file.read_bytes().startswith(start)


def test_colours_are_told_apart_without_red_and_green() -> None:
    # What deuteranopes see of a colour is about its blue against the rest, and its lightness.
    ends = [plot._COLOURS[0], plot._COLOURS[-1]]
    (red, _, blue), (other_red, _, other_blue) = (
        tuple(int(each[at : at + 2], 16) for at in (1, 3, 5)) for each in ends
    )
    assert blue - red < -100
    assert other_blue - other_red > 100


def test_sizes_are_read() -> None:
    assert figures.read_sizes("1m, 8,4K,8") == (8, 4096, 1 << 20)
    assert [figures.told_size(each) for each in (8, 4096, 1 << 20, 1000)] == [
        *("8 B", "4 KiB", "1 MiB", "1000 B")
    ]
