# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""All entries, paper by paper, and which of them are asked for."""

from collections.abc import Sequence

from beowire.errors import BeowireError
from beowire.evidence.entry import Entry
from beowire.evidence.papers import distant, dlmc, mvs1000, numa, speedup, thesis

PAPERS = {
    "A": "Faster data transfer in Ethernet clusters (a thesis, 2018)",
    "B": "MPI over the data-link layer, DLMC (2012)",
    "C": "A virtual cluster of distant nodes",
    "D": "Inter-processor exchange in MVS-1000M/17 (2002)",
    "E": "Linux on a NUMA machine, the Elbrus-3S",
}

ENTRIES: tuple[Entry, ...] = (
    *speedup.ENTRIES,
    *thesis.ENTRIES,
    *dlmc.ENTRIES,
    *distant.ENTRIES,
    *mvs1000.ENTRIES,
    *numa.ENTRIES,
)

WRONG_USE = 2


def choose(words: Sequence[str]) -> list[Entry]:
    """The entries of these identifiers and labels, in their own order; all of them without any. A
    letter alone stands for a paper."""
    found = [each for each in ENTRIES if not words or any(_means(word, each) for word in words)]
    for word in words:
        if not any(_means(word, each) for each in ENTRIES):
            labels = dict.fromkeys(each.label for each in ENTRIES)
            raise BeowireError(
                f"--only {word}?",
                f"Give an identifier of --list, a paper ({', '.join(PAPERS)}), or a label: "
                f"{', '.join(labels)}.",
                WRONG_USE,
            )
    return found


def _means(word: str, entry: Entry) -> bool:
    return word in (entry.id, entry.label, entry.label[0])
