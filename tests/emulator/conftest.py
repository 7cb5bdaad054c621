# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fixtures of the link emulator's tests: two nodes with the emulator's namespace between them."""

from collections.abc import Iterator

import link_net
import pytest


@pytest.fixture(scope="session", autouse=True)
def namespaces() -> None:
    """All tests here need namespaces of their own."""
    refusal = link_net.refusal()
    if refusal:
        pytest.skip(refusal)


@pytest.fixture(scope="module")
def net() -> Iterator[link_net.Net]:
    """Two nodes whose cables take jumbo frames, for all tests of a module."""
    with link_net.network() as made:
        yield made


@pytest.fixture
def own_net() -> Iterator[link_net.Net]:
    """The same for one test, which may break it."""
    with link_net.network() as made:
        yield made
