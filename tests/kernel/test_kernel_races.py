# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""No data race in the module: its tests that make traffic, under the kernel that looks for races,
on two processors. Its watching makes everything slow: what counts is what that kernel says. That
it would say something the races show that are planted in mutants.toml (test_kernel_mutants.py)."""

from pathlib import Path

import pytest
from beowire import places
from beowire.vm import debug
from test_kernel_module import GUEST_S, LIMIT_S, SLOWER, Run, run

pytestmark = pytest.mark.long  # building that kernel takes long, once

PROGRAMS = (
    *("test_crowds", "test_connecting", "test_parting", "test_blocking", "test_messages"),
    *("test_senders", "test_connected", "test_limits", "test_options", "test_listing"),
    *(
        "test_keys",
        "test_encryption",
        "test_pages",
        "test_accounts",
        "test_ahead",
        "test_strangers",
    ),
    *("test_taking_back", "test_refusing", "test_questions", "test_races 1000"),
    *("test_random 60 1", "server/test_server {server}"),
)


def under_kcsan() -> Run:
    server = places.product("hosts/kernel/server/beowire-server")
    commands = tuple(each.format(server=server) for each in PROGRAMS)
    return run(debug.RACES, commands, LIMIT_S * SLOWER, GUEST_S * SLOWER)


def test_nothing_races() -> None:
    assert under_kcsan().complaints == []


@pytest.mark.parametrize("command", PROGRAMS)
def test_the_programs_ran(command: str) -> None:
    """Some tests may fail that count on time; all have come to an end."""
    program = Path(command.split()[0]).name
    cases = [each for name, each in under_kcsan().cases.items() if name.startswith(f"{program}: ")]
    assert cases, under_kcsan().errors[program]
