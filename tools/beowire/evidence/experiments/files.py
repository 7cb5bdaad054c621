# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A file over TCP against net.ipv4.tcp_rmem [A11]."""

from functools import partial
from pathlib import Path
from statistics import median

from beowire import namespaces
from beowire.evidence.entry import Parameters
from beowire.evidence.experiment import Context
from beowire.evidence.experiments import labs
from beowire.evidence.figures import Figures
from beowire.lab import stream
from beowire.topology.topology import End, Model

_RECEIVE = Path("/proc/sys/net/ipv4/tcp_rmem")
_SENDER, _RECEIVER = End("node1", "eth0"), End("node2", "eth0")


def receive_buffer(parameters: Parameters, context: Context) -> Figures:
    """Seconds for a file of so many bytes, the three numbers of tcp_rmem alike: medians, as the
    least of a few rounds is a short buffer's luck as well."""
    size = int(parameters["file_bytes"])
    settings = [int(each) for each in parameters["buffers"]]
    rate = Model(rate_bits=int(parameters["rate_bits"]))
    times: dict[int, list[float]] = {each: [] for each in settings}
    with labs.of(labs.nodes(2, offloads=False, out=rate)) as lab:
        for number in range(1, int(parameters["rounds"]) + 1):
            for each in settings:
                context.tell(f"round {number}: {size:,} bytes with a tcp_rmem of {each:,}")
                write = partial(_RECEIVE.write_text, f"{each} {each} {each}")
                namespaces.within(lab.namespace_path(_RECEIVER.device), write)
                took = stream.transfer(lab, _SENDER, _RECEIVER, size, context.left_s())
                times[each].append(took)
    curve = tuple((float(each), median(found)) for each, found in times.items())
    stated = float(parameters["stated_bytes"])
    return Figures(
        curves={"seconds": curve},
        remarks=(
            f"a file of {size:,} bytes: the paper's divided by {stated / size:g}",
            "the median of the rounds",
        ),
    )
