# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Why a job stands still: the likely cause, and what to do about it.

Causes are looked for in this order, as the first ones bring the later ones about: a rank that is
stopped also is silent, and one that is gone also sends nothing.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from beowire import installed
from beowire.status import figures
from beowire.status.job import Member
from beowire.status.waits import Wait, cycle, end_of_chain
from beowire.status.words import age

_MISSING_MAX = 64
"""Ranks that are counted as missing: their number is what some process says."""
_SILENT_S = 2.0
_PAIR_S = 4.0
"""The same of two nodes of more, as others soon notice which of them it is."""
_SILENT_STARVED_S = 10.0
"""The same of one that stands in line for a processor for most of the time."""
_WAITS_S = 4.0
"""What is waited for so long may be why nothing goes on; silence would be known by then."""
_LOSSY_SHARE = 0.01
_STARVED_SHARE = 0.8
_RUNNING_SHARE = 0.05
_CROWDED_SHARE = 0.5
"""Who waits so much of the time for a processor may be late with answers."""
_FAULTS = 50.0
"""Pages a second that a process has to wait for, from which on it is swapping."""


@dataclass(frozen=True)
class Conclusion:
    """A cause by its name for machines, in words, and its fix."""

    cause: str
    says: str
    fix: str


@dataclass(frozen=True)
class Case:
    """All that is known."""

    members: list[Member]
    waits: list[Wait]
    unreached: dict[str, str]


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _stopped(case: Case) -> Conclusion | None:
    those = [each for each in case.members if each.stopped]
    if not those:
        return None
    what = _and([f"{each.name} (process {each.pid} on {each.host})" for each in those[:4]])
    first = those[0]
    assert first.process is not None
    if first.process["frozen"]:
        fix = "Its control group is frozen: whoever suspended the job or container can resume it."
    elif first.process["state"] == "t":
        fix = "A debugger holds it: let it go on there, or detach."
    else:
        fix = f"Let it go on: kill -CONT {first.pid} on {first.host}"
    verb = "is" if len(those) == 1 else "are"
    return Conclusion("stopped", f"{what} {verb} stopped, and others wait for it.", fix)


def _living(case: Case) -> list[Member]:
    return [each for each in case.members if each.process and each.process["state"] != "Z"]


def _peers(member: Member) -> Iterator[dict[str, Any]]:
    """Those that its program knows. Whoever else makes contact is no rank for that: neither his
    silence nor his end says anything of the job."""
    for endpoint in member.endpoints:
        yield from (peer for peer in endpoint["peers"] if peer["known"])


def _lost(case: Case) -> set[str]:
    """Peers that somebody living has lost, by identity."""
    return {
        peer["identity"]
        for each in _living(case)
        for peer in _peers(each)
        if peer["status"] in (-111, -104, -110)
    }


def _strangers(case: Case) -> dict[str, str]:
    """Peers that nobody has lost, and that no node told of: those are on nodes that were not asked.
    Their hosts by their identities."""
    known = {endpoint["identity"] for each in case.members for endpoint in each.endpoints}
    lost = _lost(case)
    return {
        peer["identity"]: peer["host"] or peer["name"]
        for each in _living(case)
        for peer in _peers(each)
        if not peer["status"] and peer["identity"] not in known | lost
    }


def _missing(case: Case) -> list[str]:
    """Ranks that no node told of. Only where all nodes were asked do they have to be somewhere."""
    sizes = {each.process["size"] for each in case.members if each.process} - {None}
    ranks = {each.rank for each in case.members if each.rank is not None}
    if len(sizes) != 1 or case.unreached or _strangers(case):
        return []
    those = (f"rank {n}" for n in range(sizes.pop()) if n not in ranks)
    return list(itertools.islice(those, _MISSING_MAX))


def _gone(case: Case) -> Conclusion | None:
    dead = [each.name for each in case.members if each.process and each.process["state"] == "Z"]
    lost = _lost(case)
    missing = _missing(case) if lost else []
    if not _living(case) or not (missing or (dead and (lost or case.waits))):
        return None
    fix = "See what it said last; end the job, and start it again."
    if not dead and len(lost) < len(missing):
        return Conclusion(
            "gone",
            f"Of {_and(missing[:8])}, which are not found, {len(lost)} at least "
            f"{'is' if len(lost) == 1 else 'are'} gone, and others still run.",
            fix,
        )
    those = dead + missing
    verb = "is" if len(those) == 1 else "are"
    return Conclusion("gone", f"{_and(those[:8])} {verb} gone, and others still run.", fix)


@dataclass(frozen=True)
class _Silence:
    """One hears nothing of a host, for so long."""

    member: Member
    host: str
    late: float
    sure: bool
    """That it is not only late."""


