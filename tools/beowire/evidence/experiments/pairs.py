# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Experiments between two nodes of a lab, by beowire-pingpong; whatever is compared takes turns."""

import contextlib
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from beowire.bench import line_flow, samples, stripe
from beowire.evidence.entry import Parameters
from beowire.evidence.experiment import Context
from beowire.evidence.experiments import labs
from beowire.evidence.figures import Curve, Figures
from beowire.lab.lab import Lab
from beowire.topology import catalogue
from beowire.topology.topology import Model, Topology

_NODES = ("node1", "node2")

Told = dict[tuple[str, int], list[float]]
"""By setting and size, a number of each round: seconds one way, or bytes a second."""


@contextlib.contextmanager
def _labs(made: dict[str, Topology]) -> Iterator[dict[str, Lab]]:
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(labs.of(each)) for name, each in made.items()}


def _run(
    lab: Lab, context: Context, transport: str, mode: str, sizes: Sequence[int], *more: str
) -> list[dict[str, Any]]:
    """One round of one transport; the results by size."""
    words = ["--transport", transport, "--mode", mode, "--rounds", "1"]
    words += ["--size", ",".join(map(str, sizes)), *more]
    told = line_flow.report(lab, *_NODES, words, {}, context.left_s())
    results: list[dict[str, Any]] = told["results"]
    return results


def _add(told: Told, setting: str, results: list[dict[str, Any]]) -> None:
    """The median of a round for latency: what preempts the two now and then is not in it."""
    for each in results:
        timed = each["mode"] == "latency"
        value = each["p50_ns"] * 1e-9 if timed else float(each["bytes_per_s"])
        told.setdefault((setting, int(each["size"])), []).append(value)


def _curve(told: Told, setting: str, scale: float) -> Curve:
    """Medians of the rounds, by size."""
    points = [
        (float(size), scale * median(values))
        for (name, size), values in told.items()
        if name == setting
    ]
    return tuple(sorted(points))


def _ratio(figures: Figures, name: str, told: Told, over: str, under: str, size: int) -> None:
    """Adds the ratio of two settings' rounds at a size, with its interval."""
    found = samples.ratio(told[over, size], told[under, size])
    figures.numbers[name] = found.value
    figures.spread[name] = (found.low, found.high)


def offloads(parameters: Parameters, context: Context) -> Figures:
    """TCP's ping-pong and bulk with segmentation left to the devices, and without; and what the
    stack adds to bare frames in each case."""
    sizes = [int(each) for each in parameters["sizes"]]
    bulk = [int(each) for each in parameters["bulk_sizes"]]
    framed = [each for each in sizes if each <= int(parameters["frame_bytes"])]
    count = str(parameters["iterations"])
    told: Told = {}
    both = {name: labs.nodes(2, offloads=name == "on") for name in ("on", "off")}
    with _labs(both) as made:
        for number in range(1, int(parameters["rounds"]) + 1):
            for name, lab in made.items():
                context.tell(f"round {number}: TCP with GSO and GRO {name}")
                trip = _run(lab, context, "tcp", "latency", sizes, "--iterations", count)
                _add(told, name, trip)
                spin = ("--wait", "spin", "--iterations", count)
                _add(told, f"spin {name}", _run(lab, context, "tcp", "latency", framed, *spin))
                _add(told, f"bare {name}", _run(lab, context, "packet", "latency", framed, *spin))
                few = ("--iterations", str(parameters["messages"]), "--window", "4")
                _add(told, f"bulk {name}", _run(lab, context, "tcp", "bandwidth", bulk, *few))
    figures = Figures(
        curves={
            **{f"us, {name}": _curve(told, name, 1e6) for name in both},
            **{f"MB/s, {name}": _curve(told, f"bulk {name}", 1e-6) for name in both},
            **{f"stack us, {name}": _stack(told, name) for name in both},
        }
    )
    for size in sizes:
        _ratio(figures, f"time without to with, {size} B", told, "off", "on", size)
    for size in bulk:
        _ratio(figures, f"rate without to with, {size} B", told, "bulk off", "bulk on", size)
    return figures


def _stack(told: Told, name: str) -> Curve:
    """What TCP takes beyond bare frames, both spinning: system calls and device are in both."""
    tcp, bare = (dict(_curve(told, f"{each} {name}", 1e6)) for each in ("spin", "bare"))
    return tuple((size, tcp[size] - bare[size]) for size in tcp)


def stacks(parameters: Parameters, context: Context) -> Figures:
    """Bulk over a line of a given rate, by stack."""
    size, count = int(parameters["size"]), str(parameters["messages"])
    rate = int(parameters["rate_bits"])
    told: Told = {}
    with labs.of(labs.nodes(2, out=Model(rate_bits=rate))) as lab:
        for number in range(1, int(parameters["rounds"]) + 1):
            for transport in ("tcp", "beowire"):
                context.tell(f"round {number}: bulk over {transport}")
                few = ("--iterations", count, "--window", "16")
                _add(told, transport, _run(lab, context, transport, "bandwidth", [size], *few))
    figures = Figures(
        numbers={f"{name} to the line": 8 * _middle(told, name) / rate for name in _names(told)}
    )
    _ratio(figures, "Beowire to TCP", told, "beowire", "tcp", size)
    return figures


def _names(told: Told) -> list[str]:
    return list(dict.fromkeys(name for name, _ in told))


def _middle(told: Told, name: str) -> float:
    return median(value for (each, _), values in told.items() if each == name for value in values)


