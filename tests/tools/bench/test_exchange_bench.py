# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The exchange benchmark: caches as the kernel tells them, what comes of its runs, its command."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from beowire.bench import caches, exchange, exchange_figures, exchange_plot
from beowire.bench.exchange import Plan, Report
from beowire.bench.exchange_figures import Setting
from beowire_cli import NO_NAMESPACES, beowire, fresh_name

MEMORY = Setting("memory", 8192)
OURS = Setting("beowire", 8192)


def tree(root: Path, cpu: int, *rows: tuple[str, int, str, str]) -> Path:
    for number, (kind, level, size, cpus) in enumerate(rows):
        index = root / f"cpu{cpu}" / "cache" / f"index{number}"
        index.mkdir(parents=True)
        for name, text in (
            ("type", kind),
            ("level", str(level)),
            ("size", size),
            ("shared_cpu_list", cpus),
        ):
            (index / name).write_text(f"{text}\n")
    return root


def test_caches_are_read_from_the_kernel(tmp_path: Path) -> None:
    rows = [
        ("Instruction", 1, "32K", "0"),
        ("Data", 1, "48K", "0"),
        ("Unified", 3, "32M", "0-3,8"),
        ("Unified", 2, "2048K", "0-1"),
    ]
    found = caches.read(root=tree(tmp_path, 0, *rows))
    assert [(each.name, each.size_bytes) for each in found] == [
        ("L1", 48 << 10),
        ("L2", 2 << 20),
        ("L3", 32 << 20),
    ]
    assert found[2].cpus == {0, 1, 2, 3, 8}


def test_a_machine_that_tells_no_caches_has_none(tmp_path: Path) -> None:
    assert caches.read(root=tmp_path) == []


def report(rates: dict[tuple[str, int], list[float]]) -> dict[str, Any]:
    """What the program prints of these rates in MB/s, by type and size."""
    return {
        "pattern": "pair",
        "results": [
            {
                "calls": "blocking",
                "type": kind,
                "size_bytes": size,
                "payload_bytes": size,
                "span_bytes": 2 * size if kind == "vector" else size,
                "turn_bytes": 2 * size,
                "batch": 1,
                "samples_ns": [2 * size * 1e3 / rate for rate in row],
            }
            for (kind, size), row in rates.items()
        ],
    }


def figures(setting: Setting, factor: float = 1.0) -> list[exchange_figures.Figure]:
    sizes = [1 << each for each in range(10, 21)]
    reports = []
    for shift in (0.9, 1.0, 1.1):
        rates = {("byte", size): [1000.0 * factor * shift] for size in sizes}
        rates |= {("vector", size): [500.0 * factor * shift] for size in sizes}
        reports.append(report(rates))
    return exchange_figures.rates(setting, reports)


def test_a_rate_is_payload_by_time() -> None:
    found = figures(MEMORY)
    assert found[0].setting == "MPI's memory, eager 8,192 B"
    assert found[0].mb_per_s["p50"] == pytest.approx(1000)
    assert found[0].rounds_mb_per_s == pytest.approx([900, 1000, 1100])


def test_settings_are_compared_round_by_round() -> None:
    both = figures(MEMORY) + figures(OURS, 2.0)
    found = exchange_figures.comparisons(both, OURS, MEMORY)
    assert len(found) == 22
    assert {round(each.ratio.value, 6) for each in found} == {2.0}
    # Each round has the same ratio: what disturbs rounds as a whole does not widen the interval.
    assert all(each.ratio.low == pytest.approx(2.0) for each in found)
    assert all(each.ratio.high == pytest.approx(2.0) for each in found)


def test_types_are_compared_with_bytes() -> None:
    (found,) = exchange_figures.type_ratios(figures(MEMORY))
    assert found.type == "vector"
    assert found.ratio.value == pytest.approx(0.5)
    assert found.lowest == pytest.approx(0.5)
    only_vectors = [each for each in figures(MEMORY) if each.type == "vector"]
    assert exchange_figures.type_ratios(only_vectors) == []


