# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two nodes and a cable for tests of socket programs."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "user"))
import user_net
from sockets_net import Nodes


@pytest.fixture(scope="module")
def cable() -> Iterator[tuple[str, str]]:
    """Two nodes with an MTU of 9000."""
    refusal = user_net.refusal()
    if refusal:
        pytest.skip(refusal)
    with user_net.pair() as made:
        yield made


@pytest.fixture
def nodes(cable: tuple[str, str], tmp_path: Path) -> Nodes:
    """The same, with a directory of the test's own for what is counted."""
    return Nodes(*cable, tmp_path)
