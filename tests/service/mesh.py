# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Peers on two nodes, each of which knows all others: messages that are checked byte by byte, and
what the survivors are told when some of them are killed."""

import random
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field

from served import USER, Service, client
from user_actor import ACKED, Actor, Event

DEAD_S = 15
"""After which a peer that answers nothing is given up."""
BUSY_S = 60
"""More than what is meant to be at once takes on a busy machine."""
LENGTHS = (0, 1, 300, 5_000, 60_000, 200_000, 700_000, 2_000_000)
NAMES = ("message", "pulled", "send", "sent", "down")


@dataclass(eq=False)
class Member:
    """One of the peers."""

    actor: Actor
    side: int
    stack: ExitStack
    addr: str
    numbers: dict["Member", int] = field(default_factory=dict)
    forgiven: set[int] = field(default_factory=set)
    """Messages of others who were killed: they may have come or not."""


@dataclass
class Flight:
    """A message under way."""

    sender: Member
    receiver: Member
    tag: int
    length: int


class Mesh:
    """All of them."""

    def __init__(self, dice: random.Random, services: tuple[Service, Service]) -> None:
        self._dice = dice
        self._services = services
        self._tag = 0
        self.members: list[Member] = []
        self.messages = 0
        self.bytes = 0
        self.told_in_s = 0.0
        """The longest time until a survivor knew of a death."""

    def join(self, side: int) -> Member:
        """A new one on this side, which all others are told of."""
        stack = ExitStack()
        links = {"BEOWIRE_LINKS": "packet,local", "BEOWIRE_DEAD_TIMEOUT": str(DEAD_S)}
        actor = stack.enter_context(client(self._services[side], USER, **links))
        made = Member(actor, side, stack, actor.open())
        actor.ask("mode fd", "mode")
        for other in self.members:
            made.numbers[other] = actor.find(other.addr)
            other.numbers[made] = other.actor.find(made.addr)
        self.members.append(made)
        return made

    def close(self) -> None:
        """Ends all that are left, in good order."""
        for each in self.members:
            assert each.actor.leave() == 0, each.actor.complaints
            each.stack.close()
        self.members.clear()

    def remove(self) -> None:
        """Ends all that are left, in any way."""
        for each in self.members:
            each.stack.close()

    def launch(self, count: int) -> list[Flight]:
        """So many messages leave, each from somebody to somebody."""
        return [self._send(*self._dice.sample(self.members, 2)) for _ in range(count)]

    def _send(self, sender: Member, receiver: Member) -> Flight:
        self._tag += 1
        length = self._dice.choice(LENGTHS)
        flight = Flight(sender, receiver, self._tag, length + self._dice.randrange(10))
        to = sender.numbers[receiver]
        sender.actor.tell(f"send {to} 1 {flight.tag} {flight.length} {ACKED} {flight.tag}")
        return flight

    def land(self, flights: Iterable[Flight]) -> None:
        """All of these come whole, and their senders know it."""
        for each in flights:
            assert each.sender.actor.expect("send", op=each.tag)["result"] == 0, each
            came = each.receiver.actor.expect("message", tag=each.tag)
            assert came["ok"], came
            assert came["len"] == each.length, came
            if came["envelope"]:
                fetched = each.receiver.actor.expect("pulled", tag=each.tag)
                assert fetched["ok"], fetched
                assert (fetched["status"], fetched["len"]) == (0, each.length), fetched
            assert each.sender.actor.expect("sent", op=each.tag)["status"] == 0, each
            self.messages += 1
            self.bytes += each.length

    def quiet(self) -> None:
        """Nothing has come twice, and nobody was told of anything else."""
        for each in self.members:
            each.actor.stats()
            left = [event for event in each.actor.seen if not _forgiven(event, each)]
            assert not left, (each.addr, left)
            each.actor.seen.clear()

    def kill(self, victims: list[Member]) -> None:
        """These die with messages under way. The survivors learn of it, and lose nothing of what
        they send to one another."""
        flights = self.launch(6 * len(self.members))
        time.sleep(self._dice.uniform(0, 0.05))
        for each in victims:
            each.actor.process.kill()
            self.members.remove(each)
        for each in victims:
            each.actor.process.wait(BUSY_S)
        self.bereave(victims, flights)
        for each in victims:
            each.stack.close()

    def bereave(self, victims: list[Member], flights: list[Flight]) -> None:
        """Who is left is told that the victims are lost, by a message to each that fails."""
        began = time.monotonic()
        more = [self._send(each, victim) for victim in victims for each in self.members]
        self.land(each for each in flights if not {each.sender, each.receiver} & {*victims})
        for each in [*flights, *more]:
            if each.sender in victims:
                each.receiver.forgiven.add(each.tag)
            elif each.receiver in victims:
                sent = each.sender.actor.expect("send", op=each.tag)["result"]
                if sent == 0:
                    sent = each.sender.actor.expect("sent", op=each.tag)["status"]
                assert sent < 0 or each not in more, each
        for each in self.members:
            for victim in victims:
                down = each.actor.expect("down", peer=each.numbers.pop(victim))
                assert down["status"] < 0, down
        self.told_in_s = max(self.told_in_s, time.monotonic() - began)
        assert self.told_in_s < DEAD_S + BUSY_S, self.told_in_s


def _forgiven(event: Event, of: Member) -> bool:
    if event["event"] not in NAMES:
        return False
    return event.get("tag") in of.forgiven
