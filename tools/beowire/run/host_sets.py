# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sets of hosts as people and programs write them: A,B or node[1-4]. How many they name is counted
before any of them is made: a few bytes can name more than memory holds."""

import itertools
import math
import re

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from beowire.errors import BeowireError

HOSTS_MAX = 65536
"""Of all sets together."""
_FOLDED = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"\s*(\d{1,18})(?:\s*-\s*(\d{1,18})\s*(?:/\s*\d{1,18}\s*)?)?\s*", re.ASCII)
_OPERATORS = re.compile(r"[,!&^]")


def expand(texts: list[str], *, groups: bool) -> list[str]:
    """The hosts of these sets. `groups`: whether @NAME and patterns are looked up, for which the
    administrator's commands are executed: not for texts of others."""
    _bound(texts)
    resolver = None if groups else RESOLVER_NOGROUP
    try:
        return [str(each) for text in texts for each in NodeSet(text, resolver=resolver)]
    except (NodeSetException, ValueError) as error:
        raise _unreadable(str(error)) from error


def _unreadable(why: str) -> BeowireError:
    return BeowireError(f"These hosts cannot be read: {why}.", "Write A,B or node[1-4].")


def _bound(texts: list[str]) -> None:
    """An error if these sets name too many, where each that is taken from another counts, too."""
    counts = itertools.chain.from_iterable(map(_counts, texts))
    if any(total > HOSTS_MAX for total in itertools.accumulate(counts)):
        raise BeowireError(f"These are more than {HOSTS_MAX} hosts.", "Name fewer.")


def _counts(text: str) -> list[int]:
    """How many hosts each part of a set names at most."""
    ranges = _FOLDED.findall(text)
    plain = _FOLDED.sub("[]", text)
    if plain.count("[") != len(ranges) or plain.count("]") != len(ranges):
        raise _unreadable(f"a bracket of {text[:80]!r} has no other one")
    left = iter(map(_in_ranges, ranges))
    return [math.prod(itertools.islice(left, part.count("[]"))) for part in _OPERATORS.split(plain)]


def _in_ranges(text: str) -> int:
    """How many numbers 1-4,7 names, at most; steps are left out."""
    count = 0
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        if found is None:
            raise _unreadable(f"{part[:80]!r} is no range of numbers")
        count += abs(int(found[2] or found[1]) - int(found[1])) + 1
    return count
