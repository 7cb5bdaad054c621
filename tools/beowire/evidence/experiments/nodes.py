# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Activation of threads, and memory on the nodes of a machine [E1, E3, E5].

Which commands there are is found when they are wanted.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from statistics import median
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
    measure against delay that the machine allows, and by none."""
    if not knows("bench", "activation", option="--json"):
        raise CannotRunError("there is no `beowire bench activation` in this version")
    context.tell("from an event to the thread that it wakes")
    words = ["--scopes", "threads", "--events", "timer", "--loads", "busy"]
    told = _told(context, "bench", "activation", *words, *parameters["more"])
    numbers = {}
    for each in told["figures"]:
        if each["step"] == "first":
            numbers[f"{each['measure']}, average us"] = median(each["mean"]["us"])
            numbers[f"{each['measure']}, most us"] = median(each["max"]["us"])
    refused = (f"{name} was refused: {why}" for name, why in told["missing"].items())
    return Figures(numbers=numbers, remarks=("beside a load of our own", *refused))


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
