# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fixtures of tests that need two nodes; who needs them imports them in conftest.py."""

from collections.abc import Iterator

import pytest
import user_net


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
