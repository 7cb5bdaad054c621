# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How a job says that it lost one of its ranks.

Whoever notices first speaks: the launcher that lost a child by a signal, or Beowire in a rank that
lost a peer. Only a line of theirs that names the right rank or host counts as a report.
"""

import re
from collections.abc import Iterable
from pathlib import Path

_LOST = re.compile(rb"beowire: .+ is gone \(.+\): operations with it end with an error")

LEFT = ".told"
"""How the names of files in BEOWIRE_STATS end that have such a line."""
_LONGEST = 4096  # bytes of a line


def tells_of_a_loss(line: bytes) -> bool:
    """Whether in this line Beowire says that a rank lost a peer."""
    return _LOST.fullmatch(line) is not None


def read_losses(directory: Path) -> bytes:
    """The lines on lost peers that a job's ranks left in BEOWIRE_STATS."""
    lines = b""
    for path in sorted(directory.glob(f"*{LEFT}")):
        with path.open("rb") as file:
            text = file.read(_LONGEST)
        if is_a_loss(text):
            lines += text.removesuffix(b"\n") + b"\n"
    return lines


def is_a_loss(text: bytes) -> bool:
    """Whether what is in such a file is a line on a lost peer."""
    return tells_of_a_loss(text.removesuffix(b"\n"))


def report_of_death(output: str, rank: int, hosts: Iterable[str]) -> str:
    """The line of a job's output that tells of the death by SIGKILL of this rank, which ran on a
    host of one of these names; empty where no line does. The launcher's goes first."""
    host = f"(?:{'|'.join(re.escape(each) for each in hosts)})"
    reports = (
        # Open MPI 4 and 5
        rf"\S+ noticed that process rank {rank} with PID \d+ on node {host} exited on signal 9\b.*",
        # MPICH, in two lines of a frame
        rf"PID \d+ RUNNING AT {host}\n=\s+(?:EXIT CODE: 9|KILLED BY SIGNAL: 9\b.*)$",
        rf"beowire: {host} \(node [0-9a-f]+\) engine \d+ is gone \(.+\): .*",
    )
    for report in reports:
        if found := re.search(report, output, re.MULTILINE):
            return re.sub(r"\s*\n=\s*", ", ", found[0]).strip()
    return ""
