# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fixtures of the tests of libbeowire: two nodes, and two endpoints on them."""

from collections.abc import Iterator

import pytest
from user_actor import Couple, couple
from user_fixtures import namespaces, nodes

__all__ = ["namespaces", "nodes"]


@pytest.fixture(params=["packet", "udp", "local"])
def each_link(request: pytest.FixtureRequest, nodes: tuple[str, str]) -> Iterator[Couple]:
    """Two endpoints that speak over each link in turn."""
    link = str(request.param)
    where = (nodes[0], nodes[0]) if link == "local" else nodes
    with couple(where, BEOWIRE_LINKS=link) as made:
        yield made
