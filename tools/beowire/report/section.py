# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A section of a report: what one file says, or two compared."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from beowire.chart import Chart
from beowire.page import Table


@dataclass
class Section:
    """In the order in which it is shown."""

    title: str
    facts: Sequence[tuple[str, Any]] = ()
    """How it came about."""
    remarks: list[str] = field(default_factory=list)
    """What readers must know before they believe the numbers."""
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