def waiting(parameters: Parameters, context: Context) -> Figures:
    """Ping-pong of Beowire, TCP and bare frames, blocking and with the call looking all the time.
    The least of the rounds counts: whoever spins needs a processor, which others may have."""
    sizes = [int(each) for each in parameters["sizes"]]
    count = str(parameters["iterations"])
    told: Told = {}
    with labs.of(labs.nodes(2, 9000)) as lab:
        for number in range(1, int(parameters["rounds"]) + 1):
            for wait in ("block", "spin"):
                for transport in ("tcp", "packet", "beowire"):
                    context.tell(f"round {number}: {transport}, {wait}")
                    words = ("--wait", wait, "--iterations", count)
                    results = _run(lab, context, transport, "latency", sizes, *words)
                    _add(told, f"{transport} {wait}", results)
    least = {f"{name}, {size} B": 1e6 * min(values) for (name, size), values in told.items()}
    return Figures(numbers=least, remarks=("the least of the rounds' medians, us one way",))


def frames(parameters: Parameters, context: Context) -> Figures:
    """Bulk over a line of a given rate with frames of 1500 and 9000 bytes."""
    size, count = int(parameters["size"]), str(parameters["messages"])
    rate = Model(rate_bits=int(parameters["rate_bits"]))
    told: Told = {}
    both = {str(mtu): labs.nodes(2, mtu, offloads=False, out=rate) for mtu in parameters["mtus"]}
    with _labs(both) as made:
        for number in range(1, int(parameters["rounds"]) + 1):
            for name, lab in made.items():
                for transport in ("tcp", "beowire"):
                    context.tell(f"round {number}: {transport}, MTU {name}")
                    few = ("--iterations", count, "--window", "16")
                    results = _run(lab, context, transport, "bandwidth", [size], *few)
                    _add(told, f"{transport} {name}", results)
    figures = Figures(numbers={f"{name}, MB/s": _middle(told, name) / 1e6 for name in _names(told)})
    short, long = (str(each) for each in parameters["mtus"])
    for transport in ("tcp", "beowire"):
        name = f"{transport}, long frames to short"
        _ratio(figures, name, told, f"{transport} {long}", f"{transport} {short}", size)
    return figures


def mitigation(parameters: Parameters, context: Context) -> Figures:
    """Short messages, and bulk, over links that gather frames before they hand them on."""
    size, short = int(parameters["size"]), int(parameters["short"])
    gather_ns = int(parameters["gather_ns"])
    rate = int(parameters["rate_bits"])
    told: Told = {}
    both = {
        "at once": labs.nodes(2, out=Model(rate_bits=rate, coalesce_ns=1)),
        "gathered": labs.nodes(2, out=Model(rate_bits=rate, coalesce_ns=gather_ns)),
    }
    with _labs(both) as made:
        for number in range(1, int(parameters["rounds"]) + 1):
            for name, lab in made.items():
                for transport in ("tcp", "beowire"):
                    context.tell(f"round {number}: {transport}, frames handed on {name}")
                    trips = ("--iterations", str(parameters["iterations"]))
                    results = _run(lab, context, transport, "latency", [short], *trips)
                    _add(told, f"{transport} {name}", results)
                    few = ("--iterations", str(parameters["messages"]), "--window", "16")
                    results = _run(lab, context, transport, "bandwidth", [size], *few)
                    _add(told, f"{transport} bulk {name}", results)
    figures = Figures()
    for transport in ("tcp", "beowire"):
        name = f"{transport}, time gathered to at once"
        _ratio(figures, name, told, f"{transport} gathered", f"{transport} at once", short)
        name = f"{transport}, rate gathered to at once"
        over, under = f"{transport} bulk gathered", f"{transport} bulk at once"
        _ratio(figures, name, told, over, under, size)
    return figures


def mixed_path(parameters: Parameters, context: Context) -> Figures:
    """The largest packet that passes between nodes of a lab whose second switch has no jumbo
    frames, and whether Beowire carries long messages across it."""
    from beowire import namespaces
    from beowire.doctor import probe

    numbers = {}
    with labs.of(catalogue.find("mixed-mtu")) as lab:
        here = lab.namespace_path("node1")
        for name, target in (("same switch", "node2"), ("other switch", "node3")):
            context.tell(f"which packets pass to {target}")
            address = lab.address(target)
            found = namespaces.within(here, lambda to=address: probe.path_to(to, 0.01))  # type: ignore[misc]
            numbers[f"passes, {name}"] = float(found["passes"])
            context.tell(f"long messages to {target}")
            words = ["--transport", "beowire", "--mode", "bandwidth", "--rounds", "1"]
            words += ["--size", str(parameters["size"]), "--window", "4"]
            words += ["--iterations", str(parameters["messages"])]
            told = line_flow.report(lab, "node1", target, words, {}, context.left_s())
            numbers[f"MB/s, {name}"] = float(told["results"][0]["bytes_per_s"]) / 1e6
    return Figures(numbers=numbers)


def channels(parameters: Parameters, context: Context) -> Figures:
    """Two links together, to one, and to the sum of both."""
    plan = stripe.Plan(
        rates_bits=tuple(int(each) for each in parameters["rates_bits"]),
        mtu_bytes=1500,
        messages=4,
        seconds=float(parameters["seconds"]),
        rounds=int(parameters["rounds"]),
        cut=0,
    )
    report = stripe.measure(plan, context.tell)
    one = [each[0] for each in report.alone]
    gain, share = samples.ratio(report.together, one), report.gain
    return Figures(
        numbers={
            "one channel, MB/s": median(one) / 8e6,
            "two channels, MB/s": median(report.together) / 8e6,
            "two to one": gain.value,
            "two to twice one": share.value,
        },
        spread={
            "two to one": (gain.low, gain.high),
            "two to twice one": (share.low, share.high),
        },
        remarks=("counted with the frames' headers, by the receiver's interfaces",),
    )