def _silences(case: Case) -> list[_Silence]:
    found = []
    crowded = {
        endpoint["identity"]
        for member in case.members
        if member.process and member.process["starved"] >= _CROWDED_SHARE
        for endpoint in member.endpoints
    }
    for member in case.members:
        for peer in _peers(member):
            late = figures.silence(peer)
            least = _SILENT_STARVED_S if peer["identity"] in crowded else _SILENT_S
            if late is not None:
                host = peer["host"] or peer["name"]
                found.append(_Silence(member, host, late, late >= least))
    return found


def _in_common(those: list[_Silence], hosts: set[str]) -> str | None:
    """The one host of more than two that has to do with all of these."""
    touched = Counter(host for each in those for host in {each.member.host, each.host})
    every = [host for host, n in touched.items() if n == len(those)]
    return every[0] if len(every) == 1 and len(hosts) > 2 else None


def _cut_off(case: Case) -> Conclusion | None:
    found = _silences(case)
    sure = [each for each in found if each.sure]
    if not sure:
        return None
    longest = max(each.late for each in sure)
    touched = {host for each in sure for host in {each.member.host, each.host}}
    hosts = {each.host for each in case.members} | touched
    where = _in_common(found, hosts) or _in_common(sure, hosts)
    if where is not None:
        return Conclusion(
            "cut-off",
            f"{where} is cut off: it has answered nothing for {age(longest)}.",
            f"See whether {where} lives, and its cable, switch port and firewall; "
            f"{installed.COMMAND} doctor on it looks at the interface.",
        )
    if len(hosts) > 2 and longest < _PAIR_S:
        return None
    names = _and(sorted(touched)[:6])
    return Conclusion(
        "cut-off",
        f"{names} have not heard one another for {age(longest)}.",
        "See the link between them: cables, switch, firewall; "
        f"{installed.COMMAND} doctor probe measures it.",
    )


def _lossy(case: Case) -> Conclusion | None:
    lost: Counter[str] = Counter()
    sent = again = 0
    pairs = 0
    for member in case.members:
        for peer in _peers(member):
            bad = peer["losses"]
            enough = bad >= figures.LOSSY_PACKETS
            if enough and bad >= _LOSSY_SHARE * peer["tx_packets"]:
                pairs += 1
                again += bad
                sent += peer["tx_packets"]
                for host in {member.host, peer["host"] or peer["name"]}:
                    lost[host] += 1
    if not pairs:
        return None
    every = [host for host, n in lost.items() if n == pairs]
    hosts = {each.host for each in case.members}
    alone = len(every) == 1 and len(hosts) > 2
    where = every[0] if alone else _and(sorted(lost)[:6])
    what = f"The link of {where}" if alone else f"The way between {where}"
    return Conclusion(
        "lossy",
        f"{what} loses packets: {100 * again / max(1, sent):.2g} % of them.",
        f"See error counters of the interfaces and the switch: {installed.COMMAND} doctor there, "
        f"{installed.COMMAND} doctor probe between two nodes.",
    )


def _deadlock(case: Case) -> Conclusion | None:
    way = cycle(case.waits, case.members)
    if not way or min(each.since_s for each in way) < _WAITS_S:
        return None
    names = _and([case.members[each.who].name for each in way[:6]])
    if all(each.kind == "send" for each in way):
        return Conclusion(
            "sends",
            f"{names} each send to the next one and wait until it receives, which none does.",
            "The program relies on sends that return before they are received, which long ones "
            "do not: use MPI_Sendrecv or MPI_Isend, or let every second rank receive first.",
        )
    said = "; ".join(f"{case.members[each.who].name} {each.says(case.members)}" for each in way[:4])
    return Conclusion(
        "deadlock",
        f"{names} wait for one another: {said}.",
        "See the order of sends and receives in the program, and their tags and communicators.",
    )


def _receive(case: Case) -> Conclusion | None:
    last = end_of_chain(case.waits)
    if last is None or last.since_s < _WAITS_S:
        return None
    if cycle(case.waits, case.members):  # not as long yet as a deadlock is told of
        return None
    assert last.whom is not None
    who, whom = case.members[last.who], case.members[last.whom]
    if whom.calls:
        doing = f"{whom.name} is in MPI and waits for nobody by name"
    else:
        doing = f"{whom.name} is {whom.doing()} ({whom.state})"
    wait = f"{who.name} {last.says(case.members)} since {age(last.since_s)}"
    cause = "receive" if last.kind == "receive" else "not-received"
    return Conclusion(
        cause,
        f"{wait}, and {doing}.",
        f"See what {whom.name} does: gdb -p {whom.pid} on {whom.host}. If it is in its place, "
        "the message is sent to another rank, tag or communicator, or not at all.",
    )


