# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Who waits for whom in a job, as the endpoints of its processes know it."""

from dataclasses import dataclass

from beowire.status.job import Member

WAITS_S = 1.0
"""What is waited for less long is no wait yet."""
_TAG_MASK = 0x7FFF_FFFF
_COLLECTIVE = 0x8000_0000
"""Libraries number the steps of their collective operations by negative tags."""


@dataclass(frozen=True)
class Wait:
    """A member waits for another one, by index; `whom` None: for anybody."""

    who: int
    whom: int | None
    kind: str
    """receive: for a message of it; send: until it receives; credit: until it takes what it has;
    fetch: for data that it was asked for."""
    since_s: float
    tag: int | None = None
    count: int = 1

    def says(self, members: list[Member]) -> str:
        """This wait for people, behind the name of who waits."""
        other = "anybody" if self.whom is None else members[self.whom].name
        if self.kind == "receive":
            return f"waits for a message of {other}{self.of_tag()}"
        if self.kind == "send":
            return f"waits until {other} receives what it sends"
        if self.kind == "credit":
            return f"waits until {other} takes what it has got"
        return f"fetches data of {other}"

    def of_tag(self) -> str:
        if self.tag is None:
            return ""
        if self.tag & _COLLECTIVE:
            return " (a step of a collective operation)"
        return f" with tag {self.tag & _TAG_MASK}"


def _of_endpoint(who: int, endpoint: dict[str, object], places: dict[str, int]) -> list[Wait]:
    found: list[Wait] = []
    waits = endpoint["waits"]
    assert isinstance(waits, list)
    for each in waits:
        since = each["since_s"] or 0.0
        if each["kind"] != "receive" or since < WAITS_S:
            continue
        whom = places.get(each["peer"])
        if each["peer"] is not None and whom is None:
            continue  # of another job
        found.append(Wait(who, whom, "receive", since, each["tag"] if each["tagged"] else None))
    peers = endpoint["peers"]
    assert isinstance(peers, list)
    for peer in peers:
        whom = places.get(peer["identity"])
        if whom is None or peer["status"]:
            continue
        since = peer["exposed_since_s"] or 0.0
        if peer["exposed"] and since >= WAITS_S:
            found.append(Wait(who, whom, "send", since, count=peer["exposed"]))
        if peer["stalled"]:
            found.append(Wait(who, whom, "credit", WAITS_S))
        if peer["pulls"] and (peer["waiting_since_s"] or 0.0) >= WAITS_S:
            found.append(Wait(who, whom, "fetch", peer["waiting_since_s"]))
    return found


def waits(members: list[Member]) -> list[Wait]:
    """All waits of a job, those that last longest first."""
    places = {
        endpoint["identity"]: index
        for index, member in enumerate(members)
        for endpoint in member.endpoints
    }
    found = [
        wait
        for index, member in enumerate(members)
        for endpoint in member.endpoints
        for wait in _of_endpoint(index, endpoint, places)
    ]
    return sorted(found, key=lambda each: -each.since_s)


def cycle(found: list[Wait], members: list[Member]) -> list[Wait]:
    """Waits that go round: each one's goal waits in its turn. Who is not in a call may go on by
    himself, and is no part of one."""
    leaving: dict[int, list[Wait]] = {}
    for wait in found:
        if wait.whom is not None and wait.whom != wait.who and members[wait.who].calls:
            leaving.setdefault(wait.who, []).append(wait)
    for start in leaving:
        way = _back(start, leaving)
        if way:
            return way
    return []


def _back(start: int, leaving: dict[int, list[Wait]]) -> list[Wait]:
    """The shortest way from a member back to it."""
    come: dict[int, Wait] = {}
    line = [start]
    for at in line:
        for wait in leaving.get(at, []):
            assert wait.whom is not None
            if wait.whom == start:
                way = [wait]
                while way[0].who != start:
                    way.insert(0, come[way[0].who])
                return way
            if wait.whom not in come:
                come[wait.whom] = wait
                line.append(wait.whom)
    return []


def end_of_chain(found: list[Wait]) -> Wait | None:
    """The last wait of the chain that begins with the one that lasts longest: its goal waits for
    nobody that is known."""
    named = [each for each in found if each.whom is not None]
    if not named:
        return None
    at, seen = named[0], set()
    while at.whom not in seen:
        seen.add(at.whom)
        further = [each for each in named if each.who == at.whom]
        if not further:
            break
        at = further[0]
    return at
