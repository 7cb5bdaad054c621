# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fixtures of the tests of beowired: two nodes, and a service on the first."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "user"))

import user_net
from served import Service, served


@pytest.fixture(scope="session", autouse=True)
def namespaces() -> None:
    """All tests here need namespaces of their own."""
    refusal = user_net.refusal()
    if refusal:
        pytest.skip(refusal)


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[str, str]]:
    """Two nodes and a cable with an MTU of 9000."""
    with user_net.pair() as made:
        yield made


@pytest.fixture
def service(nodes: tuple[str, str]) -> Iterator[Service]:
    """beowired on the first node, for users 65534 and 65533."""
    with served(nodes[0]) as made:
        yield made
