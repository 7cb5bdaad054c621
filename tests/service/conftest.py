# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fixtures of the tests of beowired: two nodes, and a service on the first."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "user"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "package"))

from served import Service, served
from user_fixtures import namespaces, nodes

__all__ = ["namespaces", "nodes"]


@pytest.fixture
def service(nodes: tuple[str, str]) -> Iterator[Service]:
    """beowired on the first node, for users 65534 and 65533."""
    with served(nodes[0]) as made:
        yield made
