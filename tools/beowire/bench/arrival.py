# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From a frame's arrival at a node to the program that waits for its message, over TCP and over
Beowire in turn, between two nodes of a lab on this machine."""

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from beowire import places
from beowire.bench import activation, samples
from beowire.errors import BeowireError
from beowire.lab import lab as labs
from beowire.lab import up
from beowire.sockets import cli as preloading

PROGRAM = "programs/beowire-arrival"
WAYS = {"tcp": "", "raw": "packet", "udp": "udp"}
"""Each with the links of Beowire that it is confined to; TCP has none."""
STEPS = ("arrived", "one_way")
"""From the kernel's stamp of the frame to the program; from the sender's clock to it."""
PORT = 7311
WARM = 50
STAMPED = 0.9
"""Share of messages whose frame was seen, at least: else the figures are of a part of them."""


@dataclass
class Report:
    """Every sample of every run: by load and way, one run of each round."""

    runs: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    missing: str = ""
    """Why there are none."""

    def figure(self, key: tuple[str, str], step: str, name: str) -> list[float]:
        """One number of each round, in microseconds."""
        found = [activation.figures(run[f"{step}_ns"])[name] for run in self.runs[key]]
        return [each / 1000 for each in found]

    def ratio(self, key: tuple[str, str], step: str, name: str) -> samples.Ratio:
        """By TCP of the same rounds."""
        return samples.ratio(self.figure(key, step, name), self.figure((key[0], "tcp"), step, name))

    def as_json(self) -> dict[str, Any]:
        return {
            "runs": [
                {"load": load, "way": way, "rounds": runs}
                for (load, way), runs in self.runs.items()
            ],
            "figures": [
                {
                    "load": key[0],
                    "way": key[1],
                    "step": step,
                    **{
                        name: {
                            "us": self.figure(key, step, name),
                            "ratio": vars(self.ratio(key, step, name)),
                        }
                        for name in activation.FIGURES
                    },
                }
                for key in self.runs
                for step in STEPS
            ],
            "missing": self.missing,
        }


@contextlib.contextmanager
def own_lab() -> Iterator[labs.Lab]:
    """Two nodes at a switch, gone afterwards."""
    name = f"activation-{os.getpid()}"
    up.up(name, 2, 1500)
    try:
        yield labs.load_ready(name)
    finally:
        up.down(name)


def measure(plan: activation.Plan, tell: Callable[[str], None]) -> Report:
    """Runs each way in each round; `tell` hears of each round before it begins. Where no lab can be
    made the report says why."""
    report = Report()
    with contextlib.ExitStack() as made:
        try:
            lab = made.enter_context(own_lab())
        except BeowireError as error:
            return Report(missing=str(error))
        for number in range(plan.rounds):
            for load in plan.loads:
                tell(f"network: round {number + 1} of {plan.rounds}, {load}")
                with activation.loaded() if load == "busy" else contextlib.nullcontext():
                    for way in _turned(number):
                        report.runs.setdefault((load, way), []).append(_run(lab, way, plan))
    return report


def _turned(number: int) -> list[str]:
    ways = list(WAYS)
    turn = number % len(ways)
    return [*ways[turn:], *ways[:turn]]


def _run(lab: labs.Lab, way: str, plan: activation.Plan) -> dict[str, Any]:
    sender, receiver = lab.node_names()[:2]
    program = str(places.product(PROGRAM))
    carrier = "beowire" if WAYS[way] else "tcp"
    words = ["env", f"BEOWIRE_LINKS={WAYS[way]}"] if WAYS[way] else []
    words += [program, "receive", carrier, *([] if WAYS[way] else [str(PORT)])]
    words = [*preloading.where(lab.name, receiver), *words, str(plan.count), str(WARM)]
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            ready = child.stdout.readline().split()
            if ready[:1] != ["ready"]:
                raise _failed(child.communicate()[1])
            to = ready[1:2] if WAYS[way] else [lab.address(receiver), str(PORT)]
            words = ["env", f"BEOWIRE_LINKS={WAYS[way]}"] if WAYS[way] else []
            words += [program, "send", carrier, *to, str(plan.count + WARM), str(plan.interval_us)]
            sent = subprocess.run(
                [*preloading.where(lab.name, sender), *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=activation.PATIENCE_S,
                check=False,
            )
            said, errors = child.communicate(timeout=activation.PATIENCE_S)
        finally:
            child.kill()
    if sent.returncode or child.returncode:
        raise _failed(sent.stderr + errors)
    return checked(said)


def _failed(said: str) -> BeowireError:
    return BeowireError(f"beowire-arrival: {said.strip() or 'no word'}")


def checked(said: str) -> dict[str, Any]:
    """What the receiver told, if it is what it should be."""
    try:
        told: dict[str, Any] = json.loads(said)
        for step in STEPS:
            activation.figures(told[f"{step}_ns"])
    except (ValueError, KeyError, TypeError) as error:
        raise BeowireError(f"beowire-arrival printed {said[:200]!r}") from error
    if len(told["arrived_ns"]) < STAMPED * len(told["one_way_ns"]):
        raise BeowireError(
            f"Of {len(told['one_way_ns'])} messages only {len(told['arrived_ns'])} frames were "
            "seen on arrival.",
            "Frames that are encrypted cannot be told apart: unset BEOWIRE_KEY.",
        )
    return told
