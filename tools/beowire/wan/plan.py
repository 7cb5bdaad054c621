# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which lines a program's profile is made from, and what it then can be asked about."""

from beowire import installed
from beowire.errors import BeowireError
from beowire.run.launch import Transport
from beowire.topology.keys import parse_rate, parse_share, parse_time
from beowire.wan.grid import TRANSPORTS, Line
from beowire.wan.profile import Book

ROUNDS = 3
"""Of one site, and of both without a line."""
NEAR = 0.2
"""The shorter delay of a profile, as a share of the longest."""
LOSSY = (0.2, 0.5)
"""The delays of its lines with losses, likewise."""


def transports(name: str) -> tuple[Transport, ...]:
    return TRANSPORTS if name == "both" else tuple(each for each in TRANSPORTS if each == name)


def lines(delay_max: str, rate_min: str, rate_max: str, loss_max: str) -> list[Line]:
    """Each rate without a delay, each delay with and without rates, and losses."""
    far_ms = parse_time(delay_max) / 1e6
    low, high = (parse_rate(text) / 1e6 for text in (rate_min, rate_max))
    loss = parse_share(loss_max)
    if not far_ms or far_ms > 1000:
        raise BeowireError(
            f"--delay-max {delay_max}?", "Give the longest delay between sites, such as 50ms."
        )
    if not 0 < low < high:
        raise BeowireError(
            f"--rate-min {rate_min}, --rate-max {rate_max}?",
            "Give two rates, the lower one first, such as 10M and 100M.",
        )
    if loss > 0.1:
        raise BeowireError(f"--loss-max {loss_max}?", "Give at most 10%, such as 0.2%.")
    found = [Line(0, low), Line(0, high)]
    for delay_ms in (NEAR * far_ms, far_ms):
        found += [Line(delay_ms, rate) for rate in (0, high, low)]
    found.append(Line(far_ms / 2, high))
    if loss:
        found += [Line(share * far_ms, high, loss) for share in LOSSY]
    return found


def tells_losses(book: Book) -> bool:
    """Whether it was measured over a line with losses."""
    return any(each.loss for each in book.plan.lines)


def check_losses(book: Book, line: Line) -> None:
    """Fails if losses are asked for that the profile knows nothing about."""
    if line.loss and not tells_losses(book):
        raise BeowireError(
            f"{book.path} was measured without losses; it cannot tell what "
            f"{100 * line.loss:g} % do.",
            f"Measure some: {installed.COMMAND} wan profile with --loss-max 0.2%, "
            "or leave the loss out.",
        )
