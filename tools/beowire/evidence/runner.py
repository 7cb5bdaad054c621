# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs what the chosen entries want and is not measured yet, and judges them."""

import os
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from beowire import namespaces
from beowire.errors import BeowireError
from beowire.evidence import host, shown
from beowire.evidence.entry import Entry, Measure
from beowire.evidence.experiment import EXPERIMENTS, CannotRunError, Context
from beowire.evidence.figures import Figures, MissingError
from beowire.evidence.outcome import CANNOT, FAILED, Outcome, judge
from beowire.evidence.state import Measured, State, key_of

QUICK_S = 15 * 60.0
"""What --quick may take in all."""
_PATIENCE = 3.0
_LEAST_S = 60.0
_NO_ROOT = "it needs a lab of namespaces: run it as root"

Tell = Callable[[str], None]


class OutOfTimeError(Exception):
    """The time of --quick was over before this could begin."""


class Runner:
    """Experiments of a run, each once."""

    def __init__(self, state: State, quick: bool, directory: Path, tell: Tell) -> None:
        self.state = state
        self.quick = quick
        self._directory = directory
        self._tell = tell
        self._began_s = time.monotonic()
        self._taken_s = self._expected_s = 0.0
        self._failed: dict[str, BeowireError] = {}
        self._told: set[str] = set()
        self._entry_s = 0.0

    def entries(self, chosen: Sequence[Entry]) -> list[Outcome]:
        """All of them, in their order."""
        return [self._entry(entry, chosen[place:]) for place, entry in enumerate(chosen)]

    def _entry(self, entry: Entry, left: Sequence[Entry]) -> Outcome:
        self._entry_s = 0.0
        ours: Figures | None = None
        try:
            ours = self._figures(entry.measure, entry, left)
            more = None
            if self._wants_more(entry, ours):
                assert entry.explanation is not None
                assert entry.explanation.measure is not None
                more = self._more(entry.explanation.measure, entry, left)
            found = judge(entry, ours, more, self._entry_s)
            return replace(found, ours=shown.of_entry(entry, ours))
        except CannotRunError as reason:
            return Outcome(entry.id, CANNOT, str(reason), ours, self._entry_s)
        except OutOfTimeError:
            why = f"the {QUICK_S / 60:.0f} minutes of --quick were over; the same command goes on"
            return Outcome(entry.id, CANNOT, why, ours, 0)
        except BeowireError as error:
            why = f"{entry.measure.experiment}: {error}"
            return Outcome(entry.id, FAILED, why, ours, self._entry_s)

    def _wants_more(self, entry: Entry, ours: Figures) -> bool:
        """Whether the criterion fails and its explanation has figures of its own."""
        if entry.explanation is None or entry.explanation.measure is None:
            return False
        try:
            return not entry.criterion.judge(ours).holds
        except MissingError:
            return False

    def _more(self, measure: Measure, entry: Entry, left: Sequence[Entry]) -> Figures:
        """Figures of an explanation; none where they cannot be had, so that it is told untested."""
        try:
            return self._figures(measure, entry, left)
        except (CannotRunError, OutOfTimeError, BeowireError):
            return Figures()

    def _figures(self, measure: Measure, entry: Entry, left: Sequence[Entry]) -> Figures:
        key = key_of(measure, self.quick)
        if key in self._failed:
            raise self._failed[key]
        found = self.state.find(key) or self._run(key, measure, entry, left)
        if key not in self._told:  # the first entry to want it is told what it took
            self._told.add(key)
            self._entry_s += found.seconds
        return found.get()

    def _run(self, key: str, measure: Measure, entry: Entry, left: Sequence[Entry]) -> Measured:
        experiment = EXPERIMENTS[measure.experiment]
        if self.quick and not measure.parameters(True) and measure.parameters(False):
            raise CannotRunError("it takes too long for --quick")
        if experiment.root and (os.geteuid() != 0 or namespaces.refusal()):
            raise CannotRunError(_NO_ROOT)
        now = time.monotonic()
        expected_s = experiment.expected_s(self.quick)
        if self.quick and now - self._began_s + expected_s > QUICK_S:
            raise OutOfTimeError
        limit_s = max(_PATIENCE * expected_s, _LEAST_S)
        if self.quick:
            limit_s = min(limit_s, self._began_s + QUICK_S - now)

        def tell(text: str) -> None:
            self._tell(f"[{self._clock()}] {entry.id}, {self._left(left, now)} left: {text}")

        context = Context(tell, self._directory, now + limit_s)
        figures, cannot = None, ""
        try:
            figures = experiment.run(measure.parameters(self.quick), context)
        except CannotRunError as reason:
            cannot = str(reason)
        except BeowireError as error:
            self._failed[key] = error
            raise
        except Exception as error:  # whatever it is, the other entries go on
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(where.filename).name}, line {where.lineno}"
            failure = BeowireError(f"{type(error).__name__} ({place}): {error}")
            self._failed[key] = failure
            raise failure from error
        took_s = time.monotonic() - now
        self._taken_s += took_s
        self._expected_s += expected_s
        measured = Measured(figures, cannot, took_s, host.load())
        self.state.add(key, measured)
        return measured

    def _clock(self) -> str:
        passed = int(time.monotonic() - self._began_s)
        return f"{passed // 60}:{passed % 60:02}"

    def _left(self, left: Sequence[Entry], began_s: float) -> str:
        """What is to be expected, corrected by how that was so far, less what the experiment under
        way has taken."""
        wanted = {key_of(each.measure, self.quick): each.measure.experiment for each in left}
        expected_s = sum(
            EXPERIMENTS[name].expected_s(self.quick)
            for key, name in wanted.items()
            if self.state.find(key) is None and key not in self._failed
        )
        enough = self._expected_s >= _LEAST_S
        factor = self._taken_s / self._expected_s if enough else 1.0
        left_s = max(expected_s * factor - (time.monotonic() - began_s), 0)
        if self.quick:
            left_s = min(left_s, max(self._began_s + QUICK_S - time.monotonic(), 0))
        return f"about {left_s:.0f} s" if left_s < 100 else f"about {left_s / 60:.0f} min"
