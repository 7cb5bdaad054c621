# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Frames of a link, as tcpdump sees them on the switch's side of the cable.

A sender that bypasses its queueing discipline is not seen by taps on its own side; on the switch's
all frames are: what the node sends before the link's model, what it receives behind it.
"""

import os
from pathlib import Path
from typing import NoReturn

from beowire import places
from beowire.errors import BeowireError
from beowire.lab import place
from beowire.lab.lab import Lab
from beowire.topology.topology import Link


def find_link(lab: Lab, word: str) -> Link:
    """The link that a word stands for: its name, or a node with one link or more, of which it is
    the first."""
    link = lab.topology.link(word)
    if link is None and word in lab.host_names():
        link = lab.topology.links_of(word)[0]
    return link or lab.link(word)


def command(lab: Lab, word: str, output: Path | None, arguments: list[str]) -> list[str]:
    """The command that captures there; it runs until it is interrupted."""
    if lab.mode == "loopback":
        raise BeowireError(
            f"Lab {lab.name} runs on loopback addresses; it has no switch to capture at.",
            "Use a lab of namespaces: run as root where the kernel allows them.",
        )
    link = find_link(lab, word)
    where = place.place(lab.topology, link)
    words = [
        places.program("nsenter", "util-linux"),
        f"--net={lab.namespace_path(where.namespace)}",
        places.program("tcpdump", "tcpdump"),
        *("--interface", link.name, "-n"),
    ]
    if output is not None:
        places.check_output(output)
        # As root: the file belongs to whoever captures, in a directory of theirs.
        words += ["-U", "-Z", "root", "-w", str(output)]
    return [*words, *arguments]


def become(lab: Lab, word: str, output: Path | None, arguments: list[str]) -> NoReturn:
    """Turns this process into the capture."""
    words = command(lab, word, output, arguments)
    os.execv(words[0], words)
