# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Numbers of things in plain English."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """1 finding, 2 findings; a noun whose plural is not by -s brings it."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
