# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What tests share is done once, also if it fails."""

import pytest
from remembered import remembered


def test_work_is_done_once_for_each_argument_and_fails_for_all_that_ask() -> None:
    done = []

    @remembered
    def work(number: int) -> int:
        done.append(number)
        return 6 // number

    assert [work(2), work(3), work(2)] == [3, 2, 3]
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            work(0)
    assert done == [2, 3, 0]
