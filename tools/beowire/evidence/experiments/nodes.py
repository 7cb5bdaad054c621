# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Activation of threads, and memory on the nodes of a machine [E1, E3, E5].

Which commands there are is found when they are wanted.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from statistics import fmean, median
from typing import Any

from beowire import places
from beowire.errors import BeowireError
from beowire.evidence.entry import Parameters
from beowire.evidence.experiment import CannotRunError, Context
from beowire.evidence.figures import Figures

_NODES = Path("/sys/devices/system/node")


def memory_nodes() -> int:
    """How many nodes with memory the machine has."""
    return max(1, len(list(_NODES.glob("node[0-9]*"))))


def knows(*words: str, option: str = "--help") -> bool:
    """Whether `beowire` has this command, with this option."""
    done = subprocess.run(
        [str(places.command()), *words, "--help"], capture_output=True, text=True, check=False
    )
    return done.returncode == 0 and option in done.stdout


def _told(context: Context, *words: str) -> dict[str, Any]:
    """What a command writes to the file of its --json."""
    with tempfile.TemporaryDirectory(prefix="beowire-evidence-") as name:
        file = Path(name) / "told.json"
        command = [str(places.command()), *words, "--json", str(file)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=context.left_s()
            )
        except subprocess.TimeoutExpired:
            raise BeowireError(f"{' '.join(words)} took too long.") from None
        if done.returncode != 0:
            raise BeowireError(f"{' '.join(words)} failed: {done.stderr.strip()[-300:]}")
        told: dict[str, Any] = json.loads(file.read_text())
        return told


def activation(parameters: Parameters, context: Context) -> Figures:
    """How long it takes from a timer to the thread that it wakes, beside other work: by each
    measure against delay that the machine allows, and by none. Medians of the rounds. Queued is
    the part of the way that the thread stood in a processor's queue, by the kernel's account,
    prompt what is left without it, and work how long the program's code of 4 MiB takes."""
    if not knows("bench", "activation", option="--json"):
        raise CannotRunError("there is no `beowire bench activation` in this version")
    context.tell("from an event to the thread that it wakes")
    words = ["--scopes", "threads", "--events", "timer", "--loads", "busy"]
    told = _told(context, "bench", "activation", *words, *parameters["more"])
    numbers: dict[str, float] = {}
    parts = {each["measure"]: [_parts(one) for one in each["rounds"]] for each in told["runs"]}
    for measure, rounds in parts.items():
        for name in rounds[0]:
            numbers[f"{measure}, {name}"] = median(one[name] for one in rounds)
        if measure != "none" and "none" in parts:
            share = _queued_share(parts["none"], rounds)
            numbers[f"{measure}, queued of the difference"] = share
    refused = (f"{name} was refused: {why}" for name, why in told["missing"].items())
    return Figures(numbers=numbers, remarks=("beside a load of our own", *refused))


def _parts(run: dict[str, Any]) -> dict[str, float]:
    """Figures of one run, by what they are."""
    first, queued = run["first_ns"], run["queued_ns"]
    steps = zip(run["whole_ns"], first, run["second_ns"], strict=True)
    largest = max(range(len(first)), key=lambda place: first[place])
    return {
        "average us": fmean(first) / 1000,
        "most us": first[largest] / 1000,
        "queued us": fmean(queued) / 1000,
        "prompt us": (fmean(first) - fmean(queued)) / 1000,
        "queued of the most": queued[largest] / max(first[largest], 1),
        "work us": median(whole - one - other for whole, one, other in steps) / 2000,
    }


def _queued_share(without: list[dict[str, float]], by: list[dict[str, float]]) -> float:
    """Of what a measure changes, the part that is time in a processor's queue."""
    changed, queued = (
        fmean(one[name] for one in without) - fmean(one[name] for one in by)
        for name in ("average us", "queued us")
    )
    return queued / changed if changed else 0.0


def place(parameters: Parameters, context: Context) -> Figures:
    """Memory policies."""
    del parameters, context
    if not knows("run", option="--place"):
        raise CannotRunError("`beowire run` has no --place in this version")
    if memory_nodes() < 2:
        raise CannotRunError("the machine has one memory node: no memory is far")
    raise CannotRunError("policies are set by `beowire run --place`, and nothing measures them yet")


def replicate(parameters: Parameters, context: Context) -> Figures:
    """The same, where there are nodes of which one would be far."""
    if not knows("replicate"):
        raise CannotRunError("there is no `beowire replicate` in this version")
    if memory_nodes() < 2:
        raise CannotRunError("the machine has one memory node: no memory is far")
    return activation(parameters, context)
