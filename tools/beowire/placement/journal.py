# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The earlier map of a process's pages: what was moved, and from where, so that it can be undone.

Each batch is on disk before it is moved. A kill at any point leaves at most entries of pages that
did not move, and these are where undoing leaves them.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from beowire import places, private_dir
from beowire.errors import BeowireError
from beowire.placement.process import started

_ENTRIES = 1_000_000
_LINE = 200


class Journal:
    """Runs of pages: address, number, bytes of each, node where they lay."""

    def __init__(self, pid: int, start: int) -> None:
        self.file = _place() / f"{pid}-{start}"
        self._entries = sum(1 for _ in self.read()) if self.file.exists() else 0

    def add(self, addresses: list[int], nodes: list[int], page_bytes: int) -> None:
        """Keeps where these pages lie now."""
        runs = list(_runs(addresses, nodes, page_bytes))
        self._entries += len(runs)
        if self._entries > _ENTRIES:
            raise BeowireError(
                f"{self.file} has {_ENTRIES} entries: more moves could not be undone.",
                "Undo them (--undo), or remove the file.",
            )
        private_dir.make(self.file.parent)
        with self.file.open("a") as stream:
            for run in runs:
                stream.write(json.dumps(run) + "\n")
            stream.flush()
            os.fdatasync(stream.fileno())

    def read(self) -> Iterator[tuple[int, int, int, int]]:
        """All runs in their order; a last line that was cut off is left out."""
        with self.file.open() as stream:
            for line in stream:
                try:
                    address, count, page_bytes, node = json.loads(line[:_LINE])
                except (ValueError, TypeError):
                    continue
                yield int(address), int(count), int(page_bytes), int(node)

    def end(self) -> None:
        self.file.unlink(missing_ok=True)


def _place() -> Path:
    return places.make_state_dir() / "place"


def _runs(addresses: list[int], nodes: list[int], page_bytes: int) -> Iterator[list[int]]:
    first = 0
    for i in range(1, len(addresses) + 1):
        follows = i < len(addresses) and addresses[i] == addresses[i - 1] + page_bytes
        if not follows or nodes[i] != nodes[first]:
            yield [addresses[first], i - first, page_bytes, nodes[first]]
            first = i


def remove_old() -> None:
    """Removes those of processes that have ended."""
    directory = _place()
    if not directory.is_dir():
        return
    for file in directory.iterdir():
        pid, _, start = file.name.partition("-")
        if pid.isdigit() and str(started(int(pid))) != start:
            file.unlink(missing_ok=True)
