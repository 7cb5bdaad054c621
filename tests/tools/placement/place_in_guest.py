# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs in a guest of NUMA nodes with a processor each: a process fills memory on node 0, goes
to node 1, and `beowire place` brings its pages after it. Prints what came of it as JSON."""

import contextlib
import ctypes
import io
import json
import mmap
import os
import re
import signal
import threading
import time
from pathlib import Path

from beowire.errors import BeowireError
from beowire.placement import cli, mover
from beowire.placement.journal import Journal
from beowire.placement.process import look

AREA = 12 << 20
BOUND = 2 << 20
MBIND = 237
MPOL_BIND = 2


def address_of(area: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(area))


def subject(ready: int) -> None:
    """The process: plain memory and some that is bound to node 0, both filled there."""
    os.sched_setaffinity(0, {0})
    plain, bound = mmap.mmap(-1, AREA), mmap.mmap(-1, BOUND)
    at = address_of(bound)
    nodes = ctypes.c_ulong(1)
    done = ctypes.CDLL(None).syscall(
        MBIND, ctypes.c_void_p(at), ctypes.c_ulong(BOUND), MPOL_BIND, ctypes.byref(nodes), 8, 0
    )
    assert done == 0
    plain.write(b"p" * AREA)
    bound.write(b"b" * BOUND)
    os.sched_setaffinity(0, {1})
    os.write(ready, json.dumps([address_of(plain), at]).encode())
    signal.pause()


def pages(pid: int, address: int) -> dict[str, int]:
    """As the kernel tells of the mapping in which an address is."""
    found = ""
    for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
        if int(line.split()[0], 16) <= address:
            found = line
    return {node: int(count) for node, count in re.findall(r"\b(N\d+)=(\d+)", found)}


def told(pid: int, **options: bool | int) -> list[dict[str, object]]:
    """The objects that the command prints."""
    given: dict[str, object] = {
        "move": False, "watch": False, "dry_run": False, "rate": 64, "undo": False,
    }  # fmt: skip
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        cli.place(pid, **{**given, **options}, as_json=True)  # type: ignore[arg-type]
    decoder = json.JSONDecoder()
    text, found = said.getvalue(), []
    while text.strip():
        one, end = decoder.raw_decode(text)
        found.append(one)
        text = text[end:].lstrip()
    return found


def refused(pid: int) -> str:
    try:
        told(pid)
    except BeowireError as error:
        return str(error)
    return ""


def main() -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        subject(writing)
    plain, bound = json.loads(os.read(reading, 100))
    result: dict[str, object] = {"before": pages(pid, plain), "shown": told(pid)[0]}
    result["dry"] = told(pid, move=True, dry_run=True)[0]
    result["after dry"] = pages(pid, plain)
    process = look(pid)
    part = mover.move(process, 1, 1 << 20, Journal(pid, process.start))
    result["bounded"] = [part.moved, part.cursor != 0]
    result["moved"] = told(pid, move=True)[0]
    result["after"] = [pages(pid, plain), pages(pid, bound)]
    result["undone"] = told(pid, undo=True)[0]
    result["after undo"] = pages(pid, plain)
    result["no undo"] = ""
    try:
        told(pid, undo=True)
    except BeowireError as error:
        result["no undo"] = str(error)

    def end() -> None:
        while pages(pid, plain) != {"N1": AREA // mmap.PAGESIZE}:
            time.sleep(0.2)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    ending = threading.Thread(target=end)
    ending.start()
    result["watch"] = [each["moved_bytes"] for each in told(pid, watch=True, move=True, rate=8)]
    ending.join()
    result["gone"] = refused(pid)
    print(json.dumps(result))


main()
