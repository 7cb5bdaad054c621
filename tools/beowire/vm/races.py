# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a kernel with KCSAN says of data races, on its console."""

import re

_STAMP = re.compile(r"^(?:<\d+>)?\[ *\d+\.\d+\](?:\[.*?\])? ?", re.MULTILINE)
_REPORT = re.compile(r"^=+\n(BUG: KCSAN: .*?)(?:^=+$|\Z)", re.MULTILINE | re.DOTALL)
_OF_A_MODULE = re.compile(r"^ \S+\+0x[0-9a-f]+/0x[0-9a-f]+ \[\w+\]", re.MULTILINE)


def split(console: str) -> tuple[list[str], str]:
    """The reports that name a module, and the console without any: of the kernel's own races there
    are many, which its authors know."""
    plain = _STAMP.sub("", console)
    found = [each[1].strip() for each in _REPORT.finditer(plain)]
    return [each for each in found if _OF_A_MODULE.search(each)], _REPORT.sub("", plain)
