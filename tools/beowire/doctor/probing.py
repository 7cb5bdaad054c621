# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A probe of a pair of nodes [A4]: ping-pong and bulk, files, LogGP, parts of a message's time, and
the headroom."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from beowire import __version__
from beowire.doctor import answers, everywhere, gain, headroom, loggp, parts, report
from beowire.doctor.check import Check
from beowire.doctor.draws import Estimate, estimate, of_rounds
from beowire.doctor.examine import examine
from beowire.doctor.node import Goal, Node
from beowire.doctor.pair import Pair
from beowire.doctor.series import (
    TRANSPORTS,
    WAITS,
    Key,
    Series,
    Transport,
    Turn,
    Wait,
    measure,
    measuring,
)
from beowire.doctor.source import Source
from beowire.errors import BeowireError
from beowire.run import remote

SIZES = (8, 1024, 5000, 65536)
"""Of ping-pongs; 5000 bytes are the thesis's [A11]."""
BULK_SIZES = (65536, 262144, 1048576)
RECEIVE_BUFFERS = (10_000, 20_000, 100_000, 1_000_000)
"""The thesis's tcp_rmem [A11], and one more."""
FILE_BYTES = 1_000_000
_RATE_WINDOW = 1024
"""So many short messages that the answer to the last hardly matters."""
_TURN_S = 0.1
_BULK_S = 0.5
_PATIENCE_S = 60.0
_BUFFERS = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")


@dataclass(frozen=True)
class Plan:
    """What a probe measures."""

    goal: Goal = Goal.LATENCY
    sizes: tuple[int, ...] = SIZES
    bulk_sizes: tuple[int, ...] = BULK_SIZES
    transports: tuple[Transport, ...] = TRANSPORTS
    waits: tuple[Wait, ...] = WAITS
    rounds: int = 7
    turn_s: float = _TURN_S
    """About how long each run of short messages takes; one of bulk five times that."""
    calls: bool = True
    """Time the calls and the highest rate of short messages, for LogGP."""
    files: bool = True
    findings: bool = True
    """Ask the doctor on both nodes what it finds."""

    @property
    def short(self) -> int:
        return min(self.sizes)

    def steps(self) -> int:
        """How often a probe tells what it does, if all works."""
        every = turns(self) + bulk_turns(self)
        runs = sum(1 if each.timed else len(each.transports) for each in every)
        return self.rounds * runs + 2 + self.findings


@dataclass(frozen=True)
class Probe:
    """What a probe found."""

    pair: Pair
    plan: Plan
    series: Series
    loggp: list[loggp.LogGP]
    parts: list[parts.Parts]
    headroom: headroom.Headroom
    troubles: list[str]

    def figures(self) -> list[tuple[Key, Estimate]]:
        return [(key, estimate(of_rounds(rounds))) for key, rounds in self.series.of.items()]

    def as_json(self) -> dict[str, Any]:
        return {
            "version": __version__,
            "peer": self.pair.peer,
            "goal": str(self.plan.goal),
            "rounds": self.plan.rounds,
            "system_call_s": estimate(of_rounds(self.series.system_call_s)).as_json(),
            "figures": [
                {**asdict(key), **found.as_json(), "rounds": self.series.of[key]}
                for key, found in self.figures()
            ],
            "loggp": [each.as_json() for each in self.loggp],
            "parts": [each.as_json() for each in self.parts],
            "headroom": self.headroom.as_json(),
            "troubles": self.troubles,
        }


def turns(plan: Plan) -> list[Turn]:
    """The turns of a round of short messages, and of files."""
    found = []
    for wait in plan.waits:
        every = {"wait": wait, "transports": plan.transports}
        found += [Turn(mode="latency", size=size, **every) for size in plan.sizes]  # type: ignore[arg-type]
        if not plan.calls:
            continue
        for mode in ("send", "receive"):
            found.append(Turn(mode=mode, size=plan.short, **every))  # type: ignore[arg-type]
        found.append(Turn(mode="rate", size=plan.short, window=_RATE_WINDOW, **every))  # type: ignore[arg-type]
    return found


def bulk_turns(plan: Plan) -> list[Turn]:
    """Those that take longer."""
    found = [
        Turn("bandwidth", wait, size, plan.transports)
        for wait in plan.waits
        for size in plan.bulk_sizes
    ]
    largest = max(plan.bulk_sizes)
    found.append(Turn("bandwidth", "block", largest, plan.transports, back=True))
    if plan.files:
        found += [
            Turn("bandwidth", "block", FILE_BYTES, buffer=buffer, window=1)
            for buffer in RECEIVE_BUFFERS
        ]
        found.append(Turn("bandwidth", "block", FILE_BYTES, window=1))
    return found


