# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A keeper of copies of text that serves while a test needs it."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from beowire.replicate import keeper


@contextlib.contextmanager
def serving() -> Iterator[tuple[keeper.Keeper, Path]]:
    """The keeper, and the path of its socket."""
    with keeper.keeping() as (kept, path):
        end, ended = os.pipe()
        thread = threading.Thread(target=kept.serve, args=(end,))
        thread.start()
        try:
            yield kept, path
        finally:
            os.close(ended)
            thread.join()
            os.close(end)
