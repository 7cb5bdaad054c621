# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What adds to the time of a short message over TCP, and what is left of it without that."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from beowire.doctor.draws import between, of_rounds
from beowire.doctor.gain import HERE, THERE, Gain, Told, found_in, gained
from beowire.doctor.series import Series

if TYPE_CHECKING:
    from beowire.doctor.draws import Draws


def predict(series: Series, told: Told, size: int) -> list[Gain]:
    """What each fix brings to messages of this size."""
    rounds = series.get("tcp", "latency", "block", size)
    if not rounds:
        return []
    now = of_rounds(rounds)
    models: tuple[Callable[..., list[Gain]], ...] = (_queued, _coalesced, _woken)
    return [gain for model in models for gain in model(series, told, size, now)]


def _queued(series: Series, told: Told, size: int, now: "Draws") -> list[Gain]:
    """A queueing discipline's delay: bare frames do not pass it. What TCP's calls take is theirs
    with or without it."""
    nodes = [node for node in (HERE, THERE) if found_in(told, node, "qdisc.shaping")]
    bare = series.get("packet", "latency", "block", size)
    calls = [series.get("tcp", mode, "block", size) for mode in ("send", "receive")]
    if len(nodes) != 1 or not bare or not all(calls):
        return []
    own = sum(of_rounds(each) for each in calls) * between(0, 1, salt=11)
    import numpy as np

    after = np.minimum(of_rounds(bare) + own, now)
    how = "messages wait in the node's own queueing discipline, which bare frames do not pass"
    return [gained("qdisc.shaping", nodes[0], "latency", now, after, how)]


def _coalesced(series: Series, told: Told, size: int, now: "Draws") -> list[Gain]:
    del series, size
    import numpy as np

    gains = []
    for node in (HERE, THERE):
        finding = found_in(told, node, "coalescing.receive_short")
        changes = finding["changes"] if finding else ()
        for change in changes:
            saved_s = (int(change["old"]) - int(change["new"])) * 1e-6
            # A round trip has one receipt on this node; half of it is what is told.
            after = np.maximum(now - saved_s / 2 * between(0.5, 1, salt=13), 1e-7)
            how = f"each message waits up to {1e6 * saved_s:g} us for others on its receipt"
            name = "coalescing.receive_short"
            gains.append(gained(name, node, "latency", now, after, how))
    return gains


def _woken(series: Series, told: Told, size: int, now: "Draws") -> list[Gain]:
    """Busy polling and light sleep spare at most what waking costs both nodes."""
    spinning = series.get("tcp", "latency", "spin", size)
    if not spinning:
        return []
    import numpy as np

    saved = np.maximum(now - of_rounds(spinning), 0) / 2
    gains = []
    for node in (HERE, THERE):
        for check in ("napi.busy_read", "cpu.sleep"):
            if found_in(told, node, check):
                how = "of the wake-up, which blocking against spinning shows, the node's half"
                gains.append(gained(check, node, "latency", now, now - saved, how, at_most=True))
    return gains
