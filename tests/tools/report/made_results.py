# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files of results, as commands would have written them."""

import json
from pathlib import Path
from typing import Any

from beowire.bench.matrix.store import FORMAT, WRITER

SIZES = (8, 64, 1024, 8192, 65536, 1 << 20)
_ROUNDS = (0.98, 1.0, 1.01, 1.02, 0.99)


def matrix(
    factor: float = 1.0,
    links: tuple[str, ...] = ("packet", "udp"),
    kernel: str = "6.1",
    sizes: tuple[int, ...] = SIZES,
) -> dict[str, Any]:
    """A matrix of latencies: those of Beowire are half of TCP's."""
    cells = []
    for number, link in enumerate(links):
        for size in sizes:
            ours = [factor * (10 + number + size / 1000) * each for each in _ROUNDS]
            values = {"beowire": ours, "native": [2 * each for each in ours]}
            cells.append(
                {
                    "figure": "latency",
                    **{"bytes": size, "link": link, "mtu": 1500, "mpi": "openmpi"},
                    **{"unit": "us", "lower_is_better": True, "values": values},
                    **{"ratio": 0.5, "low": 0.45, "high": 0.56},
                }
            )
    setting = {"kernel": kernel, "cores": 2}
    return {"writer": WRITER, "format": FORMAT, "setting": setting, "cells": cells}


def written(file: Path, told: Any) -> Path:
    """The file, with that in it."""
    file.write_text(told if isinstance(told, str) else json.dumps(told))
    return file
