# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Whether adding the nodes of a second site pays for a program [C3]: one site as it was measured
against both as they are predicted over a line, with the interval of the speedup."""

import math
import shlex
import statistics
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from beowire import installed
from beowire.bench.samples import Ratio
from beowire.errors import BeowireError
from beowire.run.launch import Transport
from beowire.topology.keys import KEYS
from beowire.wan import fit, sites
from beowire.wan.fit import Fit
from beowire.wan.grid import Line
from beowire.wan.profile import Book

Answer = Literal["yes", "no", "unknown"]

BEYOND = 1.25
"""A line that is worse than all that were measured by more than this factor is not predicted."""
_STEPS = 60


@dataclass(frozen=True)
class Link:
    """The line between the sites, as it is described or was measured."""

    line: Line
    best: Line
    """What it may be at best; the same where it is described."""
    worst: Line
    told: str
    """Where that comes from."""


@dataclass(frozen=True)
class Advice:
    """For one transport."""

    transport: Transport
    one_site_s: float
    """Measured; of the fastest transport there."""
    both: Ratio
    """Seconds, predicted."""
    speedup: Ratio
    answer: Answer
    beyond: bool
    """The line is worse than all that were measured, and what is predicted there is not used."""
    computing_s: float
    waiting_s: float
    crossing_s: float
    losses_s: float
    pays_to_ms: float | None
    """The longest delay at which the prediction is that it pays, at this rate and loss; None:
    none. It ends where measuring ended."""
    pays_to_end: bool
    """It pays to the longest delay that was measured."""


def parse_link(text: str) -> Link:
    """`delay=25ms,rate=100M,loss=0.1%`; the delay is one way, without a rate the sites' own is the
    limit."""
    model: dict[str, float] = {}
    for word in text.split(","):
        key, equals, value = word.strip().partition("=")
        if not equals or key not in ("delay", "rate", "loss"):
            raise BeowireError(
                f"--link {text}: what is {word.strip()!r}?",
                "Write delay=25ms,rate=100M,loss=0.1%; the delay is one way.",
            )
        if key in model:
            raise BeowireError(f"--link {text} has two values of {key}.", "Leave one out.")
        model[key] = KEYS[key].parse(value)
    if "delay" not in model:
        raise BeowireError(
            f"--link {text} has no delay.", "Write delay=0 where there is none; it is one way."
        )
    if model.get("rate") == 0:
        raise BeowireError(
            f"--link {text}: nothing crosses at a rate of 0.", "Leave the rate out for no limit."
        )
    if model.get("loss", 0) > 0.5:
        raise BeowireError(
            f"--link {text}: no program works where more than half is lost.",
            "Write a share such as loss=0.1%.",
        )
    line = Line(model["delay"] / 1e6, model.get("rate", 0) / 1e6, model.get("loss", 0.0))
    return Link(line, line, line, "described")


def advise(book: Book, link: Link, worth: float) -> list[Advice]:
    """For each transport of the profile; `worth` is the least speedup that pays."""
    base = {transport: fit.one_site_s(book, transport) for transport in book.plan.transports}
    fastest = min(base, key=lambda transport: statistics.median(base[transport]))
    return [_advice(book, transport, fastest, base[fastest], link, worth) for transport in base]


def overall(advices: list[Advice]) -> Answer:
    """The second site pays if it does over any transport."""
    answers = {each.answer for each in advices}
    return "yes" if "yes" in answers else "unknown" if "unknown" in answers else "no"


def _advice(
    book: Book,
    transport: Transport,
    fastest: Transport,
    one_site: list[float],
    link: Link,
    worth: float,
) -> Advice:
    """`one_site` are the times there over the fastest transport."""
    law = fit.of_book(book, transport)
    one_s = statistics.median(one_site)
    other = fit.noise(book, fastest, "one") / math.sqrt(len(one_site))
    inside, worst = clamped(book, transport, link.line), clamped(book, transport, link.worst)
    slow = law.within(worst, other).high
    fast = law.within(clamped(book, transport, link.best), other).low
    both = Ratio(law.time_s(inside), fast, slow)
    beyond = inside != link.line or worst != link.worst
    speedup = Ratio(one_s / both.value, one_s / both.high, one_s / both.low)
    to_ms, to_end = _pays_to(book, transport, law, one_s / worth, link.line)
    return Advice(
        transport=transport,
        one_site_s=one_s,
        both=both,
        speedup=speedup,
        answer=_answer(speedup, worth, beyond),
        beyond=beyond,
        computing_s=law.compute_s,
        waiting_s=law.cost.waiting_s(inside),
        crossing_s=law.cost.crossing_s(inside),
        losses_s=law.cost.loss_s(inside),
        pays_to_ms=to_ms,
        pays_to_end=to_end,
    )


def _answer(speedup: Ratio, worth: float, beyond: bool) -> Answer:
    """A line that is worse than all that were measured costs more than the worst of these: a no for
    that one is a no."""
    if speedup.high < worth:
        return "no"
    return "yes" if speedup.low >= worth and not beyond else "unknown"


def clamped(book: Book, transport: Transport, line: Line) -> Line:
    """The line itself, or the next better one that was measured."""
    lines = _lines(book, transport)
    rates = [each.rate_mbit for each in lines if each.rate_mbit]
    delay_ms = min(line.delay_ms, BEYOND * max(each.delay_ms for each in lines))
    loss = min(line.loss, BEYOND * max(each.loss for each in lines))
    rate_mbit = line.rate_mbit
    if rate_mbit:
        rate_mbit = max(rate_mbit, min(rates) / BEYOND) if rates else 0.0
    return Line(delay_ms, rate_mbit, loss)


def _lines(book: Book, transport: Transport) -> list[Line]:
    return [run.case.line for run in book.runs if run.case.transport == transport]


def _pays_to(
    book: Book, transport: Transport, fit: Fit, limit_s: float, line: Line
) -> tuple[float | None, bool]:
    """The longest delay with which both sites take at most so long, and whether measuring ended
    there. More delay takes more time, so that halving finds it."""
    base = clamped(book, transport, line)
    low, high = 0.0, max(each.delay_ms for each in _lines(book, transport))
    if fit.time_s(replace(base, delay_ms=low)) > limit_s:
        return None, False
    if fit.time_s(replace(base, delay_ms=high)) <= limit_s:
        return high, True
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if fit.time_s(replace(base, delay_ms=middle)) <= limit_s:
            low = middle
        else:
            high = middle
    return low, False


def next_steps(book: Book, link: Link, advices: list[Advice]) -> list[str]:
    """What to measure where it cannot be told."""
    if overall(advices) != "unknown":
        return []
    steps = []
    line = link.line
    option = f"delay={line.delay_ms:g}ms"
    option += f",rate={line.rate_mbit:g}M" if line.rate_mbit else ""
    option += f",loss={100 * line.loss:g}%" if line.loss else ""
    again = f"{installed.COMMAND} wan profile --out {book.path}{_options(book)} --line {option} -- "
    again += shlex.join(book.setting.program)
    if any(each.beyond for each in advices):
        steps.append(f"The line is worse than all that were measured; measure it too: {again}")
    else:
        steps.append(
            f"The interval holds both answers; measure the program over that line: {again}"
        )
    if link.best != link.worst:
        steps.append("The probes of the line differ; repeat them with --rounds 9.")
    rounds = book.plan.rounds
    steps.append(f"More rounds narrow what one site takes: add --rounds {2 * rounds + 1} to that.")
    return steps


def _options(book: Book) -> str:
    """How the profile was made, as far as the defaults do not say it."""
    setting, transports = book.setting, book.plan.transports
    equal = sites.default_cpus(setting.nodes, setting.processors)
    options = {
        "transport": (transports[0] if len(transports) == 1 else "both", "both"),
        "nodes": (setting.nodes, 4),
        "ppn": (setting.ranks_per_node, 1),
        "cpus": (setting.cpus, equal),
        "mpi": (setting.mpi, "openmpi"),
    }
    return "".join(
        f" --{name} {value}" for name, (value, usual) in options.items() if value != usual
    )


def as_json(book: Book, link: Link, advices: list[Advice], worth: float) -> dict[str, Any]:
    return {
        "answer": overall(advices),
        "worth": worth,
        "link": asdict(link),
        "transports": [asdict(each) for each in advices],
        "next": next_steps(book, link, advices),
        "fit": {each.transport: fit.of_book(book, each.transport).as_json() for each in advices},
        "setting": asdict(book.setting),
        "equal_quotas_stand_for_computing": book.setting.crowded,
    }
