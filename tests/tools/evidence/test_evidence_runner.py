# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Running entries: what is measured is measured once, whatever happened in between."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from beowire.errors import BeowireError
from beowire.evidence import runner as runners
from beowire.evidence.criterion import Within
from beowire.evidence.entry import Entry, Explanation, Measure, Parameters, Stated
from beowire.evidence.experiment import CannotRunError, Context, Experiment
from beowire.evidence.figures import Figures
from beowire.evidence.outcome import AGREES, CANNOT, DIFFERS, FAILED, Outcome
from beowire.evidence.runner import Runner
from beowire.evidence.state import Measured, State, key_of

HOST = {"mark": "here"}
SETTING = {"version": "1", "commit": "c", "host": HOST, "run": "quick"}


class Made:
    """Experiments by name; what each does is set by a test, and each call is noted."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.does: dict[str, Any] = {}

    def run(self, name: str, parameters: Parameters) -> Figures:
        self.calls.append(name)
        found = self.does.get(name, 1.0)
        if isinstance(found, BaseException):
            raise found
        return Figures({"x": float(found) + float(parameters.get("more", 0))})


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """Three experiments that need nothing."""
    found = Made()

    class Fake(Experiment):
        def run(self, parameters: Parameters, context: Context) -> Figures:
            context.tell("on it")
            return found.run(self.function, parameters)

    names = {each: Fake(each, 1, 1, root=False) for each in ("first", "second", "third")}
    monkeypatch.setattr(runners, "EXPERIMENTS", names)
    return found


def entry(name: str, high: float = 5, explanation: Explanation | None = None) -> Entry:
    measure = Measure(name, {"a": 1}, {"a": 2})
    paper = Stated("nowhere", "nothing")
    return Entry(f"X-{name}", "X", "made up", paper, measure, Within("x", 0, high), explanation)


def run(place: Path, entries: list[Entry], told: list[str] | None = None) -> list[Outcome]:
    state = State(place / "state", SETTING)
    told = [] if told is None else told
    return Runner(state, True, place, told.append).entries(entries)


def test_what_was_measured_is_not_measured_again(made: Made, tmp_path: Path) -> None:
    entries = [entry(each) for each in ("first", "second", "first", "third")]
    made.does["second"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, entries)
    assert made.calls == ["first", "second"]
    made.does["second"] = 9
    found = run(tmp_path, entries)
    assert made.calls == ["first", "second", "second", "third"]
    assert [each.outcome for each in found] == [AGREES, DIFFERS, AGREES, AGREES]


def test_other_parameters_are_another_experiment(made: Made, tmp_path: Path) -> None:
    other = entry("first")
    more = replace(other, id="X-more", measure=Measure("first", {"more": 7}))
    found = run(tmp_path, [other, more])
    assert made.calls == ["first", "first"]
    assert [each.outcome for each in found] == [AGREES, DIFFERS]


def test_a_failure_is_named_and_the_rest_goes_on(made: Made, tmp_path: Path) -> None:
    made.does["first"] = BeowireError("The cable is cut.")
    made.does["second"] = ZeroDivisionError("division by zero")
    entries = [entry("first"), entry("first"), entry("second"), entry("third")]
    found = run(tmp_path, entries)
    assert [each.outcome for each in found] == [FAILED, FAILED, FAILED, AGREES]
    assert "first: The cable is cut." in found[0].why
    assert "ZeroDivisionError" in found[2].why
    assert made.calls == ["first", "second", "third"]
    made.does = {}
    assert {each.outcome for each in run(tmp_path, entries)} == {AGREES}, "tried once more"


def test_what_cannot_be_run_says_why_and_is_not_tried_again(made: Made, tmp_path: Path) -> None:
    made.does["first"] = CannotRunError("there is no such thing")
    for _ in range(2):
        (found,) = run(tmp_path, [entry("first")])
        assert (found.outcome, found.why) == (CANNOT, "there is no such thing")
    assert made.calls == ["first"]


def test_an_explanation_is_tested_only_where_it_is_wanted(made: Made, tmp_path: Path) -> None:
    because = Explanation("It rained.", Within("x", high=3), Measure("second", {"a": 1}))
    (found,) = run(tmp_path, [entry("first", explanation=because)])
    assert (found.outcome, made.calls) == (AGREES, ["first"])
    wrong = entry("first", high=0.5, explanation=because)
    (found,) = run(tmp_path, [wrong])
    assert found.outcome == DIFFERS
    assert "Tested, and it holds (x is 1): It rained." in found.why
    made.does["third"] = 4
    dry = replace(because, measure=Measure("third", {"a": 1}))
    (found,) = run(tmp_path, [replace(wrong, explanation=dry)])
    assert "Tested, and it does not hold (x is 4): It rained." in found.why
    made.does["third"] = BeowireError("no rain gauge")
    untested = replace(because, measure=Measure("third", {"a": 2}))
    (found,) = run(tmp_path, [replace(wrong, explanation=untested)])
    assert "Not tested, for want of x" in found.why


def test_the_quarter_of_an_hour_ends(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "QUICK_S", 0.0)
    (found,) = run(tmp_path, [entry("first")])
    assert found.outcome == CANNOT
    assert "were over" in found.why
    assert made.calls == []
    monkeypatch.undo()


def test_a_lab_needs_root(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = replace(runners.EXPERIMENTS["first"], root=True)
    monkeypatch.setitem(runners.EXPERIMENTS, "first", lab)
    monkeypatch.setattr(runners.os, "geteuid", lambda: 1000)
    first, second = run(tmp_path, [entry("first"), entry("second")])
    assert (first.outcome, second.outcome) == (CANNOT, AGREES)
    assert "root" in first.why
    monkeypatch.setattr(runners.os, "geteuid", lambda: 0)
    monkeypatch.setattr(runners.namespaces, "refusal", lambda: None)
    assert run(tmp_path, [entry("first")])[0].outcome == AGREES, "nothing of that is kept"
    assert made.calls == ["second", "first"]


def test_long_experiments_are_left_out_of_quick(made: Made, tmp_path: Path) -> None:
    long = replace(entry("first"), measure=Measure("first", {}, {"a": 1}))
    (found,) = run(tmp_path, [long])
    assert (found.outcome, made.calls) == (CANNOT, [])


def test_an_experiment_whose_time_is_over_ends_at_its_next_step(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "_LEAST_S", 0.0)
    monkeypatch.setattr(runners, "_PATIENCE", 0.0)
    (found,) = run(tmp_path, [entry("first")])
    assert (found.outcome, made.calls) == (FAILED, [])
    assert "Its time is over." in found.why


def test_the_time_of_an_experiment_is_told_once_also_after_it(made: Made, tmp_path: Path) -> None:
    state = State(tmp_path / "state", SETTING)
    key = key_of(entry("first").measure, True)
    state.add(key, Measured(Figures({"x": 1.0}), "", 7.0, 0.5))
    found = run(tmp_path, [entry("first"), entry("first")])
    assert [each.seconds for each in found] == [7.0, 0.0]
    assert made.calls == []


def test_progress_tells_the_entry_and_the_time_left(made: Made, tmp_path: Path) -> None:
    told: list[str] = []
    run(tmp_path, [entry("first"), entry("second")], told)
    assert len(told) == len(made.calls) == 2
    assert told[0] == "[0:00] X-first, about 2 s left: on it"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": "2"}, "version 1, not 2"),
        ({"commit": "d"}, "commit c, not d"),
        ({"host": {"mark": "there"}}, "host"),
        ({"run": "full"}, "run quick, not full"),
    ],
)
def test_results_of_another_kind_are_refused(
    made: Made, tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    run(tmp_path, [entry("first")])
    with pytest.raises(BeowireError, match=why) as error:
        State(tmp_path / "state", {**SETTING, **change})
    assert error.value.code == 2
    assert "--fresh" in str(error.value)
    assert made.calls == ["first"]


_NO_NUMBER = {"numbers": {"x": "1"}, "curves": {}, "spread": {}, "remarks": []}


@pytest.mark.parametrize(
    "line",
    [
        "no JSON",
        "[]",
        '{"experiment": "x"}',
        json.dumps(
            {"experiment": "x", "figures": _NO_NUMBER, "cannot": "", "seconds": 1, "load": 1}
        ),
    ],
)
def test_a_damaged_line_is_refused(made: Made, tmp_path: Path, line: str) -> None:
    run(tmp_path, [entry("first")])
    file = tmp_path / "state"
    file.write_text(f"{file.read_text()}{line}\n")
    with pytest.raises(BeowireError, match="line 3 is no result"):
        State(file, SETTING)
    assert made.calls == ["first"]


def test_a_line_that_was_cut_off_is_measured_again(made: Made, tmp_path: Path) -> None:
    run(tmp_path, [entry("first"), entry("second")])
    file = tmp_path / "state"
    file.write_text(file.read_text()[:-20])
    run(tmp_path, [entry("first"), entry("second")])
    assert made.calls == ["first", "second", "second"]
