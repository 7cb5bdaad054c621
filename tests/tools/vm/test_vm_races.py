# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel that looks for data races finds one that is planted in a module, and no other."""

from pathlib import Path

import pytest
import vm_checkout
from beowire.errors import BeowireError
from beowire.vm import debug, machine

REPORT = """\
[    9.1{mark}] ==================================================================
[    9.1{mark}] BUG: KCSAN: data-race in {one} / {other}
[    9.1{mark}]
[    9.1{mark}] write to 0xffff8880053d1a50 of 4 bytes by task 77 on cpu 0:
[    9.1{mark}]  {one}+0x1a/0x30{module}
[    9.1{mark}]  kthread+0x11/0x20
[    9.1{mark}]
[    9.1{mark}] Reported by Kernel Concurrency Sanitizer on:
[    9.1{mark}] CPU: 0 PID: 77 Comm: x Tainted: G           O      6.1.0 #1
[    9.1{mark}] ==================================================================
"""
KERNELS_OWN = REPORT.format(mark="00", one="tick", other="tock", module="")
MODULES = REPORT.format(mark="20", one="bwk_a", other="bwk_b", module=" [beowire]")

INCLUDES = "#include <linux/delay.h>\n#include <linux/kthread.h>\n#include <linux/sched/task.h>\n"
COUNT = """
static DEFINE_SPINLOCK(guard);
static int counted;
static int count(void *unused)
{
	unsigned long end = jiffies + 3 * HZ;

	while (time_before(jiffies, end)) {
		BEFORE
		counted++;
		AFTER
		cond_resched();
	}
	return 0;
}
static int __init start(void)
{
	struct task_struct *other = kthread_create(count, NULL, "other");

	if (IS_ERR(other))
		return PTR_ERR(other);
	get_task_struct(other);
	kthread_bind(other, 1);
	wake_up_process(other);
	count(NULL);
	kthread_stop(other);
	put_task_struct(other);
"""


def test_races_of_the_kernel_alone_are_no_complaints() -> None:
    console = f"{KERNELS_OWN}[ 9.3] fine\n{MODULES}[ 9.4] WARNING: x\n{KERNELS_OWN}"
    race, warning = machine.complaints(console)
    assert race.startswith("BUG: KCSAN: data-race in bwk_a / bwk_b\n")
    assert " bwk_a+0x1a/0x30 [beowire]\n" in race
    assert "WARNING: x" in warning


def test_a_report_that_breaks_off_is_a_complaint() -> None:
    begun = "\n".join(MODULES.splitlines()[:5])
    assert len(machine.complaints(f"{KERNELS_OWN}{begun}\n")) == 1


@pytest.mark.long  # building the kernel takes long, once
@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "planted"])
def test_a_planted_race_is_found(
    guarded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        debug.find(debug.RACES)
    except BeowireError as error:
        pytest.skip(f"no such kernel for guests: {error}")
    main = vm_checkout.make(tmp_path / "checkout", monkeypatch) / "hosts/kernel/main.c"
    code = COUNT.replace("AFTER", "spin_unlock(&guard);" if guarded else "")
    code = code.replace("BEFORE", "spin_lock(&guard);" if guarded else "(void)&guard;")
    text = main.read_text().replace("static int __init start(void)\n{\n", code)
    main.write_text(INCLUDES + text)
    outcome = machine.run(machine.Guest(["true"], debug.RACES, modules=True))
    if guarded:
        assert outcome.complaints == [], outcome.console
    else:
        assert any("data-race in count" in each for each in outcome.complaints), outcome.console