def probe(pair: Pair, plan: Plan, checks: Iterable[Check], tell: Callable[[str], None]) -> Probe:
    """Measures everything in the plan."""
    link = _link(pair)
    with measuring(pair, plan.turn_s) as measurer:
        series = measure(measurer, turns(plan), plan.rounds, tell)
    with measuring(pair, 5 * plan.turn_s) as measurer:
        long = measure(measurer, bulk_turns(plan), plan.rounds, tell)
    series.of |= long.of
    troubles = list(dict.fromkeys([*series.troubles, *long.troubles]))
    told, more = _told(pair, plan, link, series, list(checks), tell)
    pairs = [(transport, wait) for transport in plan.transports for wait in plan.waits]
    fits = [loggp.fit(series, transport, wait, plan.short) for transport, wait in pairs]
    divided = [
        parts.divide(series, transport, plan.short)
        for transport in plan.transports
        if transport != "packet"
    ]
    return Probe(
        pair,
        plan,
        series,
        [each for each in fits if each is not None],
        [each for each in divided if each is not None],
        headroom.predict(series, told, plan.short),
        troubles + more,
    )


def _told(
    pair: Pair,
    plan: Plan,
    link: dict[str, Any],
    series: Series,
    checks: list[Check],
    tell: Callable[[str], None],
) -> tuple[gain.Told, list[str]]:
    """What the nodes tell of themselves, and what they could not."""
    told = gain.Told(int(link["mtu"]), {}, {}, _speed_bits(link))
    if not plan.findings:
        return told, []
    troubles: list[str] = []
    round_trip_s = 2 * float(of_rounds(series.get("tcp", "latency", "block", plan.short))[0])
    tell("asking the doctor on both nodes")
    node = Node(Source(), plan.goal, round_trip_s=round_trip_s)
    outcomes = report.as_json(examine(node, checks, [str(link["name"])]))["outcomes"]
    told.findings[gain.HERE] = [each for each in outcomes if each["state"] == "bad"]
    arguments = ["--json", "--goal", str(plan.goal), "--round-trip-ms", str(1e3 * round_trip_s)]
    arguments += [word for check in checks for word in ("--only", check.name)]
    answer = everywhere.ask(pair.cluster, arguments, 1, _PATIENCE_S)
    for there in answer.told.values():
        told.findings[gain.THERE] = [each for each in there["outcomes"] if each["state"] == "bad"]
    troubles += [f"{peer} cannot be examined: {why}" for peer, why in answer.failed.items()]
    for node_name, there_ in ((gain.HERE, False), (gain.THERE, True)):
        try:
            told.buffers[node_name] = _buffers(pair, there=there_)
        except (BeowireError, OSError, ValueError) as error:
            troubles.append(f"the buffers {node_name} cannot be read: {error}")
    return told, troubles


def _link(pair: Pair) -> dict[str, Any]:
    """The interface that leads to the peer."""
    for link in answers.links():
        if any(each.partition("/")[0] == pair.mine for each in link["addresses"]):
            return link
    raise BeowireError(
        f"{pair.mine}, from where {pair.peer} is reached, is on no Ethernet interface.",
        "Name another address of the peer.",
    )


def _speed_bits(link: dict[str, Any]) -> int:
    """What the driver of a NIC tells; 0 where there is no NIC."""
    for each in Node(Source(), Goal.LATENCY).all_interfaces():
        if each.name == link["name"] and each.physical:
            return each.speed_bits or 0
    return 0


def _buffers(pair: Pair, *, there: bool) -> dict[str, list[int]]:
    """tcp_rmem and tcp_wmem of one of the two."""
    paths = [f"/proc/sys/{name.replace('.', '/')}" for name in _BUFFERS]
    if there:
        text = remote.execute(
            replace(pair.cluster), pair.peer, f"cat {' '.join(paths)}", limit_s=_PATIENCE_S
        ).decode()
    else:
        source = Source()
        text = "".join(source.text(path) for path in paths)
    lines = text.splitlines()
    return {
        name: [int(word) for word in line.split()]
        for name, line in zip(_BUFFERS, lines, strict=True)
    }
