# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What all tests in Python share: which of them run, where, and that all of these did.

Tests marked `long` are left out (not skipped: nothing is wrong) unless BEOWIRE_TEST_LONG is set,
as ./beowire test --long does. BEOWIRE_TEST_PART ("2/5") chooses a part of all, as --part does.
BEOWIRE_TEST_DONE is a file with the names of tests that passed before: a file all of whose tests
are there is left out, and so is a long test (see tools/beowire/selftest/journal.py).
Tests that need the machine nearly to themselves are marked `alone`, as schedule.toml says; the
others may run side by side, each file's by one worker. A test that does not end within LIMIT_S has
failed.
"""

import json
import os
import signal
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import chromium as chromium
from browser import chromium_of_session as chromium_of_session

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadFileScheduling
    from xdist.workermanage import WorkerController

# A shell's background jobs ignore Ctrl-C, and so would all that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Settings of this machine and of its user are none of the tests'.
os.environ.setdefault("BEOWIRE_CONFIG", "off")

_LONG = bool(os.environ.get("BEOWIRE_TEST_LONG"))
SCHEDULE = Path(__file__).with_name("schedule.toml")
LIMIT_S = 900
"""For a test and what it needs set up, on a busy machine, unless it has a limit of its own, as long
ones do."""


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Complete(), "beowire-complete")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    schedule = tomllib.loads(SCHEDULE.read_text()) if SCHEDULE.exists() else {}
    alone = schedule.get("alone", {})
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker("alone")
            continue
        if not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LIMIT_S))
        if file_of(item) in alone:
            item.add_marker("alone")
    chosen = in_part(
        [each for each in items if _LONG or not each.get_closest_marker("long")],
        os.environ.get("BEOWIRE_TEST_PART") or "1/1",
    )
    chosen = not_done(chosen, set(_lines_of("BEOWIRE_TEST_DONE")))
    left_out = set(items) - set(chosen)
    if left_out:
        config.hook.pytest_deselected(items=[each for each in items if each in left_out])
    begins = [*schedule.get("first", []), *alone]
    first = {name: number for number, name in enumerate(begins)}
    items[:] = sorted(chosen, key=lambda item: first.get(file_of(item), len(first)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: "Producer"
) -> "LoadFileScheduling | None":
    """As --dist loadfile does, but that one worker runs all files that are to run one after
    another, as if they were one."""
    from xdist.scheduler import LoadFileScheduling

    if config.getvalue("dist") != "loadfile":
        return None
    schedule = tomllib.loads(SCHEDULE.read_text()) if SCHEDULE.exists() else {}
    one_after_another = set(schedule.get("one_after_another", []))

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "one after another" if file in one_after_another else file

    return Scheduling(config, log)


def file_of(item: pytest.Item) -> str:
    """As schedule.toml names it."""
    return item.nodeid.split("::")[0]


def in_part(items: list[pytest.Item], part: str) -> list[pytest.Item]:
    """Those of part "k/n": every n-th of the files, and every n-th of the long tests."""
    number, count = (int(each) for each in part.split("/"))
    of_a_file = {item: file_of(item) for item in items if not item.get_closest_marker("long")}
    units = sorted(set(of_a_file.values()))
    units += [item.nodeid for item in items if item not in of_a_file]
    mine = set(units[number - 1 :: count])
    return [item for item in items if of_a_file.get(item, item.nodeid) in mine]


def _lines_of(variable: str) -> list[str]:
    """Of the file that it names; none if it names none."""
    name = os.environ.get(variable)
    return Path(name).read_text().splitlines() if name and Path(name).exists() else []


def not_done(items: list[pytest.Item], done: set[str]) -> list[pytest.Item]:
    """Without long tests that are done, and files in which all others are."""
    whole = {file_of(item) for item in items if not item.get_closest_marker("long")}
    whole -= {
        file_of(item)
        for item in items
        if not item.get_closest_marker("long") and item.nodeid not in done
    }
    return [
        item
        for item in items
        if (
            item.nodeid not in done
            if item.get_closest_marker("long")
            else file_of(item) not in whole
        )
    ]


def expected(names: set[str], workers: int) -> str:
    """How long these will take, by what they took last."""
    known = json.loads("".join(_lines_of("BEOWIRE_TEST_TIMES")) or "{}")
    seconds = sum(known.get(name, 0.0) for name in names) / max(workers, 1)
    new = sum(name not in known for name in names)
    if names and new == len(names):
        return f"{new} tests in Python: how long they take is not known, as none has run here"
    return (
        f"{len(names)} tests in Python: about {seconds / 60:.0f} min, as they took last; "
        f"{new} have not run here"
    )


_BEFORE = pytest.StashKey[float]()


def _processor_s() -> float:
    """Of this process and of those that it started and waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[_BEFORE] = _processor_s()
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    try:
        yield
    finally:
        took_s = _processor_s() - item.stash[_BEFORE]
        item.user_properties.append(("processor_s", f"{took_s:.2f}"))


class Complete:
    """Sees to it that each test that was chosen came to its end, with or without workers: a run
    that lost one has failed."""

    def __init__(self) -> None:
        self._chosen: set[str] = set()
        self._ended: set[str] = set()
        self._failed: set[str] = set()
        self._seconds: dict[str, float] = {}
        self._told = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._chosen |= {item.nodeid for item in session.items}
        if session.items:
            self._tell(1)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(
        self, node: "WorkerController", ids: list[str]
    ) -> None:
        self._chosen |= set(ids)
        self._tell(node.config.option.numprocesses)

    def _tell(self, workers: int) -> None:
        """How long it will take, once, where times are kept."""
        if "BEOWIRE_TEST_TIMES" in os.environ and not self._told:
            print(f"\n{expected(self._chosen, workers)}", flush=True)
        self._told = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid
        self._seconds[name] = self._seconds.get(name, 0.0) + report.duration
        if report.failed:
            self._failed.add(name)
        if report.failed or report.when == "teardown":
            self._ended.add(name)
        journal = os.environ.get("BEOWIRE_TEST_JOURNAL")
        if journal and report.when == "teardown":
            row = {"test": name, "seconds": self._seconds[name], "passed": name not in self._failed}
            with Path(journal).open("a") as stream:
                stream.write(json.dumps(row) + "\n")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        lost = sorted(self._chosen - self._ended)
        if lost and not session.config.option.collectonly and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
            print("\nthese tests did not end:", *lost, sep="\n  ")
