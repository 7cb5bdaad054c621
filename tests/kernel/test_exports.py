# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel module uses nothing that only later updates of a kernel give to modules."""

import re

import pytest
from beowire import places

LATE = {"free_uid": "6.1.176, which Debian 12 has, does not export it; put_cred() of a cred does"}
"""Functions by name, and who lacks them. tests/package/test_unit_roots.py has DKMS link all there
is against the kernels of Debian's releases."""


@pytest.mark.parametrize("name", LATE)
def test_nothing_is_called_that_older_kernels_do_not_export(name: str) -> None:
    sources = sorted(places.source("hosts/kernel").glob("*.[ch]"))
    assert len(sources) > 20
    users = [each.name for each in sources if re.search(rf"\b{name}\(", each.read_text())]
    assert users == [], LATE[name]
