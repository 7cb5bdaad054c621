#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What several paths together give in the simulator: `beowire-sim --report=stripe`, one seed.

The report repeats exactly, so the bounds are what is measured, less a little. The argument is the
simulator.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

SHARE = {
    ("equal", 1): 0.95,
    ("unequal", 1): 0.96,
    ("equal", 4): 0.99,
    ("unequal", 4): 0.99,
    ("detour", 4): 0.99,
    ("lossy", 4): 0.85,
}
"""Of the sum of what each path gives alone, by case and messages under way; at least."""
STALL_MS = {("equal", 0): 30, ("equal", 1): 10, ("unequal", 0): 140, ("unequal", 1): 2}
"""The longest time in which nothing arrives when one of two is cut, by case and path; at most."""
OTHER = 0.92
"""Of what the other path carries alone, while one is cut; at least."""
AFTER = 0.99
"""Of what there was before, when both are back; at least."""
MTUS = (1500, 9000)


def problems(rows: list[dict[str, Any]]) -> list[str]:
    """What is not as it must be."""
    found: list[str] = []
    alone: dict[tuple[str, int, int], float] = {}
    seen: set[tuple[str, int, str, int]] = set()
    for row in rows:
        case, mtu = row["case"], row["mtu"]
        name = f"{case}, MTU {mtu}"
        if "cut" not in row:
            seen.add((case, mtu, "in flight", row["in_flight"]))
            alone[case, mtu, 0] = row["second_mbit"]
            alone[case, mtu, 1] = row["first_mbit"]
            least = SHARE[case, row["in_flight"]]
            if row["share"] < least:
                found.append(
                    f"{name}, {row['in_flight']} under way: {row['share']} of the sum of both"
                    f" paths, less than {least}"
                )
            continue
        seen.add((case, mtu, "cut", row["cut"]))
        name += f", path {row['cut']} cut"
        if row["stall_ms"] > STALL_MS[case, row["cut"]]:
            found.append(
                f"{name}: nothing arrives for {row['stall_ms']} ms,"
                f" more than {STALL_MS[case, row['cut']]}"
            )
        other = row["cut_mbit"] / alone[case, mtu, row["cut"]]
        if other < OTHER:
            found.append(f"{name}: {other:.3f} of what the other gives, less than {OTHER}")
        after = row["after_mbit"] / row["before_mbit"]
        if after < AFTER:
            found.append(f"{name}: {after:.3f} of the rate before after it, less than {AFTER}")
    wanted = {(case, mtu, "in flight", depth) for case, depth in SHARE for mtu in MTUS}
    wanted |= {(case, mtu, "cut", path) for case, path in STALL_MS for mtu in MTUS}
    found += [f"not measured: {missing}" for missing in sorted(wanted - seen)]
    return found


def main() -> int:
    """Measure and judge; the exit status."""
    call = [sys.argv[1], "--report=stripe", "--seeds", "1-1", "--json"]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    found = problems(json.loads(done.stdout))
    print("\n".join(found) if found else "all as it must be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
