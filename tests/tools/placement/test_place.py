# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire place`: the node that pages are to come to, and what it says of processes that it must
not or cannot look at. That they come there is in test_machine_of_nodes.py."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.placement import mover, pages, process
from beowire.placement.journal import Journal
from beowire.placement.process import Mapping, Process, Thread
from beowire_cli import beowire

PAGE = os.sysconf("SC_PAGESIZE")


@pytest.fixture
def sleeper() -> Iterator[int]:
    with subprocess.Popen(["sleep", "600"]) as child:
        try:
            yield child.pid
        finally:
            child.kill()


def test_a_process_is_shown_on_a_machine_of_any_kind(sleeper: int) -> None:
    done = beowire("place", "--pid", str(sleeper))
    assert done.status == 0, done.errors
    assert f"process {sleeper} (sleep): 1 threads" in done.output


def test_threads_of_the_kernel_are_none() -> None:
    kernel = next(
        (int(each.name) for each in Path("/proc").glob("[0-9]*") if not _has_memory(each)), None
    )
    if kernel is None:
        pytest.skip("no thread of the kernel is seen in this namespace")
    with pytest.raises(BeowireError, match="thread of the kernel"):
        process.look(kernel)


def _has_memory(place: Path) -> bool:
    try:
        status = (place / "status").read_text()
    except OSError:
        return True
    return "VmSize" in status or ("State:\tS" not in status and "State:\tI" not in status)


def test_a_process_that_has_ended_is_none() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(BeowireError, match="has ended"):
            process.look(child.pid)
    with pytest.raises(BeowireError, match="There is no process"):
        process.look(child.pid)


def test_a_process_of_another_user_is_refused(sleeper: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has processes of another user")
    script = "from beowire.placement.process import look; import sys; look(int(sys.argv[1]))"
    become = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all"]
    done = subprocess.run(
        [*become, sys.executable, "-c", script, str(sleeper)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"Process {sleeper} is one of root" in done.stderr


def test_undo_goes_alone_and_needs_something_to_undo(sleeper: int) -> None:
    done = beowire("place", "--pid", str(sleeper), "--undo", "--move")
    assert "Leave the other options out" in done.errors
    done = beowire("place", "--pid", str(sleeper), "--undo")
    assert done.status == 1
    assert "Nothing of process" in done.errors


def made(threads: list[Thread], start: int = 1) -> Process:
    return Process(1, start, "made", dict(enumerate(threads)), [])


NODES = {0: (0, 1), 1: (2, 3)}


def test_the_target_is_where_threads_ran_for_the_most() -> None:
    assert mover.target(made([Thread(0, 10), Thread(2, 30)]), NODES).node == 1
    even = mover.target(made([Thread(0, 10), Thread(2, 10)]), NODES)
    assert even.node is None
    assert "several nodes" in even.why
    # Of late, not ever.
    before = made([Thread(0, 10), Thread(2, 30)])
    now = made([Thread(0, 19), Thread(2, 31)])
    assert mover.target(now, NODES, before).node == 0
    assert mover.target(made([Thread(0, 0)]), NODES).node == 0
    assert mover.target(made([Thread(9, 5)]), NODES).node is None


def test_what_has_a_policy_is_left() -> None:
    plain = Mapping(0, PAGE, PAGE, decided=False, file=False, pages={0: 1})
    bound = Mapping(PAGE, 2 * PAGE, PAGE, decided=True, file=False, pages={0: 1})
    there = Mapping(2 * PAGE, 3 * PAGE, PAGE, decided=False, file=False, pages={1: 1})
    whole = Process(1, 1, "made", {}, [plain, bound, there])
    assert mover.remote(whole, 1) == [plain]
    assert whole.bytes_by_node() == {0: 2 * PAGE, 1: PAGE}


def test_another_process_with_the_number_is_not_touched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BEOWIRE_STATE", str(tmp_path / "state"))
    plain = Mapping(0, PAGE, PAGE, decided=False, file=False, pages={0: 1})
    old = Process(os.getpid(), 12345, "gone", {}, [plain])
    monkeypatch.setattr(pages, "where", lambda _, some: [0] * len(some))
    monkeypatch.setattr(pages, "move", lambda *_: pytest.fail("moved"))
    with pytest.raises(BeowireError, match="has just ended"):
        mover.move(old, 1, 1 << 20, Journal(old.pid, old.start))


def test_the_journal_is_read_as_far_as_it_was_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BEOWIRE_STATE", str(tmp_path / "state"))
    journal = Journal(7, 8)
    journal.add([0, PAGE, 3 * PAGE, 4 * PAGE], [0, 0, 0, 2], PAGE)
    with journal.file.open("a") as stream:
        stream.write("[5, 6,")
    runs = [(0, 2, PAGE, 0), (3 * PAGE, 1, PAGE, 0), (4 * PAGE, 1, PAGE, 2)]
    assert list(Journal(7, 8).read()) == runs


def test_pages_are_asked_for_by_their_addresses() -> None:
    if (node := pages.where(os.getpid(), [0])[0]) != -errno.ENOENT:
        assert node == -errno.EFAULT
    with pytest.raises(BeowireError, match="There is no process"):
        pages.where(2**22 + 1, [0])
