# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Names and numbers as people read them."""

from typing import Any

from rich.text import Text

from beowire.terminal import printable


def called(endpoint: dict[str, Any]) -> str:
    """An endpoint's name for people."""
    return f"{endpoint['host']}:{endpoint['pid'] or '?'}"


def amount(value: float, unit: str = "") -> str:
    """Three digits and a prefix: 1.23 M."""
    for prefix, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}".strip()


def trip(ns: int) -> str:
    """A round trip; - if it was not measured."""
    if not ns:
        return "-"
    return f"{ns / 1e6:.3g} ms" if ns >= 1_000_000 else f"{ns / 1e3:.3g} us"


def age(seconds: float | None) -> str:
    """How long ago something was; - for never."""
    if seconds is None:
        return "-"
    if seconds < 1:
        return "now"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def plain(text: str) -> Text:
    """Text of others, which commands nothing: neither the terminal nor the table's library."""
    return Text(printable(text))
