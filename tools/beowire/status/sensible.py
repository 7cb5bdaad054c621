# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Whether what a node told is of the form that the rest of this package relies on.

A node that is asked may be anybody's by now: names, kinds and sizes are checked before anything is
counted with, shown, or joined with what others told.
"""

from collections.abc import Callable
from typing import Any

_NUMBER_MAX = 2.0**64
_DEPTH_MAX = 16
_TEXT_MAX = 4096
Check = Callable[[Any], bool]


def _number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -_NUMBER_MAX <= value <= _NUMBER_MAX  # false for what is no number
    )


def _whole(value: Any) -> bool:
    return isinstance(value, int) and _number(value)


def _yes(value: Any) -> bool:
    return isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _TEXT_MAX


def _perhaps(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_number, value.values()))


def _each(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _all(names: str, check: Check) -> dict[str, Check]:
    return dict.fromkeys(names.split(), check)


def _object(checks: dict[str, Check]) -> Check:
    def check(value: Any) -> bool:
        return isinstance(value, dict) and all(
            name in value and each(value[name]) for name, each in checks.items()
        )

    return check


def _identity(value: Any) -> bool:
    return _text(value) and value.count("/") == 2


_PEER = _object(
    {
        **_all("host link", _text),
        "identity": _identity,
        **_all("known stalled", _yes),
        **_all(
            "status srtt_ns inflight credit tx_packets rx_packets tx_messages rx_messages "
            "retransmits losses queued_bytes exposed exposed_bytes pulls pull_bytes",
            _whole,
        ),
        **_all("heard_s proven_s waiting_since_s exposed_since_s unanswered_s", _perhaps(_number)),
        "rates": _numbers,
    }
)
_WAIT = _object(
    {
        "kind": _text,
        "peer": _perhaps(_text),
        "since_s": _perhaps(_number),
        "tag": _whole,
        "tagged": _yes,
    }
)
_ENDPOINT = _object(
    {
        **_all("host user program", _text),
        "identity": _identity,
        **_all("keyed", _yes),
        **_all("pid engine asleep peer_count receives unexpected retransmits", _whole),
        **_all("called_s active_s", _perhaps(_number)),
        **_all("links interfaces", _texts),
        **_all("rates drops", _numbers),
        "peers": _each(_PEER),
        "waits": _each(_WAIT),
    }
)
_PROCESS = _object(
    {
        "state": lambda value: _text(value) and len(value) == 1,
        "frozen": _yes,
        **_all("swapped_bytes", _whole),
        **_all("running starved faults", _number),
        **_all("rank size", _perhaps(_whole)),
        **_all("job slurm", _perhaps(_text)),
    }
)


def _processes(value: Any) -> bool:
    return isinstance(value, dict) and all(
        pid.isascii() and pid.isdecimal() and len(pid) <= 10 and _PROCESS(process)
        for pid, process in value.items()
    )


def _shallow(value: Any) -> bool:
    """Whether nothing in it is nested deeper than people's tools can follow."""
    level = [value]
    for _ in range(_DEPTH_MAX):
        level = [
            each
            for holder in level
            if isinstance(holder, dict | list)
            for each in (holder.values() if isinstance(holder, dict) else holder)
        ]
    return not level


_NODE = _object({"endpoints": _each(_ENDPOINT), "processes": _processes, "kernel": lambda _: True})


def sensible(told: Any) -> bool:
    """Whether all is there that is needed of a node, of the right kind and size."""
    return _shallow(told) and _NODE(told)
