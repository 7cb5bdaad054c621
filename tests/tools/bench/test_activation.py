# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `beowire bench activation` computes, refuses and leaves, and its program's samples."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from beowire import places
from beowire.bench import activation, activation_counted
from beowire.bench.activation import Key, Plan, Report
from beowire.errors import BeowireError
from beowire.vm import kernels
from beowire_cli import beowire

PROGRAM = activation.PROGRAM
CLOCKS_NS = 1_000_000
"""By which the scheduler's clock and CLOCK_MONOTONIC may run apart within one event."""
TURN_NS = 100_000
"""Longer than the way of who is not in a queue."""


def program(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [places.product(PROGRAM), *words], capture_output=True, text=True, check=False
    )


def told(*steps: int) -> dict[str, Any]:
    return {f"{step}_ns": [each * 1000 for each in steps] for step in activation.STEPS}


def test_figures_are_by_nearest_rank() -> None:
    found = activation.figures(list(range(2000, 0, -1)))
    assert found == {"p50": 1000, "p99.9": 1998, "mean": 1000.5, "max": 2000}
    assert activation.figures([7]) == {"p50": 7, "p99.9": 7, "mean": 7, "max": 7}
    assert activation.figures(list(range(1, 301)))["p99.9"] == 300
    with pytest.raises(ValueError, match="no samples"):
        activation.figures([])


def test_a_ratio_is_of_the_same_rounds() -> None:
    report = Report(Plan(rounds=2))
    base, pinned = (Key("idle", "threads", "futex", each) for each in ("none", "pinned"))
    report.runs = {base: [told(10, 30), told(40, 40)], pinned: [told(5, 5), told(20, 20)]}
    ratio = report.ratio(pinned, "first", "p50")
    assert ratio is not None
    assert ratio.value == pytest.approx(0.5)
    assert report.figure(pinned, "first", "mean") == [5, 20]
    # as long as the first round misses in one of them there is nothing to compare
    report.runs[base].pop()
    assert report.ratio(pinned, "first", "p50") is None


@pytest.mark.parametrize("scope", activation.SCOPES)
@pytest.mark.parametrize("event", activation.EVENTS)
def test_every_event_is_a_sample_of_each_step(scope: str, event: str) -> None:
    began = time.monotonic_ns()
    done = program(scope, "--event", event, "--count", "40", "--warm", "3", "--interval", "100")
    took = time.monotonic_ns() - began
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for step in activation.STEPS:
        assert len(found[f"{step}_ns"]) == 40
        assert all(each >= 0 for each in found[f"{step}_ns"])
    parts = zip(found["first_ns"], found["second_ns"], found["whole_ns"], strict=True)
    assert all(first + second <= whole for first, second, whole in parts)
    assert sum(found["whole_ns"]) <= took
    assert found["clock"]["step_ns"] > 0


def test_the_work_lies_in_the_whole_alone() -> None:
    """1024 calls in a round, which are not over in a nanosecond each."""
    words = ("threads", "--event", "futex", "--count", "20", "--interval", "10", "--work", "100")
    found = json.loads(program(*words).stdout)
    parts = zip(found["first_ns"], found["second_ns"], found["whole_ns"], strict=True)
    assert min(whole - first - second for first, second, whole in parts) > 2 * 100 * 1024


def test_time_in_the_queue_is_part_of_the_way() -> None:
    """By the kernel's account; its clock may differ by a little from the one that is read."""
    words = ("threads", "--count", "200", "--warm", "5", "--interval", "100")
    with activation.loaded():
        done = program(*words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["queued_ns"]) == 200
    pairs = list(zip(found["queued_ns"], found["first_ns"], strict=True))
    assert all(0 <= queued <= first + CLOCKS_NS for queued, first in pairs)


def test_who_has_a_small_share_of_its_processor_waits_in_the_queue() -> None:
    """The load has most of the processor that all threads of the chain share with it: any fair
    scheduler makes them wait, the source of the events as well, and nothing else makes them as
    late."""
    first = min(os.sched_getaffinity(0))
    words = ["threads", "--pin", f"{first},{first},{first}", "--count", "50", "--interval", "100"]
    with activation.loaded():
        line = ["nice", "-n", "19", str(places.product(PROGRAM)), *words]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert sum(found["first_ns"]) > 50 * TURN_NS
    assert sum(found["queued_ns"]) > 0.5 * sum(found["first_ns"])


