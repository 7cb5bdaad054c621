# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The whole demonstration, as a newcomer runs it."""

import json
from itertools import product
from pathlib import Path

import pytest
from beowire.demo import comparison
from beowire_cli import beowire, no_pair


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
def test_the_demonstration(tmp_path: Path) -> None:
    figures = tmp_path / "figures"
    done = beowire("demo", "--json", str(figures))
    assert done.status == 0, done.errors
    assert done.output.count("Beowire, ") >= comparison.FRAMES_SHOWN  # as tshark names a frame
    for shown in ("What carried the messages", "computed identical results", "Rank 2 was killed"):
        assert shown in done.output
    found = json.loads(figures.read_text())
    cells = {(each["figure"], each["link"], each["bytes"]) for each in found["cells"]}
    links = ("raw", "udp") if found["lab"]["mode"] != "loopback" else ("udp",)
    assert cells == set(product(comparison.MATRIX.figures, links, comparison.MATRIX.sizes))
    for each in found["cells"]:
        told = f"{each['ratio']:.2f} {each['verdict']}"
        assert told in done.output, each
