# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The overlap of a transfer with computing, over the kernel module in a guest."""

import json
from pathlib import Path

import pytest
from beowire.bench import overlap
from beowire.errors import BeowireError
from beowire.vm import machine
from beowire_cli import beowire


def test_both_are_compared_with_the_longer_of_the_two() -> None:
    told = {
        "library": "x",
        "bytes": 7,
        "transfer_ns": [100, 200, 100],
        "compute_ns": [50, 100, 400],
        "both_ns": [120, 220, 440],
    }
    result = overlap.evaluate(told, "1gbit")
    assert (result.transfer_ns, result.compute_ns, result.both_ns) == (100, 100, 220)
    # The geometric mean of the rounds' ratios: 120/100, 220/200, 440/400.
    assert result.ratio.value == pytest.approx((1.2 * 1.1 * 1.1) ** (1 / 3))


def test_a_rate_that_is_none_is_refused() -> None:
    done = beowire("bench", "overlap", "--rate", "fast")
    assert done.status == 1
    assert "is no rate" in done.errors


@pytest.mark.long
def test_a_message_moves_while_its_sender_computes(tmp_path: Path) -> None:
    try:
        machine.find_kernel("")
    except BeowireError as error:
        pytest.skip(f"there are no guests here: {error}")
    file = tmp_path / "overlap.json"
    done = beowire("bench", "overlap", "--rounds", "5", "--json", str(file))
    assert done.status == 0, done.errors
    told = json.loads(file.read_text())
    # One after the other would be 1.9 and more.
    assert 0.7 < told["compute_ns"] / told["transfer_ns"] < 1.4
    assert told["ratio"]["value"] <= 1.1
