# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a node tells of its endpoints: read twice, so that there are rates. docs/status.md has the
form of it; what is added there later has new names."""

import pwd
import socket
import time
from pathlib import Path
from typing import Any

from beowire.status import boards, figures, kernel, layout, processes
from beowire.status.boards import Found

FORM = 1
_ENDPOINT_TOTALS = (
    "overruns",
    "send_errors",
    "retransmits",
    "losses",
    "probes",
    "spurious",
    "backoffs",
    "credit_stalls",
    "tx_messages",
    "rx_messages",
    "tx_pulls",
    "rx_pulls",
    "memory_bytes",
    "copied_bytes",
    "arriving_bytes",
    "receives",
    "unexpected",
    "unexpected_bytes",
)


def user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def own_network() -> int:
    """The network namespace that this runs in."""
    return Path("/proc/thread-self/ns/net").stat().st_ino


def _identity(found: Found) -> str:
    numbers = found.head.numbers
    return layout.identity(numbers["node"], numbers["engine"], numbers["incarnation"])


def _payload(sheet: dict[str, Any]) -> dict[str, Any]:
    told = {
        f"{key}_{name}": link[key]
        for key in ("tx_payload", "rx_payload")
        for name, link in sheet["links"].items()
    }
    for key in ("tx_payload", "rx_payload"):
        told[key] = sum(link[key] for link in sheet["links"].values())
    return {**sheet, **told}


def endpoint(before: Found | None, after: Found) -> dict[str, Any]:
    """One endpoint; `before` is an earlier reading, if there is one."""
    numbers, sheet = after.head.numbers, after.sheet
    earlier = before.sheet if before else None
    seconds = (sheet["at"] - earlier["at"]) / 1e9 if earlier else 0.0
    told: dict[str, Any] = {
        "identity": _identity(after),
        "host": after.head.host,
        "user": user(after.uid),
        "pid": after.pid,
        "program": after.head.program,
        "engine": numbers["engine"],
        "interfaces": after.head.interfaces,
        "links": layout.links(numbers["links"]),
        "keyed": bool(numbers["keyed"]),
        "asleep": sheet["asleep"],
        "drops": sheet["drops"],
        "by_link": sheet["links"],
    }
    told["peer_count"] = sheet["peers"]
    times = {"opened": numbers["opened"], "told": sheet["at"]}
    times |= {"called": sheet["rounds_at"], "active": sheet["handled_at"]}
    layout.ages(times, tuple(times), time.monotonic_ns())
    told |= times
    told |= {name: sheet[name] for name in _ENDPOINT_TOTALS}
    sheets = _payload(sheet), None if earlier is None else _payload(earlier)
    told["rates"] = figures.rates(sheets[1], sheets[0], figures.ENDPOINT_RATES, seconds)
    known = {each["identity"]: each for each in earlier["peer"]} if earlier else {}
    told["peers"] = [
        {
            **peer,
            "rates": figures.rates(known.get(peer["identity"]), peer, figures.PEER_RATES, seconds),
        }
        for peer in sheet["peer"]
    ]
    figures.share_out(told)
    told["waits"] = sheet["wait"]
    return told


def _ran(before: dict[str, Any] | None, after: dict[str, Any], seconds: float) -> dict[str, Any]:
    """A process, with the shares of the time between that it ran, and waited for a processor."""
    share = {"running": 0.0, "starved": 0.0, "faults": 0.0}
    if before is not None and seconds > 0:
        share["running"] = max(0.0, after["ran_s"] - before["ran_s"]) / seconds
        share["starved"] = max(0.0, after["waited_s"] - before["waited_s"]) / seconds
        share["faults"] = max(0, after["major_faults"] - before["major_faults"]) / seconds
    return {**after, **share}


def look(interval_s: float, network: int | None = None, ranks: bool = False) -> dict[str, Any]:
    """The endpoints of this node, of one network namespace if one is named; and on request the
    processes that launchers call ranks, with an endpoint or without."""
    first = {_identity(each): each for each in boards.find()}
    watched = _watched(list(first.values()), ranks)
    began = time.monotonic()
    earlier = {pid: processes.look(pid) for pid in watched}
    time.sleep(interval_s)
    second = [each for each in boards.find() if network in (None, each.head.numbers["network"])]
    watched |= _watched(second, ranks=False)
    seconds = time.monotonic() - began
    later = {pid: told for pid in watched if (told := processes.look(pid)) is not None}
    own = {each.pid for each in second}
    return {
        "form": FORM,
        "host": socket.gethostname(),
        "time": time.time(),
        "interval_s": seconds,
        "endpoints": [endpoint(first.get(_identity(each)), each) for each in second],
        "processes": {
            str(pid): _ran(earlier.get(pid), told, seconds)
            for pid, told in sorted(later.items())
            if network is None or pid in own or processes.network(pid) == network
        },
        "kernel": kernel.look(),
    }


def _watched(found: list[Found], ranks: bool) -> set[int]:
    pids = {each.pid for each in found if each.pid}
    return pids | processes.ranks() if ranks else pids
