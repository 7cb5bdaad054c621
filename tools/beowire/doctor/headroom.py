# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How much faster a pair of nodes could be: what each finding costs, as far as a model can tell.

Bulk over TCP is as fast as the narrowest of its limits: the line, a window per round trip for each
buffer, a limiter on a node. The line is what the best of bare frames and Beowire gets through:
neither passes TCP's windows nor a node's own queueing discipline. A mend lifts its own limit; what
it brings ends at the next one. The time of a short message loses what the finding adds to it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from beowire.doctor.draws import Estimate, between, estimate, of_rounds
from beowire.doctor.series import WAITS, Series

if TYPE_CHECKING:
    from beowire.doctor.draws import Draws

HERE, THERE = "here", "there"

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
class Told:
    """What the probe needs to know of the two nodes."""

    mtu_bytes: int
    findings: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By HERE and THERE: the outcomes that the doctor there calls bad."""
    buffers: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """By HERE and THERE: the fields of tcp_rmem and tcp_wmem."""
    speed_bits: int = 0
    """Of this node's NIC; 0: not known, or a virtual interface, whose speed says nothing."""


@dataclass(frozen=True)
class Gain:
    """What mending a finding would bring, by the model."""

    check: str
    node: str
    """HERE or THERE."""
    metric: str
    """latency: a short message over TCP, blocking; bulk, bulk back: TCP from here, and to here."""
    before: Estimate
    after: Estimate
    """Seconds, or bytes in a second."""
    factor: Estimate
    """How many times faster."""
    how: str
    at_most: bool = False
    """The model knows a bound only."""

    def as_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("check", "node", "metric", "how")},
            "at_most": self.at_most,
            **{name: getattr(self, name).as_json() for name in ("before", "after", "factor")},
        }


@dataclass(frozen=True)
class Headroom:
    """All that can be told of a pair."""

    gains: list[Gain]
    together: list[Gain]
    """All findings of a metric mended; their check is empty."""
    hardware: list[Gain]
    """What the software between program and wire costs beside what the hardware did."""
    silent: list[tuple[str, str]]
    """Findings, with their node, that no model speaks of."""

    def as_json(self) -> dict[str, Any]:
        return {
            "gains": [each.as_json() for each in self.gains],
            "together": [each.as_json() for each in self.together],
            "hardware": [each.as_json() for each in self.hardware],
            "not_modelled": [{"check": check, "node": node} for check, node in self.silent],
        }


@dataclass(frozen=True)
class _Limit:
    """Of bulk, in bytes a second."""

    check: str
    node: str
    now: "Draws"
    after: "Draws | None"
    """None: the mend takes the limit away."""
    how: str


def share_of_line(mtu_bytes: int) -> float:
    """TCP's payload in the bytes that a full frame takes on the wire."""
    return (mtu_bytes - _TCP_HEADER_BYTES) / (mtu_bytes + _FRAME_BYTES)


def line(series: Series, told: Told, *, back: bool = False) -> "Draws | None":
    """What TCP's payload could reach by what other transports did; at least what it reached."""
    import numpy as np

    bulk = _bulk(series, back)
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


def _bulk(series: Series, back: bool) -> "Draws | None":
    rounds = _largest(series, "tcp", "block", back)
    return of_rounds(rounds) if rounds else None


def predict(series: Series, told: Told, size: int) -> Headroom:
    """All gains; `size` is that of a short message."""
    gains: list[Gain] = []
    together: list[Gain] = []
    for back in (False, True):
        alone, whole = _of_bulk(series, told, size, back)
        gains += alone
        together += whole
    gains += _of_latency(series, told, size)
    known = {(each.check, each.node) for each in gains} | set(_spoken_of(told))
    silent = [
        (each["check"], node)
        for node, outcomes in told.findings.items()
        for each in outcomes
        if (each["check"], node) not in known
    ]
    gains.sort(key=lambda each: -each.factor.value)
    return Headroom(gains, together, _of_hardware(series, told, size), silent)


# Bulk.


