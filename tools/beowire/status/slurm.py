# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A job of Slurm as slurmctld knows it: whose it is, and on which nodes.

A process may write what it likes into its environment; slurmctld is believed before that.
"""

import os
import re
import shutil
from dataclasses import dataclass

from beowire.run.answer import TooMuchError, execute
from beowire.run.cluster import Cluster

_BYTES_MAX = 1 << 20  # that Slurm may tell of one job
_LIMIT_S = 30.0
_FORM = "%A %U %N"
"""Of squeue(1): the job's number, its user's number, its nodes: no word that a user chooses."""
_LINE = re.compile(r"(\d{1,10}) +(\d{1,10}) +(\S{1,65536})")


@dataclass(frozen=True)
class Known:
    """What slurmctld says of a job that has nodes."""

    number: int
    uid: int
    nodes: str
    """As Slurm writes sets: node[1-4]."""


def ask(number: int, where: Cluster | None) -> Known | None:
    """The job of that number; None: it has no nodes, there is no Slurm, or it does not answer. Of a
    lab its own Slurm is asked."""
    head: list[str] = []
    if where is not None and where.lab is not None:
        if not where.lab.slurm:
            return None
        head = where.head
    if shutil.which("squeue") is None:
        return None
    words = [*head, "squeue", "--noheader", f"--jobs={number}", f"--format={_FORM}"]
    try:
        status, answer, _ = execute(words, dict(os.environ), _LIMIT_S, _BYTES_MAX)
    except (OSError, TimeoutError, TooMuchError):
        return None
    return None if status else read(number, answer.decode(errors="replace"))


def read(number: int, told: str) -> Known | None:
    """The same, in the lines that squeue prints; of an array each element is one."""
    for line in told.splitlines():
        found = _LINE.fullmatch(line.strip())
        if found and int(found[1]) == number:
            return Known(number, int(found[2]), found[3])
    return None
