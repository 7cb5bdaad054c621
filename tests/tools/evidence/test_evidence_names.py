# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Criteria name what experiments give, in a quick run and in a whole one: each experiment is run
with its measuring replaced, so that it names its figures and takes no time."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from beowire.bench import exchange
from beowire.bench.exchange_figures import Figure as Rate
from beowire.bench.kernel import Measured as Counted
from beowire.bench.kernel import Report as KernelReport
from beowire.evidence.criterion import Flat, references
from beowire.evidence.entry import Entry, Measure
from beowire.evidence.experiment import EXPERIMENTS, Context
from beowire.evidence.experiments import (
    distant,
    files,
    guest,
    inside,
    labs,
    pairs,
    programs,
)
from beowire.evidence.figures import Figures
from beowire.evidence.registry import ENTRIES
from made_up import parts

COMMANDS = ("activation", "place", "replicate", "text")
"""Experiments that are other commands, or guests, of which tests of their own tell."""


class Address:
    """Whatever a lab is asked for."""

    name = "nowhere"
    topology = SimpleNamespace(links=())

    def namespace_path(self, node: str) -> Path:
        return Path(node)

    def address(self, node: str) -> str:
        return node


@contextlib.contextmanager
def nowhere(*_: Any) -> Iterator[Address]:
    yield Address()


def size_of(text: str) -> int:
    return int(text[:-1]) << {"k": 10, "m": 20}[text[-1]]


def rates(plan: exchange.Plan, *_: Any) -> exchange.Report:
    report = exchange.Report(plan)
    settings = [each for pair in exchange.settings(plan) for each in pair]
    spread = {"p50": 1.0}
    calls = plan.calls if plan.pattern == "pair" else ("nonblocking",)
    report.figures = [
        Rate(setting.label, call, kind, size_of(size), 1, 1, spread, [1.0, 2.0])
        for setting in settings
        for call in calls
        for kind in plan.types
        for size in plan.sizes.split(",")
    ]
    return report


class Counting:
    """In place of a guest."""

    def __init__(self, plan: Any) -> None:
        self.plan = plan

    def measure(self, *_: Any) -> KernelReport:
        report = KernelReport("6", 1, 1)
        report.figures = [
            (each, [Counted(row, 1.0, 1, 1, 1, None, None, 1.0, 1.0) for row in each.rows])
            for each in self.plan.figures
        ]
        return report


def pingpong(_: Any, __: str, ___: str, words: list[str], *____: Any) -> dict[str, Any]:
    mode, sizes = words[words.index("--mode") + 1], words[words.index("--size") + 1]
    return {
        "results": [
            {"mode": mode, "size": int(each), "p50_ns": 1000, "bytes_per_s": 1e6}
            for each in sizes.split(",")
        ]
    }


@pytest.fixture
def nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labs, "of", nowhere)
    monkeypatch.setattr(programs, "_seconds", lambda *_, **__: 1.0)
    monkeypatch.setattr(programs.up, "set_links", lambda *_: None)
    monkeypatch.setattr(files.namespaces, "within", lambda *_: {"passes": 1})
    transfer = files.stream.Transfer(1.0, 0.5)
    monkeypatch.setattr(files.stream, "transfer", lambda *_: transfer)
    monkeypatch.setattr(pairs.line_flow, "report", pingpong)
    plain = SimpleNamespace(alone=[[1.0, 1.0]], together=[2.0], gain=pairs.samples.ratio([1], [1]))
    monkeypatch.setattr(pairs.stripe, "measure", lambda *_: plain)
    monkeypatch.setattr(inside.exchange, "measure", rates)
    for name in ("of_lab", "replace"):
        cluster = SimpleNamespace(hosts=["a"] * 17)
        monkeypatch.setattr(inside, name, lambda *_, found=cluster, **__: found)
    monkeypatch.setattr(inside, "_COPIED_BYTES", 1 << 10)
    monkeypatch.setattr(guest.kernel, "Bench", Counting)
    monkeypatch.setattr(guest.machine, "find_kernel", lambda *_: None)
    ratio = SimpleNamespace(value=1.0, low=1.0, high=1.0)
    monkeypatch.setattr(guest.overlaps, "measure", lambda *_: SimpleNamespace(ratio=ratio))

    def filled(_: Any, __: Any, wanted: list[Any], times: dict[Any, float]) -> tuple[str, ...]:
        times.update(dict.fromkeys(wanted, 1.0))
        return ()

    monkeypatch.setattr(distant, "_results", lambda *_: None)
    monkeypatch.setattr(distant, "_measured", filled)
    monkeypatch.setattr(distant, "_one_site_s", lambda *_: 1.0)


def figures(measure: Measure, quick: bool, place: Path) -> Figures:
    context = Context(lambda _: None, place, time.monotonic() + 600)
    return EXPERIMENTS[measure.experiment].run(measure.parameters(quick), context)


@pytest.mark.usefixtures("nothing_is_measured")
@pytest.mark.parametrize("quick", [True, False], ids=["quick", "full"])
@pytest.mark.parametrize(
    "entry",
    [each for each in ENTRIES if each.measure.experiment not in COMMANDS],
    ids=lambda each: each.id,
)
def test_what_a_criterion_names_is_measured(entry: Entry, quick: bool, tmp_path: Path) -> None:
    if quick and not entry.measure.quick and entry.measure.full:
        return
    own = figures(entry.measure, quick, tmp_path)
    wanted = [(each, own) for each in references(entry.criterion)]
    assert set(entry.drawn) <= set(own.curves)
    if entry.explanation is not None:
        other = entry.explanation.measure
        more = figures(other, quick, tmp_path) if other is not None else own
        wanted += [(each, more) for each in references(entry.explanation.criterion)]
    for part in parts(entry.criterion):
        if isinstance(part, Flat):
            assert sum(part.low <= x <= part.high for x, _ in own.curve(part.curve)) > 1
    for name, found in wanted:
        if name in found.curves:
            assert len(found.curve(name)) > 1
        else:
            found.pick(name)
