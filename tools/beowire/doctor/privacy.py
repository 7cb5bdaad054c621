# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a record keeps of files that tell more than checks need: environments, which hold passwords,
the kernel's command line, the files that programs have mapped.

A check that reads another file of this kind needs a rule here.
"""

import re
import socket
from collections.abc import Callable

RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
"""They mark a process as a rank of a job; their values say nothing to a check."""
MPI_LIBRARY = re.compile(r"/(?:libmpi|libmpich|libbeowire)[\w.-]*\.so")
ENDPOINT = re.compile(r"@beowire\.(\d+)$")
"""At the end of a line of /proc/net/unix: a socket of one of Beowire's endpoints."""
_PARAMETERS = {
    "preempt",
    "rcu_nocbs",
    "init_on_alloc",
    "init_on_free",
    "iommu.strict",
    "page_poison",
    "slub_debug",
}
"""Parameters of the kernel whose values checks read."""


def _environment(text: str) -> str:
    names = (each.partition("=")[0] for each in text.split("\0"))
    return "".join(f"{name}=\0" for name in names if name in RANK_VARIABLES) or "\0"


def _mapped(text: str) -> str:
    found = {each[0] for line in text.splitlines() if (each := MPI_LIBRARY.search(line))}
    return "".join(f"{name}\n" for name in sorted(found))


def _sockets(text: str) -> str:
    return "".join(f"{line}\n" for line in text.splitlines() if ENDPOINT.search(line))


def _command_line(text: str) -> str:
    words = ((word, word.partition("=")[0]) for word in text.split())
    return " ".join(word if name in _PARAMETERS else name for word, name in words) + "\n"


def _hosts(text: str) -> str:
    mine = socket.gethostname()
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    kept = ([words[0], mine] for words in lines if mine in words[1:])
    return "".join(f"{' '.join(words)}\n" for words in kept)


_RULES: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (re.compile(r"/proc/\d+/environ"), _environment),
    (re.compile(r"/proc/\d+/maps"), _mapped),
    (re.compile(r"/proc/net/unix"), _sockets),
    (re.compile(r"/proc/cmdline"), _command_line),
    (re.compile(r"/etc/hosts"), _hosts),
)


def limited(path: str, text: str) -> str:
    """What a record keeps of the file at `path`, which reads `text`."""
    for pattern, keep in _RULES:
        if pattern.fullmatch(path):
            return keep(text)
    return text
