# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Applications as tables: ratios, the worst first, and where their time goes."""

from collections.abc import Callable
from statistics import median

from rich.table import Table

from beowire.bench.apps.cells import Cell
from beowire.bench.apps.ledger import SIZES, Ledger
from beowire.bench.apps.measure import TRANSPORTS
from beowire.bench.apps.profile import Profile
from beowire.bench.matrix.cells import has_interval, middle

_COLOURS = {"behind": "dark_orange3", "even": "", "ahead": "blue"}


def ratios(cells: list[Cell]) -> Table:
    """The worst first."""
    table = Table("application", title="Applications, the worst first", title_justify="left")
    for heading in ("ranks", "nodes", "TCP", "Beowire"):
        table.add_column(heading, justify="right")
    table.add_column("unit")
    table.add_column("ratio [95 %]", justify="right", no_wrap=True)
    table.add_column("verdict")
    for cell in sorted(cells, key=lambda cell: cell.badness):
        found, shape = cell.ratio, cell.key.shape
        table.add_row(
            cell.key.figure,
            str(shape.ranks),
            str(shape.nodes),
            f"{middle(cell.tcp):.3g}",
            f"{middle(cell.beowire):.3g}",
            cell.unit,
            str(found) if has_interval(found) else f"{found.value:.2f} [-]",
            cell.verdict,
            style=_COLOURS[cell.verdict],
        )
    return table


def told_median(cells: list[Cell]) -> str:
    """The middle of all ratios, and the worst, which is the first of the table's or not."""
    values = [cell.ratio.value for cell in cells]
    return f"Ratios of times: median {median(values):.2f}, highest {max(values):.2f}."


_SENDS = ("write", "writev", "send", "sendto", "sendmsg", "sendmmsg")
_RECEIVES = ("read", "readv", "recv", "recvmsg", "recvmmsg")
_ROWS: tuple[tuple[str, Callable[[Ledger], str]], ...] = (
    ("seconds, from MPI_Init to MPI_Finalize", lambda a: _s(a.seconds("wall_ns"))),
    ("of these within MPI", lambda a: _s(a.mpi_s)),
    ("with a core", lambda a: _s(a.seconds("ran_ns"))),
    ("waiting for a core", lambda a: _s(a.seconds("queued_ns"))),
    ("in poll() and its like", lambda a: _s(a.seconds("asleep_ns"))),
    ("processor time, program (all threads)", lambda a: _s(a.seconds("user_us"))),
    ("processor time, kernel (all threads)", lambda a: _s(a.seconds("system_us"))),
    ("went to sleep (voluntary switches)", lambda a: _n(a.account["voluntary"])),
    ("lost the core (involuntary switches)", lambda a: _n(a.account["involuntary"])),
    ("page faults", lambda a: _n(a.account["faults"])),
    ("sched_yield()", lambda a: _n(a.calls("sched_yield"))),
    ("poll(), ppoll(), epoll_wait()", lambda a: _n(a.calls("poll", "ppoll", "epoll_wait"))),
    ("sends to the kernel", lambda a: _n(a.calls(*_SENDS))),
    ("receives from the kernel", lambda a: _n(a.calls(*_RECEIVES))),
    ("system calls of other threads", lambda a: _n(sum(row[1] for row in a.kernel.values()))),
)


def where_time_goes(profile: Profile) -> Table:
    """Counts are sums of all ranks, times averages."""
    title = f"{profile.application}, {profile.shape.ranks} ranks on {profile.shape.nodes} nodes"
    table = Table("times: average of ranks; counts: sum", title=title, title_justify="left")
    for transport in TRANSPORTS:
        table.add_column({"tcp": "TCP", "beowire": "Beowire"}.get(transport, ""), justify="right")
    sides = [profile.ledgers[transport] for transport in TRANSPORTS]
    for heading, told in _ROWS:
        table.add_row(heading, *(told(side) for side in sides))
    table.add_section()
    longest = sorted(sides[1].mpi, key=lambda name: -sides[1].mpi[name][1])[:6]
    for name in longest:
        table.add_row(f"MPI_{name}: calls", *(_n(_mpi(side, name)[0]) for side in sides))
        table.add_row(
            f"MPI_{name}: seconds",
            *(_s(_mpi(side, name)[1] / 1e9 / side.ranks) for side in sides),
        )
    table.add_section()
    for number, bound in enumerate(SIZES):
        counts = [side.sizes[number] for side in sides]
        if any(counts):
            table.add_row(f"sent, up to {bound}", *map(_n, counts))
    table.add_section()
    for name, count in profile.ledgers["beowire"].engine.items():
        if count:
            table.add_row(f"endpoints: {name}", "", _n(count))
    return table


def _mpi(side: Ledger, name: str) -> list[int]:
    return side.mpi.get(name, [0, 0, 0])


def _s(seconds: float) -> str:
    return f"{seconds:.3f}"


def _n(count: int) -> str:
    return f"{count:,}"
