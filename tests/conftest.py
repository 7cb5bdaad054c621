# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What all tests in Python share: which of them run, where, and that all of these did.

Tests marked `long` are left out (not skipped: nothing is wrong) unless BEOWIRE_TEST_LONG is set,
as ./beowire test --long does. BEOWIRE_TEST_PART ("2/5") chooses a part of all, as --part does.
Tests that need the machine nearly to themselves are marked `alone`, as schedule.toml says; the
others may run side by side, each file's by one worker. A test that does not end within LIMIT_S has
failed.
"""

import os
import signal
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium as chromium
from browser import chromium_of_session as chromium_of_session

# A shell's background jobs ignore Ctrl-C, and so would all that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Settings of this machine and of its user are none of the tests'.
os.environ.setdefault("BEOWIRE_CONFIG", "off")

_LONG = bool(os.environ.get("BEOWIRE_TEST_LONG"))
SCHEDULE = Path(__file__).with_name("schedule.toml")
LIMIT_S = 900
"""For a test and what it needs set up, on a busy machine; long ones have limits of their own."""


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
        item.add_marker(pytest.mark.timeout(LIMIT_S))
        if file_of(item) in alone:
            item.add_marker("alone")
    chosen = in_part(
        [each for each in items if _LONG or not each.get_closest_marker("long")],
        os.environ.get("BEOWIRE_TEST_PART") or "1/1",
    )
    left_out = set(items) - set(chosen)
    if left_out:
        config.hook.pytest_deselected(items=[each for each in items if each in left_out])
    begins = [*schedule.get("first", []), *alone]
    first = {name: number for number, name in enumerate(begins)}
    items[:] = sorted(chosen, key=lambda item: first.get(file_of(item), len(first)))


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

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._chosen |= {item.nodeid for item in session.items}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._chosen |= set(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.when == "teardown":
            self._ended.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        lost = sorted(self._chosen - self._ended)
        if lost and not session.config.option.collectonly and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
            print("\nthese tests did not end:", *lost, sep="\n  ")
