# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel that looks for defects finds those that are planted in a module, and no other."""

import re
from pathlib import Path

import pytest
import vm_checkout
from beowire.errors import BeowireError
from beowire.vm import coverage, debug, machine

pytestmark = pytest.mark.long  # building the kernel takes most of an hour, once

DEFECTS = {
    "a write behind an object": (
        "volatile char *p = kmalloc(24, GFP_KERNEL); p[sum(24, 1)] = 1; kfree((void *)p);",
        "KASAN: slab-out-of-bounds",
    ),
    "a read of a freed object": (
        "volatile char *p = kmalloc(24, GFP_KERNEL); kfree((void *)p); (void)p[sum(1, 1)];",
        "KASAN: (slab-)?use-after-free",
    ),
    "a leak": (
        "for (int i = 0; i < 10; i++) *(long *)kmalloc(200, GFP_KERNEL) = sum(i, i);",
        "unreferenced object",
    ),
    "a sleep in atomic context": (
        "preempt_disable(); msleep(sum(1, 1)); preempt_enable();",
        "BUG: (scheduling while atomic|sleeping function)",
    ),
    "locks in two orders": (
        "static DEFINE_SPINLOCK(a); static DEFINE_SPINLOCK(b);"
        "spin_lock(&a); spin_lock(&b); spin_unlock(&b); spin_unlock(&a);"
        "spin_lock(&b); spin_lock(&a); spin_unlock(&a); spin_unlock(&b);",
        "possible circular locking",
    ),
}
INCLUDES = "#include <linux/delay.h>\n#include <linux/slab.h>\n#include <linux/spinlock.h>\n"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    try:
        debug.find()
    except BeowireError as error:
        pytest.skip(f"no such kernel for guests: {error}")
    return vm_checkout.make(tmp_path / "checkout", monkeypatch)


def run(*words: str, coverage: Path | None = None) -> machine.Outcome:
    command = list(words) or ["true"]
    return machine.run(machine.Guest(command, debug.NAME, modules=True, coverage=coverage))


@pytest.mark.usefixtures("checkout")
def test_nothing_is_found_in_what_has_no_defect(tmp_path: Path) -> None:
    script = "! grep -q la57 /proc/cpuinfo && rmmod second first && cat /proc/lockdep_stats"
    counts = tmp_path / "counts"
    counts.mkdir()
    outcome = run("sh", "-c", script, coverage=counts)
    assert (outcome.exit_status, outcome.complaints) == (0, []), outcome.console
    lines = coverage.read(counts)
    assert lines[Path("engine/sum.c")].ran
    assert lines[Path("hosts/kernel/main.c")].ran


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found(defect: str, checkout: Path) -> None:
    code, report = DEFECTS[defect]
    main = checkout / "hosts/kernel/main.c"
    text = INCLUDES + main.read_text().replace("	return 0;", f"	{{ {code} }}\n	return 0;")
    main.write_text(text)
    outcome = run()
    found = "\n".join(outcome.complaints)
    assert re.search(report, found), outcome.console
