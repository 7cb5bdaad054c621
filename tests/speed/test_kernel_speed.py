# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Instructions that the kernel module takes for a message, with all that a system call and a veth
add: a guard of speed that noise does not touch.

One guest, which counts instructions, measures all cases. Half the median of the round trips counts:
a tick of the guest's clock falls into some of them. More than 2 % above the budget in budgets.toml
fails. A new budget is written as for user space: test_speed.py.
"""

import json
import statistics

import budgets
import pytest
from beowire import places
from beowire.bench import kernel
from beowire.errors import BeowireError
from beowire.vm import counted, machine
from remembered import remembered

LONG = 1 << 20
CASES = [(mtu_bytes, size) for size in (8, 4096, LONG) for mtu_bytes in (1500, 9000)]
"""Long ones last: what they leave to be done falls into the first trips of the next case."""
LIMIT_S = 600


def case(mtu_bytes: int, message_bytes: int) -> str:
    """As text for the program. A long message needs a thread at each end: its send waits."""
    few = "wait=block,trips=7,warmup=3" if message_bytes == LONG else "wait=one,trips=101"
    return f"transport=rdm,bytes={message_bytes},mtu={mtu_bytes},{few}"


@remembered
def measured() -> tuple[str, list[int]]:
    """The series of the guest's kernel ("6.1"), and instructions for one message, sent and
    received, of each case."""
    try:
        stock = machine.find_kernel("")
    except BeowireError as error:
        pytest.skip(f"there are no guests here: {error}")
    series = ".".join(stock.release.split(".")[:2])
    guest = machine.Guest(
        [str(places.product(kernel.PROGRAM)), "--rounds", "1", *(case(*c) for c in CASES)],
        cpus=1,
        memory_mb=512,
        limit_s=LIMIT_S,
        load=["veth"],
        modules=True,
        icount=True,
        # Where a program's buffer lies decides whether it gets huge pages, whose parts are found at
        # once: 2.8 % less for a long message.
        boot="transparent_hugepage=never",
    )
    told = [json.loads(line) for line in counted.run(guest).splitlines()]
    trips = [
        [value for value, times in each["whole"] for _ in range(times)]
        for each in told
        if "case" in each
    ]
    return series, [int(statistics.median(each)) // 2 for each in trips]


@pytest.mark.parametrize(("mtu_bytes", "message_bytes"), CASES)
def test_a_message_costs_no_more_than_its_budget(mtu_bytes: int, message_bytes: int) -> None:
    series, found_all = measured()
    found = found_all[CASES.index((mtu_bytes, message_bytes))]
    name = f"kernel, MTU {mtu_bytes}, {message_bytes} B"
    owner = f"{budgets.compiler()}, Linux {series}"
    print(f"{name}: {found}")
    budgets.judge(owner, name, found, budgets.limit(owner, name))