def _swapping(case: Case) -> Conclusion | None:
    those = [
        each
        for each in case.members
        if each.process and each.process["swapped_bytes"] and each.process["faults"] > _FAULTS
    ]
    if not those:
        return None
    hosts = sorted({each.host for each in those})
    return Conclusion(
        "swapping",
        f"{_and([each.name for each in those[:6]])} on {_and(hosts[:6])} are swapping: "
        "the node has too little memory.",
        "Fewer ranks on the node, or smaller ones.",
    )


def _starved(case: Case) -> Conclusion | None:
    those = [
        each
        for each in case.members
        if each.process
        and each.process["starved"] >= _STARVED_SHARE
        and each.process["running"] <= _RUNNING_SHARE
    ]
    if not those:
        return None
    hosts = sorted({each.host for each in those})
    return Conclusion(
        "starved",
        f"{_and([each.name for each in those[:6]])} on {_and(hosts[:6])} get no processor: "
        "others have them all.",
        "Fewer processes there than cores, or another binding of ranks (--bind-to none).",
    )


_IN_ORDER = (_stopped, _gone, _cut_off)
_AT_REST = (_deadlock, _receive)
_IN_MOTION = (_lossy, _swapping, _starved)


def _moving(members: list[Member]) -> bool:
    return any(each.moves for each in members)


def _under_way(members: list[Member]) -> bool:
    """Whether data have been sent that are not acknowledged."""
    return any(peer["inflight"] for each in members for peer in _peers(each))


def conclude(case: Case) -> Conclusion:
    """The likely cause."""
    moving = _moving(case.members)
    late = sorted({each.host for each in _silences(case)})
    order: tuple[Callable[[Case], Conclusion | None], ...]
    if moving:
        order = (*_IN_ORDER, *_IN_MOTION)
    elif late:  # what is waited for may be lost: that says nothing about the program yet
        order = (*_IN_ORDER, _swapping, _starved)
    elif _under_way(case.members):
        order = (*_IN_ORDER, _lossy, *_AT_REST, *_IN_MOTION)
    else:
        order = (*_IN_ORDER, *_AT_REST, *_IN_MOTION)
    for rule in order:
        found = rule(case)
        if found is not None:
            return found
    if case.unreached:
        return Conclusion(
            "unreached",
            f"{_and(sorted(case.unreached)[:6])} cannot be asked: they may be what is wrong.",
            "See why: ssh there by hand.",
        )
    if not moving and (hosts := sorted(set(_strangers(case).values()))):
        return Conclusion(
            "unreached",
            f"Ranks on {_and(hosts[:6])} told nothing: they may be what is wrong.",
            "Name all nodes of the job (--hosts); ranks with BEOWIRE_STATUS=off are not seen.",
        )
    if late and not moving:
        return Conclusion(
            "unknown",
            f"Answers of {_and(late[:6])} are missing, but not for long: they may only be late.",
            "Look again in some seconds.",
        )
    if moving:
        return Conclusion("running", "The job exchanges messages: it does not hang.", "Wait.")
    outside = [each for each in case.members if not each.calls]
    if outside:
        return Conclusion(
            "computing",
            f"{_and([each.name for each in outside[:6]])} made no call of MPI lately, "
            "and nobody is known to wait: the program computes, or waits for something else.",
            f"See what one does: gdb -p {outside[0].pid} on {outside[0].host}",
        )
    return Conclusion(
        "unknown",
        "All ranks wait in MPI for messages of anybody, or for something that is not known here.",
        "See where they are: gdb -p PID on each.",
    )


def as_json(case: Case, said: Conclusion) -> dict[str, Any]:
    """The whole case for machines."""
    return {
        "members": [
            {
                "rank": each.rank,
                "node": each.host,
                "pid": each.pid,
                "state": each.process["state"] if each.process else None,
                "doing": each.doing(),
                "calls": each.calls,
                "moves": each.moves,
                "running": each.process["running"] if each.process else None,
                "starved": each.process["starved"] if each.process else None,
                "swapped_bytes": each.process["swapped_bytes"] if each.process else None,
            }
            for each in case.members
        ],
        "waits": [
            {
                "who": each.who,
                "whom": each.whom,
                "kind": each.kind,
                "since_s": each.since_s,
                "tag": each.tag,
            }
            for each in case.waits
        ],
        "unreached": case.unreached,
        "conclusion": {"cause": said.cause, "says": said.says, "fix": said.fix},
    }
