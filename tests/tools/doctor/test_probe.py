# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A probe of a pair of nodes: what it measures, what it foretells, what trials of mends keep."""

from collections.abc import Iterator

import beowire_cli
import pair_faults
import pytest
from beowire import lab
from pair_faults import FAULTS, PairFault

pytestmark = pytest.mark.skipif(
    bool(beowire_cli.NO_NAMESPACES), reason=f"namespaces: {beowire_cli.NO_NAMESPACES}"
)

_LOOSE = 0.35
"""A loaded machine emulates the line late; docs/labbook.md has the errors of a quiet one."""


@pytest.fixture(scope="module")
def line() -> Iterator[lab.Lab]:
    with pair_faults.made(beowire_cli.fresh_name()) as found:
        yield found


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.check)
def test_what_a_mend_brings_is_foretold(line: lab.Lab, fault: PairFault) -> None:
    found = pair_faults.foretell(line, fault, 3)
    print(f"fault={fault.check} {found} error={found.error:+.3f}")
    assert found.brought > 2
    assert abs(found.error) < _LOOSE
