# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What limits bulk over TCP between two nodes, and what lifting a limit brings.

Bulk is as fast as the narrowest of its limits: the line, a window per round trip for each buffer,
a limiter on a node. The line is what the best of bare frames and Beowire gets through: neither
passes TCP's windows nor a node's own queueing discipline. A fix lifts its own limit; what it
brings ends at the next one.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beowire.doctor.draws import between, estimate, of_rounds
from beowire.doctor.gain import HERE, THERE, Gain, Told, found_in, gained
from beowire.doctor.series import Series

if TYPE_CHECKING:
    from beowire.doctor.draws import Draws

_TCP_HEADER_BYTES = 52
"""IPv4, TCP and its time stamps (RFC 791, 9293, 7323)."""
_FRAME_BYTES = 38
"""Ethernet's header and check sum, preamble and gap (IEEE 802.3)."""
_BARE_HEADER_BYTES = 2
_UNSCALED_BYTES = 65535
_SHARE = (0.3, 1.0)
"""Of a buffer that holds payload: the kernel counts its own structures too, which depends on the
driver (half is supposed at first: TCP_DEFAULT_SCALING_RATIO in include/net/tcp.h)."""
_POSSIBLE = 1.15
"""A limit that may be so far above what was measured is still taken for the reason."""

_RMEM = "net.ipv4.tcp_rmem"
_WMEM = "net.ipv4.tcp_wmem"


@dataclass(frozen=True)
class _Limit:
    """Of bulk, in bytes a second."""

    check: str
    node: str
    now: "Draws"
    after: "Draws | None"
    """None: the fix takes the limit away."""
    how: str


def share_of_line(mtu_bytes: int) -> float:
    """TCP's payload in the bytes that a full frame takes on the wire."""
    return (mtu_bytes - _TCP_HEADER_BYTES) / (mtu_bytes + _FRAME_BYTES)


def line(series: Series, told: Told, *, back: bool = False) -> "Draws | None":
    """What TCP's payload could reach by what other transports did; at least what it reached."""
    import numpy as np

    bulk = bulk_rate(series, back)
    if bulk is None:
        return None
    found = [bulk]
    bare = (told.mtu_bytes - _TCP_HEADER_BYTES) / (told.mtu_bytes - _BARE_HEADER_BYTES)
    for transport, share in (("packet", bare), ("beowire", 1.0)):
        for wait in ("block", "spin"):
            rounds = _largest(series, transport, wait, back)
            if rounds:
                found.append(of_rounds(rounds) * share)
    result: Draws = np.max(found, axis=0)
    return result


def _largest(series: Series, transport: Any, wait: Any, back: bool) -> list[float]:
    keys = [
        key
        for key in series.of
        if (key.transport, key.mode, key.wait, key.back, key.buffer)
        == (transport, "bandwidth", wait, back, 0)
    ]
    return series.of[max(keys, key=lambda key: key.size)] if keys else []


def bulk_rate(series: Series, back: bool) -> "Draws | None":
    """TCP's payload in bytes a second, as it was measured; None: it was not."""
    rounds = _largest(series, "tcp", "block", back)
    return of_rounds(rounds) if rounds else None


def predict(series: Series, told: Told, size: int, back: bool) -> tuple[list[Gain], list[Gain]]:
    """What each fix brings, and all together; `size` is that of a short message, whose time both
    ways is the round trip."""
    import numpy as np

    bulk, top = bulk_rate(series, back), line(series, told, back=back)
    short = series.get("tcp", "latency", "block", size)
    if bulk is None or top is None or not short:
        return [], []
    round_trip = 2 * of_rounds(short)
    limits = _limits(told, bulk, top, round_trip, back)
    metric = "bulk back" if back else "bulk"
    sender = THERE if back else HERE
    gains = []
    for one in limits:
        rest = [top, *(each.now for each in limits if each is not one)]
        rest += [one.after] if one.after is not None else []
        after = np.maximum(np.min(rest, axis=0), bulk)
        gains.append(gained(one.check, one.node, metric, bulk, after, one.how, faster=True))
    jumbo = _jumbo(told, sender, bulk, top, metric)
    if not limits:
        return jumbo, []
    rest = [top, *(each.after for each in limits if each.after is not None)]
    whole = np.maximum(np.min(rest, axis=0), bulk)
    how = "all of them fixed: what the line, or the next limit, lets through"
    return [*gains, *jumbo], [gained("", "", metric, bulk, whole, how, faster=True)]