def test_both_sides_of_a_cache_s_size() -> None:
    alone = caches.Cache(2, 64 << 10, frozenset({0}))
    shared = replace(alone, level=3, cpus=frozenset({0, 1}))
    found = exchange_figures.edges(figures(MEMORY), [alone, shared], (0, 1))
    sides = {
        (each.cache, each.type): (each.buffers, each.fits_bytes, each.exceeds_bytes)
        for each in found
    }
    assert sides == {
        ("L2", "byte"): (2, 32 << 10, 64 << 10),
        ("L3", "byte"): (4, 16 << 10, 32 << 10),
        ("L2", "vector"): (2, 16 << 10, 32 << 10),  # its gaps lie in the cache as well
        ("L3", "vector"): (4, 8 << 10, 16 << 10),
    }
    tiny = caches.Cache(1, 16, frozenset({0}))
    (byte, _) = exchange_figures.edges(figures(MEMORY), [tiny], (0, 1))
    assert (byte.fits_bytes, byte.fits_mb_per_s, byte.exceeds_bytes) == (None, None, 1024)


@pytest.mark.parametrize("name", ["plot.svg", "plot.png", "plot.pdf"])
def test_plots(name: str, tmp_path: Path) -> None:
    drawn = Report(
        Plan(calls=("blocking",), types=("byte", "vector")),
        figures=figures(MEMORY) + figures(OURS, 2.0),
    )
    drawn.edges = exchange_figures.edges(
        drawn.figures, [caches.Cache(2, 64 << 10, frozenset({0}))], (0, 1)
    )
    file = tmp_path / name
    exchange_plot.draw(drawn, file)
    start = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[file.suffix[1:]]
    assert file.read_bytes().startswith(start)


def test_what_is_moved_is_known() -> None:
    told = report({("byte", 1000): [10.0, 20.0], ("double", 80): [5.0]})
    assert exchange.moved_bytes(told) == 2 * 2000 + 160


@pytest.fixture
def lab() -> Iterator[str]:
    name = fresh_name()
    done = beowire("lab", "up", name, "--nodes", "2")
    assert done.status == 0, done.errors
    yield name
    beowire("lab", "down", name)


@pytest.mark.skipif(NO_NAMESPACES is not None, reason=f"no labs here: {NO_NAMESPACES}")
@pytest.mark.parametrize("pattern", ["pair", "scatter"])
def test_the_command(pattern: str, lab: str, tmp_path: Path) -> None:
    file = tmp_path / "told.json"
    words = ["--lab", lab, "--pattern", pattern, "--rounds", "1", "--iters", "2"]
    words += ["--sizes", "1k,64k", "--types", "byte,double", "--calls", "blocking"]
    done = beowire("bench", "exchange", *words, "--json", str(file))
    assert done.status == 0, done.errors
    told = json.loads(file.read_text())
    settings = 4 if pattern == "pair" else 2
    assert len(told["figures"]) == settings * 2 * 2
    measured = Counter((each["type"], each["size_bytes"]) for each in told["figures"])
    assert measured == {
        (kind, size): settings for kind in ("byte", "double") for size in (1024, 65536)
    }
    for each in told["figures"]:  # one round: what it says is what was counted
        assert [each["mb_per_s"]["p50"]] == pytest.approx(each["rounds_mb_per_s"])
    counted = "local_bytes" if pattern == "pair" else "payload_bytes"
    ours = [each for name, each in told["carried"].items() if name.startswith("Beowire")]
    assert len(ours) == settings // 2
    # Two turns of both types and sizes, from one to the other at least.
    assert all(each[counted] >= 2 * 2 * (1024 + 65536) for each in ours)


@pytest.mark.skipif(NO_NAMESPACES is not None, reason=f"no labs here: {NO_NAMESPACES}")
def test_mistakes(lab: str) -> None:
    for words, fix in (
        (["--types", "float"], "--types"),
        (["--calls", "often"], "--calls"),
        (["--sizes", "many"], "--sizes"),
        (["--plot", "plot.txt"], "plot.txt"),
        (["--mpi", "mpich", "--pattern", "pair"], "openmpi"),
    ):
        done = beowire("bench", "exchange", "--lab", lab, *words)
        assert done.status != 0, words
        assert fix in done.errors
        assert "Traceback" not in done.errors
