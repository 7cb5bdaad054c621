# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What all tests in Python share: which of them run.

Tests marked `long` are left out (not skipped: nothing is wrong) unless BEOWIRE_TEST_LONG is set,
as ./beowire test --long does.
"""

import os
import signal

import pytest

# A shell's background jobs ignore Ctrl-C, and so would all that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("BEOWIRE_TEST_LONG"):
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
