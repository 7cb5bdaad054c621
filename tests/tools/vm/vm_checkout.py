# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A small checkout with kernel modules of a few lines, built as the project's own are."""

import shutil
from pathlib import Path

import pytest
from beowire import places

KBUILD = """\
obj-m := first.o second.o
first-y := main.o engine/sum.o
second-y := other.o
ccflags-y := -I$(src)/engine -I$(src)
"""
HEAD = """\
#include <linux/module.h>
#include "sum.h"
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("test");
"""
FILES = {
    "hosts/kernel/Kbuild": KBUILD,
    "hosts/kernel/main.c": HEAD
    + """
#include <linux/crc32c.h>
EXPORT_SYMBOL_GPL(sum);
static int __init start(void)
{
	pr_info("first: %d %x\\n", sum(3, 4), crc32c(0, "x", 1));
	return 0;
}
static void __exit stop(void)
{
}
module_init(start);
module_exit(stop);
""",
    "hosts/kernel/other.c": HEAD
    + """
static int __init start(void)
{
	pr_info("second: %d\\n", sum(5, 6));
	return 0;
}
static void __exit stop(void)
{
}
module_init(start);
module_exit(stop);
""",
    "engine/sum.h": "int sum(int a, int b);\n",
    "engine/sum.c": '#include "sum.h"\nint sum(int a, int b)\n{\n\treturn a + b;\n}\n',
}

OWN = (
    *("hosts/kernel/Makefile", "hosts/kernel/dkms.conf", "meson.build"),
    *("tools/guest/debug.config", "tools/guest/kcsan.config"),
)
"""What it has in common with the project's checkout."""


def make(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes it and lets the tools take it for the project's."""
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    own = places.root()
    (root / "tools/guest").mkdir(parents=True)
    for name in OWN:
        shutil.copy(own / name, root / name)
    (root / "build/tools/guest").mkdir(parents=True)
    for name in ("guest-init", "tsc-rate"):
        (root / "build/tools/guest" / name).symlink_to(places.product(f"tools/guest/{name}"))
    monkeypatch.setenv("BEOWIRE_ROOT", str(root))
    monkeypatch.setenv("BEOWIRE_BUILD", str(root / "build"))
    return root
