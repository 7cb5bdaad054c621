# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""All checks. A new group is a module with CHECKS and a name in this list."""

import difflib

from beowire.doctor import (
    accounting,
    buffers,
    clock,
    coalescing,
    cpu,
    interrupts,
    kernel,
    limits,
    link,
    link_use,
    memory,
    napi,
    netfilter,
    offloads,
    qdisc,
    queues,
    rings,
    routing,
    tcp,
    ways,
)
from beowire.doctor.check import Check
from beowire.errors import BeowireError

_GROUPS = (
    link,
    link_use,
    rings,
    coalescing,
    queues,
    interrupts,
    offloads,
    napi,
    buffers,
    tcp,
    qdisc,
    routing,
    ways,
    netfilter,
    cpu,
    kernel,
    accounting,
    memory,
    limits,
    clock,
)

ALL: dict[str, Check] = {check.name: check for group in _GROUPS for check in group.CHECKS}
assert len(ALL) == sum(len(group.CHECKS) for group in _GROUPS), "two checks have one name"


def find(name: str) -> Check:
    """The check of that name, or an error with the ones that it may have been."""
    if name in ALL:
        return ALL[name]
    near = difflib.get_close_matches(name, ALL, n=3) or [each for each in ALL if name in each][:3]
    raise BeowireError(
        f"There is no check {name}.",
        f"Did you mean {' or '.join(near)}?" if near else "beowire doctor --list names them all.",
        code=2,
    )
