# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fixtures of the tests of libbeowire: two nodes, and two endpoints on them."""

from collections.abc import Iterator

import pytest
import user_net
from user_actor import Couple, couple


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


@pytest.fixture(params=["packet", "udp", "local"])
def each_link(request: pytest.FixtureRequest, nodes: tuple[str, str]) -> Iterator[Couple]:
    """Two endpoints that speak over each link in turn."""
    link = str(request.param)
    where = (nodes[0], nodes[0]) if link == "local" else nodes
    with couple(where, BEOWIRE_LINKS=link) as made:
        yield made
