# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes of beowire-link, one for each emulated link, and what is said to them.

Each lives in the namespace of the link's switch and so dies with the lab, whoever started it. It
listens on a unix socket in the lab's directory; its output, a line of JSON when it is ready, goes
to a file beside it.
"""

import contextlib
import json
import os
import socket
import zlib
from pathlib import Path
from typing import Any

from beowire import installed, places, signals
from beowire.errors import BeowireError
from beowire.lab import daemon
from beowire.lab.lab import Lab
from beowire.topology.keys import KEYS, settings
from beowire.topology.topology import DIRECTIONS, Direction, Link, Model

_READY_LIMIT_S = 60.0
_ANSWER_LIMIT_S = 60.0
"""On a machine with much to do a process may stand still for seconds. One that is dead answers at
once: there is nobody to connect to."""

_DROPS = ("lost", "dropped_queue", "too_long", "missed", "refused", "dropped_device")
"""The counters of beowire-link's report that count such frames."""


def binary() -> Path:
    """The emulator: BEOWIRE_LINK, else the build's."""
    if given := os.environ.get("BEOWIRE_LINK"):
        path = Path(given)
        if not os.access(path, os.X_OK):
            raise BeowireError(
                f"BEOWIRE_LINK names {path}, which cannot be executed.",
                "Name the program beowire-link, or unset it.",
            )
        return path
    return places.product("emulator/beowire-link")


def control_path(lab: Lab, link: str) -> Path:
    return lab.directory / f"{link}.control"


def output_path(lab: Lab, link: str) -> Path:
    return lab.directory / f"{link}.out"


def arguments(models: dict[Direction, Model], before: dict[Direction, Model]) -> list[str]:
    """KEY=VALUE words that lead from one pair of models to another, with their directions."""
    words = []
    for direction in DIRECTIONS:
        old, new = settings(before[direction]), settings(models[direction])
        for key in {**old, **new}:
            if old.get(key) != new.get(key) and key != "drop-raw":
                clear = KEYS[key].format(getattr(Model(), KEYS[key].field))
                words.append(f"{direction}.{key}={new.get(key, clear)}")
    return words


def _models(link: Link) -> dict[Direction, Model]:
    return {direction: link.model(direction) for direction in DIRECTIONS}


@signals.uninterrupted()
def start(lab: Lab, link: Link, namespace: str, interface_a: str, interface_b: str) -> int:
    """Starts the emulator between two interfaces of the switch's namespace and waits until it is
    ready; its process id. The caller keeps it until `stop`."""
    command = [
        str(binary()),
        "--json",
        "--seed",
        str(zlib.crc32(f"{lab.topology.seed} {link.name}".encode())),
        "--control",
        str(control_path(lab, link.name)),
        *(["--realtime"] if lab.topology.realtime else []),
        *(["--cpu", lab.topology.emulator_cpus] if lab.topology.emulator_cpus else []),
        interface_a,
        interface_b,
        *arguments(_models(link), dict.fromkeys(DIRECTIONS, Model())),
    ]
    control_path(lab, link.name).unlink(missing_ok=True)
    return daemon.start(
        lab,
        namespace,
        command,
        output_path(lab, link.name),
        _READY_LIMIT_S,
        _ready,
        (f"The emulator of link {link.name}", "The link's settings stand in the topology."),
    )


def _ready(text: str) -> bool:
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            told = json.loads(line)
            if isinstance(told, dict) and told.get("ready"):
                return True
    return False


def reap(lab: Lab) -> None:
    """Takes the status of killed emulators that this process had started."""
    for wire in lab.wires.values():
        if wire.pid:
            daemon.reap(wire.pid)


def ask(lab: Lab, link: str, request: str) -> dict[str, Any]:
    """The emulator's answer to one request."""
    told = b""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
            control.settimeout(_ANSWER_LIMIT_S)
            control.connect(str(control_path(lab, link)))
            control.sendall(request.encode() + b"\n")
            while not told.endswith(b"\n") and (chunk := control.recv(1 << 16)):
                told += chunk
        answer = json.loads(told)
    except (OSError, ValueError) as error:
        raise BeowireError(
            f"The emulator of link {link} of lab {lab.name} does not answer: {error}.",
            f"Remove the lab ({installed.COMMAND} lab down {lab.name}) and make it again.",
        ) from error
    if not isinstance(answer, dict) or "error" in answer:
        said = answer.get("error") if isinstance(answer, dict) else answer
        raise BeowireError(
            f"The emulator of link {link} refuses {request!r}: {said}", "Change the settings."
        )
    return answer


def change(lab: Lab, old: Link, new: Link) -> None:
    """Gives a running emulator the new models."""
    if words := arguments(_models(new), _models(old)):
        ask(lab, new.name, f"set {' '.join(words)}")


def stats(lab: Lab, link: str) -> dict[str, Any]:
    """What a running emulator has counted, by direction, and whether it kept to its settings."""
    told = ask(lab, link, "stats")
    for direction in DIRECTIONS:
        told.get(direction, {}).get("lateness_us", {}).pop("histogram", None)
    return told


def dropped(told: dict[str, Any], direction: Direction) -> int:
    """How many frames the emulator that told these statistics did not hand on, for any reason."""
    counted = told[direction]
    return sum(int(counted[key]) for key in _DROPS)
