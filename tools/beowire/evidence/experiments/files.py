# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A file over TCP against net.ipv4.tcp_rmem [A11]."""

import contextlib
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from statistics import median

from beowire import namespaces
from beowire.evidence.entry import Parameters
from beowire.evidence.experiment import Context
from beowire.evidence.experiments import labs
from beowire.evidence.figures import Curve, Figures
from beowire.lab import stream
from beowire.lab.lab import Lab
from beowire.topology.topology import End, Model

_RECEIVE = Path("/proc/sys/net/ipv4/tcp_rmem")
_SENDER, _RECEIVER = End("node1", "eth0"), End("node2", "eth0")


def receive_buffer(parameters: Parameters, context: Context) -> Figures:
    """Seconds for a file of so many bytes, the three numbers of tcp_rmem alike: medians, as the
    least of a few rounds is a short buffer's luck as well. With delays: the same over lines that
    hold each frame for so long, both ways; and the share of its time in which the receiver's window
    held up the sender."""
    size = int(parameters["file_bytes"])
    settings = [int(each) for each in parameters["buffers"]]
    delays = [int(each) for each in parameters.get("delays_us", (0,))]
    took: dict[int, dict[int, list[stream.Transfer]]] = {
        delay: {each: [] for each in settings} for delay in delays
    }
    with contextlib.ExitStack() as ends:
        made = {delay: ends.enter_context(_line(parameters, delay)) for delay in delays}
        for number in range(1, int(parameters["rounds"]) + 1):
            for delay, lab in made.items():
                for each in settings:
                    told = f"round {number}: {size:,} bytes with a tcp_rmem of {each:,}"
                    context.tell(f"{told}, {delay} us one way" if delay else told)
                    write = partial(_RECEIVE.write_text, f"{each} {each} {each}")
                    namespaces.within(lab.namespace_path(_RECEIVER.device), write)
                    done = stream.transfer(lab, _SENDER, _RECEIVER, size, context.left_s())
                    took[delay][each].append(done)
    curves: dict[str, Curve] = {}
    for delay, found in took.items():
        line = f", {delay} us one way" if delay else ""
        curves[f"seconds{line}"] = tuple(
            (float(each), median(one.seconds for one in many)) for each, many in found.items()
        )
        curves[f"held up{line}"] = tuple(
            (float(each), median(one.held_up_s / one.seconds for one in many))
            for each, many in found.items()
        )
    stated = float(parameters["stated_bytes"])
    return Figures(
        curves=curves,
        remarks=(
            f"a file of {size:,} bytes: the paper's divided by {stated / size:g}",
            "the median of the rounds",
        ),
    )


def _line(parameters: Parameters, delay_us: int) -> AbstractContextManager[Lab]:
    """Two nodes; what either sends passes at this rate, so much later."""
    model = Model(rate_bits=int(parameters["rate_bits"]), delay_ns=1000 * delay_us)
    return labs.of(labs.nodes(2, offloads=False, out=model))