def _of_bulk(series: Series, told: Told, size: int, back: bool) -> tuple[list[Gain], list[Gain]]:
    import numpy as np

    bulk, top = _bulk(series, back), line(series, told, back=back)
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
        gains.append(_gain(one.check, one.node, metric, bulk, after, one.how, faster=True))
    jumbo = _jumbo(told, sender, bulk, top, metric)
    if not limits:
        return jumbo, []
    rest = [top, *(each.after for each in limits if each.after is not None)]
    whole = np.maximum(np.min(rest, axis=0), bulk)
    how = "all of them mended: what the line, or the next limit, lets through"
    return [*gains, *jumbo], [_gain("", "", metric, bulk, whole, how, faster=True)]


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
    shaped = _finding(told, sender, "qdisc.shaping") is not None
    if shaped and not found and float(top[0]) > _POSSIBLE * float(bulk[0]):
        how = "the node's own limiter, which bare frames and Beowire do not pass"
        found.append(_Limit("qdisc.shaping", sender, bulk, None, how))
    return found


def _may_hold(now: "Draws", bulk: "Draws") -> bool:
    """The lowest that the limit can be is not above what was measured."""
    import numpy as np

    return float(np.min(now)) <= _POSSIBLE * float(bulk[0])


def _finding(told: Told, node: str, check: str) -> dict[str, Any] | None:
    for each in told.findings.get(node, ()):
        if each["check"] == check:
            return each
    return None


def _new_value(finding: dict[str, Any], setting: str, position: int) -> int | None:
    for change in finding.get("changes", ()):
        if change["setting"] == setting:
            return int(change["new"].split()[position])
    return None


def _window(
    check: str, node: str, setting: str, position: int, told: Told, round_trip: "Draws"
) -> _Limit | None:
    finding = _finding(told, node, check)
    fields = told.buffers.get(node, {}).get(setting)
    if finding is None or fields is None:
        return None
    share = between(*_SHARE, salt=len(check))
    new = _new_value(finding, setting, position)
    after = None if new is None else new * share / round_trip
    how = f"{setting} holds {fields[position]:,} bytes, of which a part is sent in a round trip"
    return _Limit(check, node, fields[position] * share / round_trip, after, how)


def _fixed_buffer(node: str, told: Told, round_trip: "Draws") -> _Limit | None:
    finding = _finding(told, node, "tcp.moderate_rcvbuf")
    fields = told.buffers.get(node, {}).get(_RMEM)
    if finding is None or fields is None:
        return None
    share = between(*_SHARE, salt=3)
    how = f"the receive buffer stays at its first {fields[1]:,} bytes"
    now, after = (fields[position] * share / round_trip for position in (1, 2))
    return _Limit("tcp.moderate_rcvbuf", node, now, after, how)


def _unscaled(node: str, receiver: str, told: Told, round_trip: "Draws") -> _Limit | None:
    if _finding(told, node, "tcp.window_scaling") is None:
        return None
    fields = told.buffers.get(receiver, {}).get(_RMEM)
    after = None if fields is None else fields[2] * between(*_SHARE, salt=5) / round_trip
    how = "a window of 65,535 bytes at most is sent in a round trip"
    now = _UNSCALED_BYTES * between(*_SHARE, salt=7) / round_trip
    return _Limit("tcp.window_scaling", node, now, after, how)


def _jumbo(told: Told, sender: str, bulk: "Draws", top: "Draws", metric: str) -> list[Gain]:
    """Longer frames carry more beside the same headers, where the line is full."""
    finding = _finding(told, sender, "link.mtu")
    changes = finding["changes"] if finding else ()
    new = max((int(each["new"]) for each in changes), default=0)
    if new <= told.mtu_bytes or float(bulk[0]) * _POSSIBLE < float(top[0]):
        return []
    after = bulk * (share_of_line(new) / share_of_line(told.mtu_bytes))
    how = "fewer headers on a full line; on both nodes and the switches between"
    return [_gain("link.mtu", sender, metric, bulk, after, how, faster=True)]


# Short messages.


