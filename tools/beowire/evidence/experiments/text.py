# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""On which nodes the text lies that a program executes [E3], in a guest of several NUMA nodes.

Emulation makes nothing slower that is far: counted is where the pages lie.
"""

import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from beowire import places
from beowire.bench import activation
from beowire.errors import BeowireError
from beowire.evidence.entry import Parameters
from beowire.evidence.experiment import CannotRunError, Context
from beowire.evidence.figures import Figures
from beowire.replicate import command as replicate
from beowire.vm import machine

HOT_PAGES = 1024
"""Of the program's code: a function on each (programs/activation/hot.c)."""
_NODE_MB = 256
_WAYS = ("files", "copies")
_LEFT = re.compile(r".*/(ld-[\w.-]+\.so(\.\d+)?|ld-linux[\w.-]*|libbeowire-replicate\.so)")
"""What `beowire replicate` leaves where it is: docs/activation.md."""

# tell NAME PROCESSOR PROGRAM...: once the program's child has gone through its code, where its
# memory lies.
_TELL = """
tell() {
	name=$1 cpu=$2
	shift 2
	rm -f /tmp/out
	taskset -c "$cpu" "$@" > /tmp/out &
	pid=$!
	until [ -s /tmp/out ]; do kill -0 $pid || exit 1; sleep 0.1; done
	child=$(cat /proc/$pid/task/$pid/children)
	child=${child%% *}
	until awk -v hot=HOT '/beowire-activation/ {
			for (i = 1; i <= NF; i++) if ($i ~ /^N[0-9]+=/) n += substr($i, index($i, "=") + 1)
		} END { exit n < hot }' /proc/$child/numa_maps; do
		kill -0 $child || exit 1
		sleep 0.1
	done
	sed "s/^/$name area /" /proc/$child/maps
	sed "s/^/$name pages /" /proc/$child/numa_maps
	kill $pid
	wait $pid
}
""".replace("HOT", str(HOT_PAGES))


@dataclass(frozen=True)
class Pages:
    """Of the executable memory of one process."""

    near: int = 0
    """On its own node."""
    far: int = 0
    left: int = 0
    """Elsewhere, of the dynamic loader and of the library that makes the copies."""


def text_pages(parameters: Parameters, context: Context) -> Figures:
    """Pages of text on the own node and on others, for a program on each node in turn: by the
    kernel's own reading of its file, and from copies."""
    count = int(parameters["nodes"])
    if os.geteuid() != 0:
        raise CannotRunError("the guest reads this machine's files as root does")
    try:
        machine.find_kernel("")
    except BeowireError as error:
        raise CannotRunError(f"there are no guests here: {error.what}") from error
    context.tell(f"a guest with {count} nodes")
    found = counted(_run(count, context.left_s()), count)
    curves = {
        f"{what}, {way}": tuple(
            (float(node), float(getattr(found[way, node], what))) for node in range(count)
        )
        for way in _WAYS
        for what in ("near", "far")
    }
    left = max(found["copies", node].left for node in range(count))
    return Figures(
        curves=curves,
        remarks=(
            "pages that the process has mapped, by the guest's kernel (numa_maps)",
            f"the dynamic loader and the library that makes the copies stay: {left} pages",
        ),
    )


def _run(count: int, limit_s: float) -> str:
    """What the guest's kernel told of the processes."""
    plain = [str(places.product(activation.PROGRAM)), "load", "1"]
    lines = {"files": plain, "copies": replicate.line(plain, "small")}
    script = [_TELL]
    for node in range(count):
        script += [f"tell {way}{node} {node} {shlex.join(lines[way])}" for way in _WAYS]
    guest = machine.Guest(
        ["/bin/sh", "-c", "\n".join([*script, "exit 0"])],
        cpus=count,
        memory_mb=count * _NODE_MB,
        limit_s=limit_s,
        nodes=count,
    )
    with tempfile.TemporaryDirectory(prefix="beowire-evidence-") as name:
        file = Path(name) / "told"
        with file.open("w") as output:
            outcome = machine.run(guest, output.fileno())
        text = file.read_text(errors="replace")
    if outcome.complaints or outcome.exit_status:
        said = "\n".join([*outcome.complaints, text[-300:]])
        raise BeowireError(f"The guest of {count} nodes failed: {said}")
    return text


def counted(text: str, count: int) -> dict[tuple[str, int], Pages]:
    """By way and node."""
    found = {}
    for way in _WAYS:
        for node in range(count):
            pages = _pages(text, f"{way}{node}", node)
            if not pages.near + pages.far:
                raise BeowireError(f"The guest told nothing of {way} on node {node}.")
            found[way, node] = pages
    return found


def _pages(text: str, name: str, own: int) -> Pages:
    executable = dict(_executable(text, name))
    near = far = left = 0
    for start, rest in re.findall(rf"^{name} pages ([0-9a-f]+) (.*)$", text, re.MULTILINE):
        if start not in executable:
            continue
        for node, pages in re.findall(r"\bN(\d+)=(\d+)", rest):
            if int(node) == own:
                near += int(pages)
            elif _LEFT.fullmatch(executable[start]):
                left += int(pages)
            else:
                far += int(pages)
    return Pages(near, far, left)


def _executable(text: str, name: str) -> Iterator[tuple[str, str]]:
    """Where executable areas begin, and their files."""
    line = rf"^{name} area ([0-9a-f]+)-[0-9a-f]+ ..x. \S+ \S+ \S+ *(.*)$"
    yield from re.findall(line, text, re.MULTILINE)
