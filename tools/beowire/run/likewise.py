# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What keeps two nodes of a job apart, or stops one of them, is one fault however many notice it.

With one node of another key each other node says so, in words of its own: both names are in it.
The first such line of a kind is told in full, the rest at the end in one line each kind.
"""

import re
from dataclasses import dataclass, field

_KINDS = {
    b"other keys": rb"beowire: \w+: (.+) and (.+) do not have the same cluster key, ",
    b"one of two encrypts": rb"beowire: \w+: (.+) encrypts, and (.+) does not, ",
    b"no version in common": rb"beowire: \w+: (.+) speaks versions \d.* and (.+) versions \d",
    b"stood still, or a clock jumped": (
        rb"beowire: (.+): \w+: this process stood still, or the clock jumped, by \d+ ms at least"
        rb"(?: while it waited for (.+))?; "
    ),
}
_NAMED = 16
"""Pairs of nodes that are told of a kind; how many more there are is told of the others."""


@dataclass
class Likewise:
    """Of which nodes each kind of fault was told."""

    _told: dict[bytes, list[bytes]] = field(default_factory=dict)

    def is_known(self, line: bytes) -> bool:
        """Whether a fault of this line's kind was told before. It is told from now on."""
        for kind, pattern in _KINDS.items():
            if found := re.match(pattern, line):
                told = self._told.setdefault(kind, [])
                nodes = b" and ".join(name for name in found.groups() if name)
                if nodes not in told:
                    told.append(nodes)
                return told[0] != nodes or len(told) > 1
        return False

    def rest(self) -> bytes:
        """One line for each kind of which more nodes than the first ones told."""
        lines = b""
        for kind, told in self._told.items():
            named, more = told[1 : 1 + _NAMED], len(told) - 1 - _NAMED
            if named:
                others = b", and %d more" % more if more > 0 else b""
                lines += b"beowire: the same (%s) of %s%s\n" % (kind, b", ".join(named), others)
        return lines