def _limits(
    told: Told, bulk: "Draws", top: "Draws", round_trip: "Draws", back: bool
) -> list[_Limit]:
    """The findings that may hold bulk back as it was measured."""
    sender, receiver = (THERE, HERE) if back else (HERE, THERE)
    windows = [
        _window("buffers.tcp_receive", receiver, _RMEM, 2, told, round_trip),
        _window("buffers.tcp_send", sender, _WMEM, 2, told, round_trip),
        _fixed_buffer(receiver, told, round_trip),
        *(_unscaled(node, receiver, told, round_trip) for node in (HERE, THERE)),
    ]
    found = [each for each in windows if each is not None and _may_hold(each.now, bulk)]
    shaped = found_in(told, sender, "qdisc.shaping") is not None
    if shaped and not found and float(top[0]) > _POSSIBLE * float(bulk[0]):
        how = "the node's own limiter, which bare frames and Beowire do not pass"
        found.append(_Limit("qdisc.shaping", sender, bulk, None, how))
    return found


def _may_hold(now: "Draws", bulk: "Draws") -> bool:
    """The lowest that the limit may be is not above what was measured."""
    return estimate(now).low <= _POSSIBLE * float(bulk[0])


def _new_value(finding: dict[str, Any], setting: str, position: int) -> int | None:
    for change in finding.get("changes", ()):
        if change["setting"] == setting:
            return int(change["new"].split()[position])
    return None


def _window(
    check: str, node: str, setting: str, position: int, told: Told, round_trip: "Draws"
) -> _Limit | None:
    finding = found_in(told, node, check)
    fields = told.buffers.get(node, {}).get(setting)
    if finding is None or fields is None:
        return None
    share = between(*_SHARE, salt=len(check))
    new = _new_value(finding, setting, position)
    after = None if new is None else new * share / round_trip
    how = f"{setting} holds {fields[position]:,} bytes, of which a part is sent in a round trip"
    return _Limit(check, node, fields[position] * share / round_trip, after, how)


def _fixed_buffer(node: str, told: Told, round_trip: "Draws") -> _Limit | None:
    finding = found_in(told, node, "tcp.moderate_rcvbuf")
    fields = told.buffers.get(node, {}).get(_RMEM)
    if finding is None or fields is None:
        return None
    share = between(*_SHARE, salt=3)
    how = f"the receive buffer stays at its first {fields[1]:,} bytes"
    now, after = (fields[position] * share / round_trip for position in (1, 2))
    return _Limit("tcp.moderate_rcvbuf", node, now, after, how)


def _unscaled(node: str, receiver: str, told: Told, round_trip: "Draws") -> _Limit | None:
    if found_in(told, node, "tcp.window_scaling") is None:
        return None
    fields = told.buffers.get(receiver, {}).get(_RMEM)
    after = None if fields is None else fields[2] * between(*_SHARE, salt=5) / round_trip
    how = "a window of 65,535 bytes at most is sent in a round trip"
    now = _UNSCALED_BYTES * between(*_SHARE, salt=7) / round_trip
    return _Limit("tcp.window_scaling", node, now, after, how)


def _jumbo(told: Told, sender: str, bulk: "Draws", top: "Draws", metric: str) -> list[Gain]:
    """Longer frames carry more beside the same headers, where the line is full."""
    finding = found_in(told, sender, "link.mtu")
    changes = finding["changes"] if finding else ()
    new = max((int(each["new"]) for each in changes), default=0)
    if new <= told.mtu_bytes or float(bulk[0]) * _POSSIBLE < float(top[0]):
        return []
    after = bulk * (share_of_line(new) / share_of_line(told.mtu_bytes))
    how = "fewer headers on a full line; on both nodes and the switches between"
    return [gained("link.mtu", sender, metric, bulk, after, how, faster=True)]
