# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel module beside TCP, UDP and raw sockets, by executed instructions in a guest; sending
while computing over it."""

from beowire.bench import kernel
from beowire.bench import overlap as overlaps
from beowire.bench.kernel_figures import Figure, Row
from beowire.errors import BeowireError
from beowire.evidence.entry import Parameters
from beowire.evidence.experiment import CannotRunError, Context
from beowire.evidence.figures import Figures
from beowire.vm import machine

_WAITS = ("block", "poll", "busy")
_MODULE = ("rdm", "datagram")


def _trips(size: int, few: dict[str, str | int]) -> list[Row]:
    """Each stack with each kind of waiting that it has."""
    rows = [Row(name, wait, size, few) for name in ("tcp", "raw") for wait in _WAITS[:2]]
    return [*rows, *(Row(name, wait, size, few) for name in _MODULE for wait in _WAITS)]


def instructions(parameters: Parameters, context: Context) -> Figures:
    """Numbers named transport, waiting and bytes: instructions of a round trip; of bulk, of a
    message. `copied` has the bytes that a processor copied for each byte of payload."""
    few: dict[str, str | int] = {
        "trips": int(parameters["trips"]),
        "warmup": int(parameters["warmup"]),
    }
    one = {**few, "mtu": 1500}
    sizes = [int(each) for each in parameters["copied_sizes"]]
    offloads: list[Row] = [
        Row("tcp", "block", size, {**one, "offloads": each})
        for size in parameters["offload_sizes"]
        for each in ("on", "off")
    ]
    # A virtual link that takes super-frames hands pages on to the receiver; so that they do not
    # wait there, long messages are copied. A NIC sends them from where they are.
    uncut: dict[str, str | int] = {"count": 8, "trips": 5, "warmup": 3, "offloads": "off"}
    growth = [Row(name, "one", 1, few) for name in ("raw-all", "raw", "tcp", "rdm")]
    bulk = int(parameters["bulk"])
    figures = [
        *(Figure(f"trips {size}", "", _trips(size, few)) for size in (1, 5000)),
        Figure("offloads", "", offloads),
        Figure("copied", "", [Row("rdm", "block", size, uncut) for size in sizes]),
        Figure("growth", "", growth, bulk=bulk),
    ]
    plan = kernel.Plan(figures, rounds=1, repeats=int(parameters["guests"]))
    try:
        bench = kernel.Bench(plan)
    except BeowireError as error:
        raise CannotRunError(f"there are no guests here: {error.what}") from error
    context.left_s()
    report = bench.measure(context.tell)
    if not report.identical:
        raise BeowireError("The guests do not agree: their figures are no counts alone.")
    return _figures(report)


def _figures(report: kernel.Report) -> Figures:
    numbers, copied = {}, {"tx": [], "rx": []}  # type: ignore[var-annotated]
    for figure, rows in report.figures:
        for each in rows:
            row = each.row
            if figure.name == "growth":
                numbers[f"growth of {row.transport}"] = each.value
            elif figure.name == "offloads":
                numbers[f"tcp offloads {row.options['offloads']} {row.bytes}"] = each.value
            elif figure.name == "copied":
                copied["tx"].append((float(row.bytes), each.copied_tx or 0.0))
                copied["rx"].append((float(row.bytes), each.copied_rx or 0.0))
            else:
                numbers[f"{row.transport} {row.wait} {row.bytes}"] = each.value
    return Figures(
        numbers=numbers,
        curves={f"copied {way}": tuple(sorted(each)) for way, each in copied.items()},
        remarks=(
            f"executed instructions in a guest of one processor, Linux {report.kernel}",
            "copies are counted on a link without offloads, which sends pages as a NIC does",
        ),
    )


def overlap(parameters: Parameters, context: Context) -> Figures:
    """MPI_Isend, computing, MPI_Wait over the module: the time of both to the longer of the two."""
    try:
        machine.find_kernel("")
    except BeowireError as error:
        raise CannotRunError(f"there are no guests here: {error.what}") from error
    context.tell("a guest with two processors")
    told = overlaps.measure(str(parameters["rate"]), int(parameters["rounds"]))
    return Figures(
        numbers={"both to the longer": told.ratio.value},
        spread={"both to the longer": (told.ratio.low, told.ratio.high)},
    )
