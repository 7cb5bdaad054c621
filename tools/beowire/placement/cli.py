# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire place`."""

import sys
import time
from typing import Annotated, Any

import typer

from beowire import places
from beowire.errors import BeowireError
from beowire.placement import mover
from beowire.placement.journal import Journal, remove_old
from beowire.placement.machine import listed
from beowire.placement.process import Process, has_memory, look, nodes_here, started
from beowire.terminal import note, out, printable

_PAUSE_S = 1.0
_MIB = 1 << 20


def place(
    pid: Annotated[int, typer.Option("--pid", min=1, help="The process.")],
    move: Annotated[
        bool, typer.Option("--move", help="Move its pages to the node where its threads run.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Again every second, until Ctrl-C or its end.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what --move would do, and do nothing.")
    ] = False,
    rate: Annotated[int, typer.Option(min=1, help="Move so many MiB in a second at most.")] = 256,
    undo: Annotated[bool, typer.Option("--undo", help="Move back all that was moved.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Show on which NUMA nodes a process runs and has its memory; bring both together."""
    if undo and (move or watch or dry_run):
        raise BeowireError("--undo does that alone.", "Leave the other options out.")
    remove_old()
    if undo:
        _undo(pid, as_json)
    elif watch:
        _watch(pid, move and not dry_run, rate * _MIB, as_json)
    else:
        process = look(pid)
        aim = mover.target(process, nodes_here())
        moved = None
        if move and not dry_run and aim.node is not None:
            moved = _move_all(process, aim.node, rate * _MIB)
            process = look(pid)
        _show(process, aim, moved, as_json)


def _move_all(process: Process, node: int, rate_bytes: int) -> mover.Outcome:
    """Pass after pass, none longer than a second's worth."""
    journal = Journal(process.pid, process.start)
    whole = mover.Outcome()
    while True:
        began = time.monotonic()
        part = mover.move(process, node, rate_bytes, journal, whole.cursor)
        whole.moved += part.moved
        whole.kept += part.kept
        whole.cursor = part.cursor
        if not part.cursor:
            return whole
        time.sleep(max(0.0, part.moved / rate_bytes * _PAUSE_S - (time.monotonic() - began)))


def _watch(pid: int, move: bool, rate_bytes: int, as_json: bool) -> None:
    """A target counts once two looks in a row agree, so that pages do not follow each step of the
    scheduler's."""
    nodes = nodes_here()
    process = look(pid)
    before: Process | None = None
    last: int | None = None
    cursor = 0
    try:
        while True:
            began = time.monotonic()
            aim = mover.target(process, nodes, before)
            moved = None
            if move and aim.node is not None and aim.node == last:
                journal = Journal(pid, process.start)
                moved = mover.move(process, aim.node, rate_bytes, journal, cursor)
                cursor = moved.cursor
            _show(process, aim, moved, as_json)
            before, last = process, aim.node
            time.sleep(max(0.0, _PAUSE_S - (time.monotonic() - began)))
            process = look(pid)
            if process.start != before.start:
                break
    except KeyboardInterrupt:
        return
    except BeowireError:
        if started(pid) == process.start and has_memory(pid):
            raise
    note(f"process {pid} has ended")


def _undo(pid: int, as_json: bool) -> None:
    process = look(pid)
    journal = Journal(pid, process.start)
    if not journal.file.exists():
        raise BeowireError(
            f"Nothing of process {pid} was moved that could be moved back.",
            f"What is moved by --move is kept in {journal.file}.",
        )
    done = mover.undo(process, journal)
    process = look(pid)
    _show(process, mover.target(process, nodes_here()), done, as_json)


def _told(process: Process, aim: mover.Target, done: mover.Outcome | None) -> dict[str, Any]:
    node = aim.node
    away = [] if node is None else mover.remote(process, node)
    movable = sum(
        mapping.bytes_on(each) for mapping in away for each in mapping.pages if each != node
    )
    sums = process.bytes_by_node()
    return {
        "pid": process.pid,
        "name": process.name,
        "processors": sorted({thread.processor for thread in process.threads.values()}),
        "threads": len(process.threads),
        "time_by_node": aim.shares,
        "bytes_by_node": sums,
        "target": node,
        "why": aim.why,
        "remote_bytes": None if node is None else sum(sums.values()) - sums.get(node, 0),
        "movable_bytes": movable,
        "moved_bytes": done.moved if done else 0,
        "kept_bytes": done.kept if done else 0,
    }


def _show(process: Process, aim: mover.Target, done: mover.Outcome | None, as_json: bool) -> None:
    told = _told(process, aim, done)
    if as_json:
        sys.stdout.write(places.json_text(told))
        sys.stdout.flush()
        return
    print_line = out().print
    print_line(
        f"process {process.pid} ({printable(process.name)}): {told['threads']} threads, last on "
        f"processors {listed(told['processors'])}"
    )
    for node, count in told["bytes_by_node"].items():
        share = aim.shares.get(node, 0)
        print_line(f"  node {node}: {count / _MIB:.1f} MiB, {share:.0%} of the threads' time")
    if aim.node is None:
        print_line(f"  nothing is to be moved: {aim.why}")
    else:
        print_line(
            f"  {told['remote_bytes'] / _MIB:.1f} MiB are remote from node {aim.node} ({aim.why}); "
            f"{told['movable_bytes'] / _MIB:.1f} MiB of them under no policy of their own"
        )
    if done:
        print_line(
            f"  {done.moved / _MIB:.1f} MiB were moved; "
            f"{done.kept / _MIB:.1f} MiB the kernel left where they were"
        )