def _of_latency(series: Series, told: Told, size: int) -> list[Gain]:
    rounds = series.get("tcp", "latency", "block", size)
    if not rounds:
        return []
    now = of_rounds(rounds)
    models: tuple[Callable[..., list[Gain]], ...] = (_queued, _coalesced, _woken)
    return [gain for model in models for gain in model(series, told, size, now)]


def _queued(series: Series, told: Told, size: int, now: "Draws") -> list[Gain]:
    """A queueing discipline's delay: bare frames do not pass it. What TCP's calls take is theirs
    with or without it."""
    nodes = [node for node in (HERE, THERE) if _finding(told, node, "qdisc.shaping")]
    bare = series.get("packet", "latency", "block", size)
    calls = [series.get("tcp", mode, "block", size) for mode in ("send", "receive")]
    if len(nodes) != 1 or not bare or not all(calls):
        return []
    own = sum(of_rounds(each) for each in calls) * between(0, 1, salt=11)
    import numpy as np

    after = np.minimum(of_rounds(bare) + own, now)
    how = "messages wait in the node's own queueing discipline, which bare frames do not pass"
    return [_gain("qdisc.shaping", nodes[0], "latency", now, after, how)]


def _coalesced(series: Series, told: Told, size: int, now: "Draws") -> list[Gain]:
    del series, size
    import numpy as np

    gains = []
    for node in (HERE, THERE):
        finding = _finding(told, node, "coalescing.receive_short")
        changes = finding["changes"] if finding else ()
        for change in changes:
            saved_s = (int(change["old"]) - int(change["new"])) * 1e-6
            # A round trip has one receipt on this node; half of it is what is told.
            after = np.maximum(now - saved_s / 2 * between(0.5, 1, salt=13), 1e-7)
            how = f"each message waits up to {1e6 * saved_s:g} us for others on its receipt"
            name = "coalescing.receive_short"
            gains.append(_gain(name, node, "latency", now, after, how))
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
            if _finding(told, node, check):
                how = "of the wake-up, which blocking against spinning shows, the node's half"
                gains.append(_gain(check, node, "latency", now, now - saved, how, at_most=True))
    return gains


def _spoken_of(told: Told) -> list[tuple[str, str]]:
    """Findings that a model knows, also where it says that they cost nothing here."""
    names = {
        "buffers.tcp_receive",
        "buffers.tcp_send",
        "tcp.moderate_rcvbuf",
        "tcp.window_scaling",
        "qdisc.shaping",
        "coalescing.receive_short",
        "link.mtu",
    }
    return [(name, node) for node in told.findings for name in names]


# The hardware.


def _of_hardware(series: Series, told: Told, size: int) -> list[Gain]:
    rounds = series.get("tcp", "latency", "block", size)
    bare = [series.get("packet", "latency", wait, size) for wait in WAITS]
    found = [of_rounds(each) for each in bare if each]
    gains = []
    if rounds and found:
        how = "a bare frame, the receiver spinning or blocking"
        best = min(found, key=lambda each: float(each[0]))
        gains.append(_gain("", "", "latency", of_rounds(rounds), best, how))
    for back in (False, True):
        bulk, top = _bulk(series, back), line(series, told, back=back)
        if bulk is not None and top is not None:
            how = "the best of TCP, bare frames and Beowire"
            metric = "bulk back" if back else "bulk"
            gains.append(_gain("", "", metric, bulk, top, how, faster=True))
        if bulk is not None and told.speed_bits:
            full = 0 * bulk + told.speed_bits / 8 * share_of_line(told.mtu_bytes)
            how = f"full frames at the NIC's {told.speed_bits / 1e9:g} Gbit/s"
            metric = "bulk back" if back else "bulk"
            gains.append(_gain("", "", metric, bulk, full, how, faster=True, at_most=True))
    return gains


def _gain(
    check: str,
    node: str,
    metric: str,
    before: "Draws",
    after: "Draws",
    how: str,
    *,
    faster: bool = False,
    at_most: bool = False,
) -> Gain:
    factor = after / before if faster else before / after
    return Gain(
        check, node, metric, estimate(before), estimate(after), estimate(factor), how, at_most
    )
