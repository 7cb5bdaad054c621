# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Work that many tests share and that is done once, even if it fails: a guest that does not come up
is not booted again for each of its tests."""

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def remembered(work: Callable[P, R]) -> Callable[P, R]:
    """As functools.cache(); an exception is remembered, too, and raised by each call."""

    @cache
    def attempt(*args: P.args, **kwargs: P.kwargs) -> tuple[R | None, Exception | None]:
        try:
            return work(*args, **kwargs), None
        except Exception as error:  # whatever it is, each caller is told
            return None, error

    @wraps(work)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        result, error = attempt(*args, **kwargs)
        if error is not None:
            raise error
        return result  # type: ignore[return-value]

    return told
