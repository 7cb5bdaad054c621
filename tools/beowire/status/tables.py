# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The state of a cluster as tables for people."""

from dataclasses import dataclass, field
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Table
from rich.text import Text

from beowire.status.words import age, amount, called, plain, trip

_PEERS_MAX = 12
"""Of an endpoint that are shown, the worst first, then those with most traffic."""


@dataclass
class Fitted:
    """A table that leaves out columns where there is not enough room, those of `spare` in turn."""

    names: tuple[str, ...]
    spare: tuple[str, ...]
    rows: list[list[str | Text]] = field(default_factory=list[list[str | Text]])

    def add_row(self, *cells: str | Text) -> None:
        self.rows.append([*cells, *[""] * (len(self.names) - len(cells))])

    def columns(self, width: int) -> list[int]:
        """Numbers of the columns that are shown in so many cells."""
        column = [[name, *(row[at] for row in self.rows)] for at, name in enumerate(self.names)]
        needed = [max(cell_len(str(each)) for each in cells) + 3 for cells in column]
        shown = list(range(len(self.names)))
        for name in self.spare:
            if sum(needed[at] for at in shown) < width:
                break
            shown.remove(self.names.index(name))
        return shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = self.columns(options.max_width)
        table = Table(*(self.names[at] for at in shown))
        for row in self.rows:
            table.add_row(*(row[at] for at in shown))
        yield table


def endpoints(state: dict[str, Any]) -> Fitted:
    shown = Fitted(
        ("endpoint", "program", "user", "links", "peers", "out", "in", "messages/s", "again",
         "drops", "waits", "last active"),
        ("again", "user", "messages/s", "links", "peers", "drops", "last active"),
    )  # fmt: skip
    for each in state["endpoints"]:
        rates = each["rates"]
        drops = ", ".join(f"{name} {n}" for name, n in sorted(each["drops"].items()))
        shown.add_row(
            called(each),
            each["program"],
            each["user"],
            "+".join(each["links"]) + (" key" if each["keyed"] else ""),
            str(each["peer_count"]),
            amount(rates["tx_payload"], "B/s"),
            amount(rates["rx_payload"], "B/s"),
            amount(rates["tx_messages"] + rates["rx_messages"]),
            str(each["retransmits"]),
            drops or "-",
            _waits(each),
            age(each["active_s"]),
        )
    return shown


def _waits(endpoint: dict[str, Any]) -> str:
    words = []
    if endpoint["receives"]:
        words.append(f"{endpoint['receives']} receives")
    if endpoint["unexpected"]:
        words.append(f"{endpoint['unexpected']} unexpected")
    return ", ".join(words) or "-"


def _order(peer: dict[str, Any]) -> tuple[int, float]:
    rates = peer["rates"]
    return -len(peer["verdicts"]), -(rates["tx_bytes"] + rates["rx_bytes"])


def connections(state: dict[str, Any]) -> Fitted:
    shown = Fitted(
        ("from", "to", "link", "out", "in", "round trip", "credit", "under way", "waiting", "again",
         "lost", "heard", "verdict"),
        ("under way", "again", "credit", "lost", "link", "round trip", "waiting", "heard"),
    )  # fmt: skip
    for each in state["endpoints"]:
        peers = sorted(each["peers"], key=_order)
        for peer in peers[:_PEERS_MAX]:
            rates = peer["rates"]
            waiting = peer["queued_bytes"] + peer["exposed_bytes"] + peer["pull_bytes"]
            engine = peer["link"] in ("packet", "udp")
            shown.add_row(
                called(each),
                peer["name"],
                peer["link"],
                amount(rates["tx_bytes"], "B/s"),
                amount(rates["rx_bytes"], "B/s"),
                trip(peer["srtt_ns"]),
                amount(peer["credit"], "B") if engine else "-",
                amount(peer["inflight"], "B"),
                amount(waiting, "B"),
                str(peer["retransmits"]),
                str(peer["losses"]),
                age(peer["heard_s"]),
                plain(", ".join(peer["verdicts"]) or "ok"),
            )
        if len(peers) > _PEERS_MAX:
            shown.add_row(called(each), f"({len(peers) - _PEERS_MAX} more)")
    return shown


def findings(state: dict[str, Any]) -> list[str]:
    """Who is slow, silent or lossy, one a line."""
    return [
        f"{peer['name']}, seen from {called(each)}: {verdict}"
        for each in state["endpoints"]
        for peer in each["peers"]
        for verdict in peer["verdicts"]
    ]


def kernel(state: dict[str, Any]) -> Table | None:
    """The sockets of the kernel module; None if there are none."""
    rows = [(node, socket) for node, told in state["kernel"].items() for socket in told["sockets"]]
    if not rows:
        return None
    names = list(rows[0][1])
    shown = Table("node", *(name.replace("_", " ") for name in names))
    for node, socket in rows:
        shown.add_row(node, *(str(socket.get(name, "-")) for name in names))
    return shown


def whole(state: dict[str, Any]) -> Group:
    parts: list[Any] = []
    if state["endpoints"]:
        parts.append(endpoints(state))
        if any(each["peers"] for each in state["endpoints"]):
            parts.append(connections(state))
    else:
        parts.append("No endpoint is open here.")
    sockets = kernel(state)
    if sockets is not None:
        parts.append(sockets)
    parts += findings(state) or (["Nobody is slow, silent or lossy."] if state["endpoints"] else [])
    return Group(*(plain(each) if isinstance(each, str) else each for each in parts))