@pytest.mark.parametrize(
    "words",
    [
        ["threads", "--event", "signal"],
        ["threads", "--count", "0"],
        ["threads", "--count", "9x"],
        ["threads", "--pin", "0,1"],
        ["threads", "--pin", "0,0,0,0"],
        ["threads", "--priority", "100"],
        ["threads", "more"],
        ["load", "0"],
        ["fibres"],
        [],
    ],
)
def test_the_program_refuses(words: list[str]) -> None:
    done = program(*words)
    assert done.returncode in (1, 2)
    assert done.stderr
    assert not done.stdout


def test_where_each_measure_puts_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activation, "processors", lambda: (7, 8, 9))

    def pin(measure: str) -> str:
        words = activation.words(Plan(), Key("idle", "threads", "futex", measure))
        return words[words.index("--pin") + 1] if "--pin" in words else ""

    assert (pin("pinned"), pin("all"), pin("together")) == ("7,8,9", "7,8,9", "7,8,8")
    assert pin("none") == pin("realtime") == pin("huge") == ""


def test_a_processor_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measure is missing from the report, with the reason; the others are there."""
    monkeypatch.setattr(activation, "processors", lambda: (1000, 1000, 1000))
    plan = Plan(("threads",), ("futex",), ("none", "pinned"), ("idle",), 2, 20, 100)
    report = activation.measure(plan, lambda _: None)
    assert "processor 1000" in report.missing["pinned"]
    assert {key.measure for key in report.runs} == {"none"}
    assert [len(each) for each in report.runs.values()] == [2]


def test_the_load_ends_with_the_command() -> None:
    with activation.loaded() as processes:
        assert processes == len(os.sched_getaffinity(0))
        mine = load()
        assert len(mine) == processes
    until = time.monotonic() + 60
    while any(runs(each) for each in mine) and time.monotonic() < until:
        time.sleep(0.01)
    assert not [each for each in mine if runs(each)]


def runs(process: psutil.Process) -> bool:
    """Whoever inherits an ended one may be slow to reap it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def load() -> list[psutil.Process]:
    """The processes that load: children of a child of ours."""
    return [
        each
        for name in psutil.Process().children()
        if runs(name) and name.cmdline()[1:2] == ["load"]
        for each in name.children()
    ]


@pytest.mark.parametrize("text", ["", "threads,fibres", ","])
def test_scopes_that_are_none(text: str) -> None:
    done = beowire("bench", "activation", "--scopes", text)
    assert done.status
    assert "--scopes" in done.errors


def test_a_short_run(tmp_path: Path) -> None:
    file = tmp_path / "activation.json"
    words = ["--quick", "--scopes", "threads", "--events", "futex", "--measures", "none,pinned"]
    done = beowire("bench", "activation", *words, "--json", str(file))
    assert done.status == 0, done.errors
    assert "average" in done.output
    assert "34 us before and 20 us" in done.output
    found = json.loads(file.read_text())
    assert len(found["runs"]) == 4  # idle and busy, without and with
    for each in found["runs"]:
        assert [len(one["first_ns"]) for one in each["rounds"]] == [300] * 3
    assert {each["step"] for each in found["figures"]} == set(activation.STEPS)


def test_what_the_program_prints_is_checked(tmp_path: Path) -> None:
    fake = tmp_path / "fake"
    fake.write_text('#!/bin/sh\necho "{}"\n')
    fake.chmod(0o755)
    with pytest.raises(BeowireError, match="printed"):
        activation.run([str(fake)])


def test_what_a_guest_tells_is_checked() -> None:
    line = json.dumps(told(1, 2))
    assert len(activation_counted.told(f"a word\n{line}\n{line}\n", 2)) == 2
    with pytest.raises(BeowireError, match="1 runs, not 2"):
        activation_counted.told(line, 2)
    with pytest.raises(BeowireError, match="Nothing is left"):
        activation_counted.measure(Plan(measures=("pinned",)))


def test_copies_need_no_more_instructions(tmp_path: Path) -> None:
    try:
        kernels.find()
    except BeowireError as error:
        pytest.skip(f"no kernel for guests: {error}")
    file = tmp_path / "counted.json"
    words = ["--scopes", "threads", "--events", "futex", "--measures", "none,replicate"]
    done = beowire("bench", "activation", "--counted", *words, "--json", str(file))
    assert done.status == 0, done.errors
    found = {each["measure"]: each["instructions"] for each in json.loads(file.read_text())}
    plain, copied = (activation.figures(found[each]["first"]) for each in ("none", "replicate"))
    assert 1_000 < plain["p50"] < 50_000
    assert copied["p50"] == pytest.approx(plain["p50"], rel=0.02)
