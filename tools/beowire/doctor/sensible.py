# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Whether what a node told is an examination as report.as_json() makes it.

A node that is asked may be anybody's by now: names and kinds are checked before anything is counted
with, shown, or compared with what others told.
"""

import re
from collections.abc import Callable
from typing import Any

from beowire.doctor.uniformity import WEIGHTS

_DEPTH_MAX = 16
_HALF_A_PAIR = re.compile(r"[\ud800-\udfff]")
"""JSON can name half a character of UTF-16 (RFC 8259, section 8.2), which nobody can print."""


def _text(value: Any) -> bool:
    return isinstance(value, str) and _HALF_A_PAIR.search(value) is None


def _has_texts(value: Any, names: str) -> bool:
    """Whether it is an object that has texts of these names."""
    return isinstance(value, dict) and all(_text(value.get(name)) for name in names.split())


def _list(value: Any, check: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(check, value))


def _texts_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_text, (*value, *value.values())))


def _interface(value: Any) -> bool:
    return _has_texts(value, "hardware") and _list(value.get("addresses"), _text)


def _outcome(value: Any) -> bool:
    return _has_texts(value, "check interface state read") and (
        value["state"] != "bad" or _finding(value)
    )


def _finding(value: dict[str, Any]) -> bool:
    return (
        _has_texts(value, "good why fix advice")
        and value.get("weight") in WEIGHTS
        and _list(value.get("changes"), lambda change: _has_texts(change, "command"))
    )


def _shallow(value: Any, levels: int = _DEPTH_MAX) -> bool:
    """Whether nothing in it is nested deeper than people's tools can follow."""
    if not isinstance(value, dict | list):
        return True
    inside = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_shallow(each, levels - 1) for each in inside)


def sensible(told: Any) -> bool:
    """Whether all is there that is needed of a node, of the right kind."""
    return (
        _shallow(told)
        and isinstance(told, dict)
        and _texts_by_name(told.get("facts"))
        and _texts_by_name(told.get("settings", {}))
        and _list(told.get("interfaces", []), _interface)
        and _list(told.get("troubles"), _text)
        and _list(told.get("outcomes"), _outcome)
    )
